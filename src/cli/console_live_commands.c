/* console_live_commands.c: the commands of the console that stop a live run, let it go on and watch it. */
#include "cli/console_live.h"

#include "cli/table.h"
#include "live/condition.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, tdbg_status status, const char *message)
{
    struct tdbg_error error;
    (void)td_fail(&error, status, "%s", message);
    return cli_fail(what, &error);
}

/* --- attach, detach ------------------------------------------------------------------------------------- */

static int run_attach(struct console *c, int argc, char **argv)
{
    struct tdbg_error error;
    if (argc > 1)
        return console_fail_usage("attach", "one RUN at a time");
    const char *dir = argc ? argv[0] : c->live ? c->live->dir : NULL;
    if (!dir)
        return console_fail_usage("attach", "no RUN given");
    if (console_attach(c, dir, &error) != TDBG_OK)
        return cli_fail(dir, &error);
    return EXIT_FINE;
}

/* A stopped model is held as long as anybody else is attached. */
static bool is_held(struct console *c)
{
    json_t *state = NULL;
    if (live_ask(c, "state", NULL, &state) != EXIT_FINE)
        return false;
    bool held = json_integer_value(json_object_get(state, "attached")) > 0 && json_object_get(state, "stop");
    json_decref(state);
    return held;
}

static int run_detach(struct console *c, int argc, char **argv)
{
    bool clear = argc == 1 && strcmp(argv[0], "--clear") == 0;
    if (argc > 1 || (argc == 1 && !clear))
        return console_fail_usage("detach", "only --clear may follow");
    int status = live_ask(c, "detach", (struct td_parameter[]){{"clear", clear ? "yes" : NULL}, {0}}, NULL);
    if (status != EXIT_FINE)
        return status;
    bool held = is_held(c);
    if (!c->live) /* it ended meanwhile, and that was said */
        return EXIT_FINE;
    printf("detached from %s; %s\n", c->live->dir,
           held ? "the model stays stopped for others" : "the model runs on");
    console_detach(c);
    return EXIT_FINE;
}

/* --- breakpoints ---------------------------------------------------------------------------------------- */

/* The model has a working folder of its own: the run of diverges-from becomes an absolute path. */
static char *absolute(const char *condition)
{
    static const char word[] = "diverges-from ";
    const char *at = strstr(condition, word);
    char *out = NULL, path[PATH_MAX];
    if (!at)
        return strdup(condition);
    at += sizeof word - 1;
    at += strspn(at, " \t");
    const char *end = strstr(at, " or ");
    size_t length = end ? (size_t)(end - at) : strlen(at);
    while (length > 0 && strchr(" \t\n", at[length - 1]))
        length--;
    char *given = strndup(at, length);
    const char *found = given ? realpath(given, path) : NULL;
    if (given &&
        asprintf(&out, "%.*s%s%s", (int)(at - condition), condition, found ? found : given, at + length) < 0)
        out = NULL;
    free(given);
    return out;
}

static int add_breakpoint(struct console *c, const char *name, const char *once)
{
    struct tdbg_error error;
    char *pattern, *condition;
    json_t *answer = NULL;
    if (td_break_split(c->rest, &pattern, &condition, &error) != TDBG_OK)
        return console_fail_usage(name, "%s", error.message);
    char *when = absolute(condition);
    int status =
        live_ask(c, "break",
                 (struct td_parameter[]){{"pattern", pattern}, {"when", when}, {"once", once}, {0}}, &answer);
    if (status == EXIT_FINE)
        printf("breakpoint %lld at %s%s%s\n",
               (long long)json_integer_value(json_object_get(answer, "number")), pattern,
               *condition ? " if " : "", condition);
    json_decref(answer);
    free(when);
    free(pattern);
    free(condition);
    return status;
}

static int run_break(struct console *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return add_breakpoint(c, "break", NULL);
}

static int run_tbreak(struct console *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return add_breakpoint(c, "tbreak", "yes");
}

static int with_number(struct console *c, const char *verb, int argc, char **argv)
{
    if (argc != 1)
        return console_fail_usage(verb, "one number ('info' lists them)");
    return live_ask(c, verb, (struct td_parameter[]){{"number", argv[0]}, {0}}, NULL);
}

static int run_delete(struct console *c, int argc, char **argv)
{
    return with_number(c, "delete", argc, argv);
}

static int run_enable(struct console *c, int argc, char **argv)
{
    return with_number(c, "enable", argc, argv);
}

