/* cmd_console.c: `tdbg console`: look at tensors by hand, in files and in a live run.
 *
 * Lines come from a person at a terminal, from a file, or from standard input. A person's mistake is told and
 * forgotten; the first one of a script ends it.
 */
#include "cli/cli.h"

#include "cli/console.h"
#include "live/control.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct console_options {
    const char *file;
    bool keep_going;
};

/* --- lines ---------------------------------------------------------------------------------------------- */

/* One line: an empty one and a comment do nothing. */
static int run_line(struct console *c, const char *line)
{
    char *copy = strdup(line), *words[MOST_WORDS];
    if (!copy)
        return EXIT_TROUBLE;
    copy[strcspn(copy, "\r\n")] = 0;
    char *whole = strdup(copy + strspn(copy, " \t"));
    int count = whole && *whole && *whole != '#' ? console_split(copy, words) : 0, status = EXIT_FINE;
    if (count < 0) {
        fflush(stdout);
        fprintf(stderr, "tdbg: a quote is not closed, or there are more than %d words\n", MOST_WORDS);
        status = EXIT_TROUBLE;
    }
    const struct console_command *command = count > 0 ? console_command_find(words[0], true) : NULL;
    if (command) {
        c->rest = whole + strcspn(whole, " \t");
        c->rest += strspn(c->rest, " \t");
        status = command->run(c, count - 1, words + 1);
    } else if (count > 0) {
        status = EXIT_TROUBLE;
    }
    free(whole);
    free(copy);
    fflush(stdout);
    return status;
}

static int talk(struct console *c)
{
    struct console_editor *editor = NULL;
    struct tdbg_error error;
    if (console_editor_open(&editor, c, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    while (!c->leaving) {
        console_live_listen(c);
        const char *line = console_editor_line(editor);
        if (!line) {
            putchar('\n'); /* after Ctrl-D, which stays on the line */
            break;
        }
        cli_forget_interrupt(c->cli);
        console_live_listen(c); /* while the line was typed, others may have let the run go on */
        if (run_line(c, line) == EXIT_INTERRUPTED)
            printf("interrupted\n");
    }
    cli_forget_interrupt(c->cli);
    console_editor_close(&editor);
    return EXIT_FINE;
}

static int run_script(struct console *c, FILE *file, bool keep_going)
{
    char *line = NULL;
    size_t room = 0;
    int status = EXIT_FINE;
    while (!c->leaving && getline(&line, &room, file) >= 0) {
        console_live_listen(c);
        int done = run_line(c, line);
        if (done == EXIT_FINE)
            continue;
        status = done;
        if (!keep_going || done == EXIT_INTERRUPTED)
            break;
    }
    free(line);
    return status;
}

/* --- the command ---------------------------------------------------------------------------------------- */

/* The folder of a run whose process lives, or lived not long ago. */
static bool has_socket(const char *path)
{
    char *name;
    struct stat st;
    if (asprintf(&name, "%s/%s", path, TD_RUN_CONTROL) < 0)
        return false;
    bool is = stat(name, &st) == 0 && S_ISSOCK(st.st_mode);
    free(name);
    return is;
}

/* NOTFOUND: nobody records there. */
static tdbg_status attach(struct console *c, const char *path, struct tdbg_error *error)
{
    char *first = NULL;
    if (has_socket(path))
        return console_attach(c, path, error);
    tdbg_status status = TDBG_NOTFOUND; /* of several ranks, the first */
    if (asprintf(&first, "%s/rank-0", path) < 0)
        return td_fail_nomem(error);
    if (has_socket(first))
        status = console_attach(c, first, error);
    free(first);
    return status;
}

static int open_operand(struct console *c, const char *path)
{
    struct tdbg_error error;
    tdbg_status status = c->live ? TDBG_NOTFOUND : attach(c, path, &error);
    if (status == TDBG_NOTFOUND)
        return console_open(c, path);
    return status == TDBG_OK ? EXIT_FINE : cli_fail(path, &error);
}

static int take_lines(struct console *c, const struct console_options *wanted)
{
    if (c->interactive)
        return talk(c);
    if (!wanted->file)
        return run_script(c, stdin, wanted->keep_going);
    FILE *file = fopen(wanted->file, "r");
    if (!file) {
        struct tdbg_error error;
        (void)td_fail_errno(&error, "cannot open");
        return cli_fail(wanted->file, &error);
    }
    int status = run_script(c, file, wanted->keep_going);
    fclose(file);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct console_options wanted = {0};
    struct console console = {.cli = cli};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_console, argc, argv, &wanted, &args, &status))
        return status;
    console.interactive = !wanted.file && isatty(STDIN_FILENO);
    status = EXIT_FINE;
    for (int i = 0; i < args.count && status == EXIT_FINE; i++)
        status = open_operand(&console, args.operands[i]);
    fflush(stdout);
    if (console.interactive && !cli->quiet && status == EXIT_FINE)
        printf("'help' lists the commands, Ctrl-D leaves.\n");
    if (status == EXIT_FINE)
        status = take_lines(&console, &wanted);
    console_detach(&console);
    console_close_all(&console);
    return status;
}

static const struct option options[] = {
    {"file", 'f', OPTION_TEXT, offsetof(struct console_options, file), "FILE",
     "commands from a file; # begins a comment"},
    {"keep-going", 'k', OPTION_FLAG, offsetof(struct console_options, keep_going), NULL,
     "a script goes on after an error"},
    {0},
};

const struct command cmd_console = {
    .name = "console",
    .summary = "Look at tensors by hand, in files and in a live run; breakpoints.",
    .usage = "[PATH|RUN]...",
    .options = options,
    .run = run,
    .help =
        "Opens what is named, or attaches to the process that records a run, and takes commands: inspect,\n"
        "stats, slice, hist, plot, diff; of a live run also break, step, next, continue, watch. 'help' "
        "lists\n"
        "them, Tab completes commands and names, Ctrl-C stops a command, Ctrl-D leaves. When nobody types,\n"
        "commands come from standard input; the first error ends them with exit status 2.\n"
        "\n"
        "Examples:\n"
        "  tdbg console model.safetensors\n"
        "  tdbg console runs/a                       attaches while the run is recorded\n"
        "  echo 'stats *.weight' | tdbg console ckpt.pth\n"
        "  tdbg console dumps/ --file look.tdbg\n"
        "\n"
        "A program that is recorded can wait: TDBG_BREAK='PATTERN if CONDITION' sets a breakpoint before\n"
        "anybody is there, TDBG_WAIT=1 holds it at its first tensor until somebody attaches.\n",
};
