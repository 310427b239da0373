/* console_help.c: the table of the console's commands, the few that are about the console itself, and help.
 */
#include "cli/console.h"

#include <stdarg.h>
#include <string.h>

static const struct console_command *const tables[] = {console_base_commands, console_look_commands,
                                                       console_live_commands};

enum { TABLES = sizeof tables / sizeof *tables };

const struct console_command *console_command_at(size_t i)
{
    for (int t = 0; t < TABLES; t++)
        for (const struct console_command *command = tables[t]; command->name; command++)
            if (i-- == 0)
                return command;
    return NULL;
}

static const char *name_at(const void *context, size_t i)
{
    const struct console_command *command = console_command_at(i);
    (void)context;
    return command ? command->name : NULL;
}

static const struct console_command *complain(const char *name, int fits)
{
    const char *near = args_nearest(name, name_at, NULL);
    fflush(stdout);
    if (fits > 1)
        fprintf(stderr, "tdbg: several commands begin with '%s' (see 'help')\n", name);
    else if (near)
        fprintf(stderr, "tdbg: no command '%s'; did you mean '%s'?\n", name, near);
    else
        fprintf(stderr, "tdbg: no command '%s' (see 'help')\n", name);
    return NULL;
}

const struct console_command *console_command_find(const char *name, bool loud)
{
    const struct console_command *found = NULL, *command;
    int fits = 0;
    for (size_t i = 0; (command = console_command_at(i)); i++) {
        if (strcmp(command->name, name) == 0)
            return command;
        if (strncmp(command->name, name, strlen(name)) == 0) {
            found = command;
            fits++;
        }
    }
    if (fits == 1)
        return found;
    return loud ? complain(name, fits) : NULL;
}

int console_fail_usage(const char *name, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "tdbg: %s: ", name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see 'help %s')\n", name);
    return EXIT_TROUBLE;
}

bool console_parse(const char *name, const struct option *options, void *values, int argc, char **argv,
                   struct args *args)
{
    const struct option *const all[] = {options, NULL};
    void *const places[] = {values};
    char message[512];
    if (args_parse(all, places, argc, argv, args, message, sizeof message))
        return true;
    console_fail_usage(name, "%s", message);
    return false;
}

/* --- commands about the console ------------------------------------------------------------------------- */

static int run_open(struct console *c, int argc, char **argv)
{
    int status = EXIT_FINE;
    if (argc == 0)
        return console_fail_usage("open", "no PATH given");
    for (int i = 0; i < argc && status == EXIT_FINE; i++)
        status = console_open(c, argv[i]);
    return status;
}

static int run_close(struct console *c, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int at = argv[i][0] - 'a';
        if (argv[i][1] || at < 0 || at >= MOST_INPUTS || !c->inputs[at])
            return console_fail_usage("close", "'%s' is no letter of an open input", argv[i]);
        td_input_close(&c->inputs[at]);
    }
    return argc ? EXIT_FINE : console_fail_usage("close", "no letter given");
}

static int help_all(void)
{
    const struct console_command *command;
    for (size_t i = 0; (command = console_command_at(i)); i++)
        printf("  %-9s %s\n", command->name, command->summary);
    printf(
        "\nA TENSOR is a name, letter:name where several inputs are open, PATH:name, each with or without\n"
        "[slice]; in a live run also '.', where it stopped. A command may be shortened.\n"
        "'help COMMAND' has examples.\n");
    return EXIT_FINE;
}

static int run_help(struct console *c, int argc, char **argv)
{
    (void)c;
    if (argc == 0)
        return help_all();
    const struct console_command *command = console_command_find(argv[0], true);
    if (!command)
        return EXIT_TROUBLE;
    printf("%s %s\n%s\n\n%s", command->name, command->usage, command->summary, command->help);
    return EXIT_FINE;
}

static int run_quit(struct console *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    c->leaving = true;
    return EXIT_FINE;
}

const struct console_command console_base_commands[] = {
    {"open", "PATH...", "open a file, a folder, an archive or a run; it gets a letter",
     "  open model.safetensors dumps.zip\n", COMPLETE_PATHS, run_open},
    {"close", "LETTER...", "close an input", "  close b\n", COMPLETE_NOTHING, run_close},
    {"help", "[COMMAND]", "all commands, or one of them with examples", "  help plot\n", COMPLETE_COMMANDS,
     run_help},
    {"quit", "", "leave (so does Ctrl-D); a stopped model goes on", "  quit\n", COMPLETE_NOTHING, run_quit},
    {0},
};