static int run_disable(struct console *c, int argc, char **argv)
{
    return with_number(c, "disable", argc, argv);
}

static int run_unwatch(struct console *c, int argc, char **argv)
{
    return with_number(c, "unwatch", argc, argv);
}

static int list_breakpoints(struct console *c)
{
    static const struct column columns[] = {
        {.title = "number", .right = true},
        {.title = "at", .elastic = true},
        {.title = "if"},
        {.title = "hits", .right = true},
        {.title = ""},
    };
    json_t *answer = NULL;
    int status = live_ask(c, "breakpoints", NULL, &answer);
    if (status != EXIT_FINE)
        return status;
    struct table table;
    size_t i;
    const json_t *row, *all = json_object_get(answer, "breakpoints");
    table_init(&table, columns, sizeof columns / sizeof *columns);
    json_array_foreach(all, i, row)
    {
        table_cellf(&table, "%lld", (long long)json_integer_value(json_object_get(row, "number")));
        table_cell(&table, json_string_value(json_object_get(row, "pattern")));
        table_cell(&table, json_string_value(json_object_get(row, "when")));
        table_cellf(&table, "%lld", (long long)json_integer_value(json_object_get(row, "hits")));
        table_cell(&table, !json_is_true(json_object_get(row, "enabled")) ? "disabled"
                           : json_is_true(json_object_get(row, "once"))   ? "once"
                                                                          : "");
    }
    if (json_array_size(all))
        table_print(&table, &c->cli->out, 0);
    else
        printf("no breakpoints\n");
    table_release(&table);
    json_decref(answer);
    return EXIT_FINE;
}

static int list_watches(struct console *c)
{
    json_t *answer = NULL;
    int status = live_ask(c, "watches", NULL, &answer);
    if (status != EXIT_FINE)
        return status;
    size_t i;
    const json_t *row, *all = json_object_get(answer, "watches");
    json_array_foreach(all, i, row)
        printf("%lld  %s\n", (long long)json_integer_value(json_object_get(row, "number")),
               json_string_value(json_object_get(row, "watch")));
    if (json_array_size(all) == 0)
        printf("no watches\n");
    json_decref(answer);
    return EXIT_FINE;
}

static int run_info(struct console *c, int argc, char **argv)
{
    const char *what = argc ? argv[0] : "";
    size_t length = strlen(what);
    if (argc == 1 && length > 0 && strncmp("breakpoints", what, length) == 0)
        return list_breakpoints(c);
    if (argc == 1 && length > 0 && strncmp("watches", what, length) == 0)
        return list_watches(c);
    return console_fail_usage("info", "'info breakpoints' or 'info watches'");
}

/* --- going on ------------------------------------------------------------------------------------------- */

static int go(struct console *c, const char *verb, int argc)
{
    if (argc > 0)
        return console_fail_usage(verb, "nothing may follow");
    int status = live_ask(c, verb, NULL, NULL);
    if (status != EXIT_FINE)
        return status;
    live_pass(c, NULL);
    return live_wait(c);
}

static int run_continue(struct console *c, int argc, char **argv)
{
    (void)argv;
    return go(c, "continue", argc);
}

static int run_step(struct console *c, int argc, char **argv)
{
    (void)argv;
    return go(c, "step", argc);
}

static int run_next(struct console *c, int argc, char **argv)
{
    (void)argv;
    return go(c, "next", argc);
}

/* --- watching ------------------------------------------------------------------------------------------- */

static int run_watch(struct console *c, int argc, char **argv)
{
    json_t *answer = NULL;
    (void)argv;
    if (argc == 0)
        return console_fail_usage("watch", "what is to be watched, as in absmax(layers.3.output)");
    int status = live_ask(c, "watch", (struct td_parameter[]){{"watch", c->rest}, {0}}, &answer);
    if (status == EXIT_FINE)
        printf("watch %lld: %s\n", (long long)json_integer_value(json_object_get(answer, "number")), c->rest);
    json_decref(answer);
    return status;
}

static int run_capture(struct console *c, int argc, char **argv)
{
    (void)argv;
    if (argc == 0)
        return console_fail_usage("capture", "rules are missing, as in 'layers.*=full;*=stats'");
    return live_ask(c, "capture", (struct td_parameter[]){{"rules", argc == 1 ? argv[0] : c->rest}, {0}},
                    NULL);
}

