/* main.c: the commands, and what surrounds every one of them: signals, output that must arrive, help. */
#include "cli/cli.h"

#include "kernel/tier.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which the help lists them: compare, look, examine a run, hand on. */
static const struct command *const commands[] = {
    &cmd_diff,  &cmd_batch,   &cmd_serve,   &cmd_ls,     &cmd_show,   &cmd_stats,
    &cmd_check, &cmd_console, &cmd_profile, &cmd_memory, &cmd_export,
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static const char *command_name(const void *context, size_t i)
{
    (void)context;
    return i < COMMANDS ? commands[i]->name : NULL;
}

/* --- Options every command has -------------------------------------------------------------------------- */

struct common {
    bool json, quiet, verbose, help;
};

static const struct option common_options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct common, json), NULL, "one JSON document on stdout"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct common, quiet), NULL, "results only: no notes, no progress"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct common, verbose), NULL,
     "say everything, every skipped file too"},
    {"help", 'h', OPTION_FLAG, offsetof(struct common, help), NULL, "this text"},
    {0},
};

/* "-q, --quiet", "    --hist N". Returns its length. */
static int option_words(char out[64], const struct option *o)
{
    char letter[4] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c,", o->letter);
    return snprintf(out, 64, "%3s --%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
}

static int widest_option(const struct option *options, int width)
{
    char words[64];
    for (const struct option *o = options; o->name; o++) {
        int length = option_words(words, o);
        width = length > width ? length : width;
    }
    return width;
}

static void print_options(const struct term *out, const struct option *options, int width)
{
    char words[64];
    for (const struct option *o = options; o->name; o++) {
        option_words(words, o);
        printf("  %-*s  ", width, words);
        term_put_wrapped(out, o->help, width + 4, width + 4);
    }
}

static void print_help(const struct command *command)
{
    struct term out = term_open(stdout);
    int width = widest_option(command->options, widest_option(common_options, 0));
    printf("Usage: tdbg %s [OPTION]... %s\n\n%s\n\nOptions:\n", command->name, command->usage,
           command->summary);
    print_options(&out, command->options, width);
    print_options(&out, common_options, width);
    printf("\n%s", command->help);
}

static void print_overview(void)
{
    printf("tdbg, the tensor debugger: where two implementations of a model part, by how much, and why;\n"
           "and what is in a tensor file, or happened in a recorded run.\n\n"
           "Usage: tdbg COMMAND [OPTION]... [PATH]...\n\n"
           "Commands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
    printf(
        "\n"
        "A PATH is a file, a folder or an archive: torch (.pth .pt .bin .ckpt), safetensors, npy/npz, GGUF,\n"
        "ONNX; what it is shows from its content. PATH:NAME is one tensor in it, PATH:NAME[0, :16] a "
        "slice.\n\n"
        "  tdbg diff dumps/reference dumps/port\n"
        "  tdbg serve dumps/reference dumps/port\n"
        "  tdbg ls model.safetensors\n"
        "  tdbg show 'dumps.zip:3_query.pth[0, :4, :8]'\n"
        "  tdbg stats dumps/\n"
        "  tdbg check runs/a\n\n"
        "'tdbg COMMAND --help' tells more, 'tdbg --version' which tdbg this is.\n"
        "Exit status: 0 fine, 1 differences or findings, 2 trouble, 130 interrupted.\n"
        "Environment: TDBG_THREADS=N threads, TDBG_CPU=scalar|vector|avx2 instructions, NO_COLOR=1 no "
        "colours.\n");
}

bool cli_parse(struct cli *cli, const struct command *command, int argc, char **argv, void *values,
               struct args *args, int *status)
{
    struct common common = {0};
    char message[512];
    const struct option *const tables[] = {command->options, common_options, NULL};
    void *const places[] = {values, &common};
    if (!args_parse(tables, places, argc, argv, args, message, sizeof message)) {
        *status = cli_fail_usage(command, "%s", message);
        return false;
    }
    if (common.help) {
        print_help(command);
        *status = EXIT_FINE;
        return false;
    }
    cli->json = common.json;
    cli->quiet = common.quiet;
    cli->verbose = common.verbose;
    return true;
}

/* --- Trouble -------------------------------------------------------------------------------------------- */

int cli_fail(const char *what, const struct tdbg_error *error)
{
    char text[sizeof error->message + 32], *line = NULL;
    if (error->status == TDBG_CANCELLED)
        return EXIT_INTERRUPTED;
    fflush(stdout);
    if (asprintf(&line, "tdbg: %s%s%s", what ? what : "", what ? ": " : "",
                 td_error_text(error, text, sizeof text)) < 0)
        return EXIT_TROUBLE;
    for (char *c = line; *c; c++) /* a file name may hold anything, an error is one line */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    fprintf(stderr, "%s\n", line);
    free(line);
    return EXIT_TROUBLE;
}

int cli_fail_usage(const struct command *command, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "tdbg: %s: %s (see 'tdbg %s --help')\n", command->name, message, command->name);
    return EXIT_TROUBLE;
}

struct td_pool *cli_pool(struct cli *cli)
{
    struct tdbg_error error;
    const struct td_kernels *kernels;
    if (!cli->pool &&
        (td_kernels_select(&kernels, &error) != TDBG_OK || /* TDBG_CPU: say it once, not per tensor */
         td_pool_open(&cli->pool, 0, &error) != TDBG_OK))
        cli_fail(NULL, &error);
    return cli->pool;
}

/* --- Around a command ----------------------------------------------------------------------------------- */

/* The one thing a signal handler can reach: the job of this process. */
static struct td_job job;

static void on_interrupt(int number)
{
    (void)number;
    atomic_store_explicit(&job.cancelled, true, memory_order_relaxed);
}

/* The first Ctrl-C asks the work to stop and clean up; the second one kills. */
static void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void cli_forget_interrupt(struct cli *cli)
{
    atomic_store_explicit(&cli->job->cancelled, false, memory_order_relaxed);
    catch_interrupt();
}

/* What was printed must have arrived. A reader that went away (`| head`) is no error of ours. */
static int close_output(int status)
{
    bool failed = ferror(stdout) != 0;
    int code = failed ? errno : 0; /* nothing since that write had reason to fail */
    if (fflush(stdout) != 0) {
        failed = true;
        code = errno;
    }
    if (failed && code != EPIPE)
        fprintf(stderr, "tdbg: standard output: cannot write: %s\n", strerror(code));
    return failed ? EXIT_TROUBLE : status;
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        print_overview();
        return EXIT_FINE;
    }
    const struct command *command = find_command(argv[0]);
    if (!command) {
        fprintf(stderr, "tdbg: no command '%s' (see 'tdbg --help')\n", argv[0]);
        return EXIT_TROUBLE;
    }
    print_help(command);
    return EXIT_FINE;
}

static int unknown(const char *name)
{
    const char *near = args_nearest(name, command_name, NULL);
    const char *what = name[0] == '-' ? "option" : "command";
    if (near)
        fprintf(stderr, "tdbg: no %s '%s'; did you mean '%s'?\n", what, name, near);
    else
        fprintf(stderr, "tdbg: no %s '%s' (see 'tdbg --help')\n", what, name);
    return EXIT_TROUBLE;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct cli cli = {.out = term_open(stdout), .err = term_open(stderr), .job = &job};
    catch_interrupt();
    int status = command->run(&cli, argc, argv);
    td_pool_close(&cli.pool);
    return td_job_cancelled(&job) ? EXIT_INTERRUPTED : status;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        fprintf(stderr, "tdbg: no command given (see 'tdbg --help')\n");
        return EXIT_TROUBLE;
    }
    const char *name = argv[1];
    const struct command *command = find_command(name);
    int status;
    if (command)
        status = run_command(command, argc - 2, argv + 2);
    else if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0)
        status = printf("tdbg %s\n", tdbg_version()) < 0 ? EXIT_TROUBLE : EXIT_FINE;
    else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        status = help(argc - 2, argv + 2);
    else
        status = unknown(name);
    return close_output(status);
}
