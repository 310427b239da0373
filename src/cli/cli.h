/* cli.h: what the commands share: the table entry each of them is, and the context it runs in.
 *
 * To add a command: one file cmd_NAME.c that defines `const struct command cmd_NAME`, one line in the table
 * of main.c. Results go to stdout, everything else to stderr, errors as one line `tdbg: PATH: what (where)`.
 */
#ifndef TD_CLI_CLI_H
#define TD_CLI_CLI_H

#include "base/job.h"
#include "base/pool.h"
#include "base/status.h"
#include "cli/args.h"
#include "cli/term.h"

enum exit_status {
    EXIT_FINE = 0,
    EXIT_FINDINGS = 1, /* differences, or something worth a look */
    EXIT_TROUBLE = 2,  /* bad usage, unreadable input */
    EXIT_INTERRUPTED = 130
};

struct cli {
    struct term out, err;
    struct td_job *job;   /* cancelled by Ctrl-C */
    struct td_pool *pool; /* NULL until cli_pool */
    bool json, quiet, verbose;
};

struct command {
    const char *name, *summary;
    const char *usage; /* operands, as in "PATH..." */
    const char *help;  /* what it does and examples, after the options */
    const struct option *options;
    int (*run)(struct cli *cli, int argc, char **argv);
};

extern const struct command cmd_batch, cmd_check, cmd_console, cmd_diff, cmd_export, cmd_ls, cmd_memory,
    cmd_profile, cmd_serve, cmd_show, cmd_stats;

/* Prints `tdbg: WHAT: message (at byte N)`; `what` may be NULL. Returns the exit status that goes with it. */
int cli_fail(const char *what, const struct tdbg_error *error);

/* The same for a mistake on the command line, with a pointer to the help. */
int cli_fail_usage(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parses options into `values` (see args.h). True: go on with args; false: leave with *status. */
bool cli_parse(struct cli *cli, const struct command *command, int argc, char **argv, void *values,
               struct args *args, int *status);

/* Forgets a Ctrl-C, and catches the next: for whoever outlives the work it stops. */
void cli_forget_interrupt(struct cli *cli);

/* The worker threads, started when first asked for. NULL after an error that was printed. */
struct td_pool *cli_pool(struct cli *cli);

#endif