static int run_where(struct console *c, int argc, char **argv)
{
    json_t *state = NULL;
    size_t i;
    const json_t *scope;
    (void)argv;
    if (argc > 0)
        return console_fail_usage("where", "nothing may follow");
    int status = live_ask(c, "state", NULL, &state);
    if (status != EXIT_FINE)
        return status;
    json_t *stop = json_object_get(state, "stop");
    live_pass(c, stop);
    if (!stop) {
        printf("running, step %lld\n", (long long)json_integer_value(json_object_get(state, "step")));
    } else {
        printf("step %lld, thread %lld\n", (long long)json_integer_value(json_object_get(stop, "step")),
               (long long)json_integer_value(json_object_get(stop, "thread")));
        json_array_foreach(json_object_get(stop, "scopes"), i, scope)
            printf("%*s%s\n", 2 + 2 * (int)i, "", json_string_value(scope));
        if (c->live)
            live_print_stop(c);
    }
    json_decref(state);
    return EXIT_FINE;
}

static int run_seen(struct console *c, int argc, char **argv)
{
    if (!c->live)
        return fail(NULL, TDBG_MISUSE, "no live run ('attach RUN' finds one)");
    if (argc > 1)
        return console_fail_usage("seen", "one PATTERN at a time");
    return live_list(c, argc ? argv[0] : NULL);
}

const struct console_command console_live_commands[] = {
    {"attach", "[RUN]", "talk to the process that records a run",
     "  attach runs/a\n"
     "The model runs on; breakpoints stop it, and 'step' does at its next tensor.\n",
     COMPLETE_PATHS, run_attach},
    {"detach", "[--clear]", "leave the run; a stopped model goes on",
     "Breakpoints stay, but hold the model only while somebody is attached. --clear deletes them.\n",
     COMPLETE_NOTHING, run_detach},
    {"break", "PATTERN [if CONDITION]", "stop where a tensor or scope of that name comes by",
     "  break layers.3            that scope begins, or that tensor is there\n"
     "  break *.output if nan or inf\n"
     "  break * if absmax > 1e4\n"
     "  break *.grad if std < 1e-7\n"
     "  break * if diverges-from runs/good\n"
     "Statistics: mean std min max absmax norm nan inf zeros finite count, with < or >, joined by 'or'.\n"
     "diverges-from stops at the first tensor that is not what it was in the same step of an earlier run,\n"
     "by the rules of 'tdbg diff'.\n",
     COMPLETE_TENSORS, run_break},
    {"tbreak", "PATTERN [if CONDITION]", "break, for one stop only", "  tbreak layers.3.*\n",
     COMPLETE_TENSORS, run_tbreak},
    {"info", "breakpoints|watches", "list the breakpoints or the watches",
     "  info breakpoints\n  info watches\n", COMPLETE_NOTHING, run_info},
    {"delete", "NUMBER", "forget a breakpoint", "  delete 1\n", COMPLETE_NOTHING, run_delete},
    {"enable", "NUMBER", "let a breakpoint stop again", "  enable 1\n", COMPLETE_NOTHING, run_enable},
    {"disable", "NUMBER", "let a breakpoint pass for now", "  disable 1\n", COMPLETE_NOTHING, run_disable},
    {"continue", "", "go on to the next breakpoint", "Ctrl-C gives the prompt back; the model runs on.\n",
     COMPLETE_NOTHING, run_continue},
    {"step", "", "go on to the next tensor",
     "Of a model that runs: stop it at the next tensor of any thread.\n", COMPLETE_NOTHING, run_step},
    {"next", "", "go on to the next tensor or scope that is no deeper than this one",
     "Steps over a scope from its beginning.\n", COMPLETE_NOTHING, run_next},
    {"where", "", "the step, the thread and its scopes", "  where\n", COMPLETE_NOTHING, run_where},
    {"seen", "[PATTERN]", "the tensors of the step so far, with statistics", "  seen\n  seen layers.0.*\n",
     COMPLETE_TENSORS, run_seen},
    {"watch", "STATISTIC(TENSOR[slice])", "print a statistic whenever its tensor comes by",
     "  watch absmax(layers.3.output)\n"
     "  watch mean(attention[0, 3])\n",
     COMPLETE_TENSORS, run_watch},
    {"unwatch", "NUMBER", "forget a watch", "  unwatch 1\n", COMPLETE_NOTHING, run_unwatch},
    {"capture", "RULES", "change what is recorded from now on",
     "  capture layers.3.*=full;*=stats\n"
     "  capture *=none\n",
     COMPLETE_NOTHING, run_capture},
    {0},
};
