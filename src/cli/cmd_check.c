/* cmd_check.c: `tdbg check`: what went wrong in a recorded run, the first offence first.
 *
 * The rules and what they find are in analyse/rules.h; here they are set, fed with a run, and told. A folder
 * of ranks is checked rank by rank.
 */
#include "cli/cli.h"

#include "cli/table.h"
#include "report/check_json.h"
#include "store/run_folders.h"

#include <inttypes.h>
#include <stdlib.h>

struct check_options {
    struct option_list set, disable;
    bool list_rules;
};

struct checked {
    const char *path; /* of the run */
    struct td_checker *checker;
};

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void write_run(struct td_json *j, const struct checked *c)
{
    td_json_begin_object(j);
    td_json_field_string(j, "path", c->path);
    td_json_field_uint(j, "steps", td_checker_steps(c->checker));
    td_json_field_uint(j, "tensors", td_checker_tensors(c->checker));
    td_json_field_uint(j, "scalars", td_checker_scalars(c->checker));
    td_json_key(j, "first");
    if (td_checker_count(c->checker))
        td_finding_json(j, td_checker_finding(c->checker, 0));
    else
        td_json_null(j);
    td_json_key(j, "findings");
    td_findings_json(j, c->checker);
    td_json_end_object(j);
}

static void write_json(const struct checked *runs, size_t count, const struct td_rule_setting *settings)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    if (runs) {
        td_json_key(j, "runs");
        td_json_begin_array(j);
        for (size_t i = 0; i < count; i++)
            write_run(j, &runs[i]);
        td_json_end_array(j);
    }
    td_json_key(j, "rules");
    td_rules_json(j, settings);
    td_json_end_object(j);
    td_json_newline(j);
    (void)td_json_finish(j); /* stdout remembers */
}

/* --- Text ----------------------------------------------------------------------------------------------- */

static void list_rules(const struct cli *cli, const struct td_rule_setting *settings)
{
    static const struct column columns[] = {{"rule", false, false, 0},
                                            {"finds", false, true, 0},
                                            {"number", false, false, 1},
                                            {"bad when", false, false, 0},
                                            {"steps", true, false, 0}};
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < TD_RULES; i++) {
        table_cell(&table, td_rules[i].name);
        table_cell(&table, td_rules[i].what);
        table_cell(&table, td_rules[i].measure);
        if (settings[i].disabled)
            table_cell_styled(&table, STYLE_DIM, "disabled");
        else
            table_cellf(&table, "%s %.4g", td_rules[i].below ? "below" : "above", settings[i].threshold);
        table_cellf(&table, "%" PRId64, settings[i].steps);
    }
    table_print(&table, &cli->out, 0);
    table_release(&table);
}

static const char *step_text(char out[32], const struct td_finding *f)
{
    if (f->under_way)
        snprintf(out, 32, "unfinished");
    else
        snprintf(out, 32, "%" PRId64, f->step);
    return out;
}

static void print_first(const struct cli *cli, const struct td_finding *f)
{
    char words[160], step[32];
    printf("%sfirst: %s%s, %s: %s (%s)%s\n", term_style(&cli->out, STYLE_BOLD),
           f->under_way ? "the unfinished step" : "step ", f->under_way ? "" : step_text(step, f), f->name,
           f->rule->what, td_finding_words(f, words, sizeof words), term_style(&cli->out, STYLE_PLAIN));
}

static void print_findings(const struct cli *cli, struct td_checker *checker)
{
    static const struct column columns[] = {{"step", true, false, 0},      {"rule", false, false, 0},
                                            {"name", false, true, 0},      {"number", true, false, 0},
                                            {"threshold", true, false, 2}, {"worst", true, false, 3},
                                            {"times", true, false, 1}};
    struct table table;
    char step[32];
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < td_checker_count(checker); i++) {
        const struct td_finding *f = td_checker_finding(checker, i);
        table_cell(&table, step_text(step, f));
        table_cell_styled(&table, i ? STYLE_PLAIN : STYLE_RED, f->rule->name);
        table_cell(&table, f->name);
        table_cellf(&table, "%.4g", f->number);
        table_cellf(&table, "%s%.4g", f->rule->below ? "< " : "> ", f->threshold);
        table_cellf(&table, "%.4g", f->worst);
        table_cellf(&table, "%" PRIu64, f->times);
    }
    table_print(&table, &cli->out, 0);
    table_release(&table);
}

static void print_run(const struct cli *cli, const struct checked *c)
{
    size_t count = td_checker_count(c->checker);
    if (!cli->quiet)
        printf("%s: %" PRIu64 " steps, %" PRIu64 " tensors, %" PRIu64 " scalars: %s%zu finding%s%s\n",
               c->path, td_checker_steps(c->checker), td_checker_tensors(c->checker),
               td_checker_scalars(c->checker), term_style(&cli->out, count ? STYLE_RED : STYLE_GREEN), count,
               count == 1 ? "" : "s", term_style(&cli->out, STYLE_PLAIN));
    if (!count)
        return;
    print_first(cli, td_checker_finding(c->checker, 0));
    if (!cli->quiet)
        print_findings(cli, c->checker);
}

/* --- The command ---------------------------------------------------------------------------------------- */

static tdbg_status read_run(const char *path, const struct td_rule_setting *settings, struct td_checker **out,
                            struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    struct td_checker *checker = NULL;
    TD_TRY(td_run_store_open(&store, path, error));
    tdbg_status status = td_checker_open(&checker, settings, error);
    if (status == TDBG_OK)
        status = td_run_begin(store, error);
    if (status == TDBG_OK)
        status = td_checker_read(checker, store, error);
    if (status == TDBG_OK)
        status = td_run_commit(store, error);
    td_run_store_close(&store);
    if (status == TDBG_OK) {
        *out = checker;
        return TDBG_OK;
    }
    td_checker_close(&checker);
    return status;
}

static int read_runs(const struct td_run_folders *folders, const struct td_rule_setting *settings,
                     struct checked *runs, size_t *count)
{
    struct tdbg_error error;
    int status = EXIT_FINE;
    for (size_t i = 0; i < folders->count; i++) {
        struct checked *c = &runs[*count];
        c->path = folders->paths[i];
        if (read_run(c->path, settings, &c->checker, &error) != TDBG_OK) {
            status = cli_fail(c->path, &error);
            continue;
        }
        if (status == EXIT_FINE && td_checker_count(c->checker))
            status = EXIT_FINDINGS;
        ++*count;
    }
    return status;
}

/* The folders of all paths on the command line, in one list. */
static int gather(const struct args *args, struct td_run_folders *all)
{
    struct tdbg_error error;
    for (int i = 0; i < args->count; i++) {
        struct td_run_folders folders = {0};
        if (td_run_folders_init(&folders, args->operands[i], &error) != TDBG_OK)
            return cli_fail(args->operands[i], &error);
        if (folders.count == 0) {
            td_fail(&error, TDBG_MISUSE, "no recorded run: there is no " TD_RUN_INDEX " in it");
            td_run_folders_release(&folders);
            return cli_fail(args->operands[i], &error);
        }
        char **grown = realloc(all->paths, (all->count + folders.count) * sizeof *grown);
        if (!grown) {
            td_run_folders_release(&folders);
            td_fail_nomem(&error);
            return cli_fail(NULL, &error);
        }
        all->paths = grown;
        for (size_t k = 0; k < folders.count; k++)
            all->paths[all->count++] = folders.paths[k];
        free(folders.paths);
    }
    return EXIT_FINE;
}

static int check(const struct cli *cli, const struct args *args, const struct td_rule_setting *settings)
{
    struct td_run_folders folders = {0};
    struct checked *runs = NULL;
    size_t count = 0;
    int status = gather(args, &folders);
    if (status == EXIT_FINE && !(runs = calloc(folders.count, sizeof *runs)))
        status = EXIT_TROUBLE;
    if (status == EXIT_FINE) {
        status = read_runs(&folders, settings, runs, &count);
        if (cli->json && count)
            write_json(runs, count, settings);
        for (size_t i = 0; !cli->json && i < count; i++)
            print_run(cli, &runs[i]);
    }
    for (size_t i = 0; i < count; i++)
        td_checker_close(&runs[i].checker);
    free(runs);
    td_run_folders_release(&folders);
    return status;
}

static bool apply(const struct check_options *wanted, struct td_rule_setting settings[TD_RULES],
                  struct tdbg_error *error)
{
    td_rules_default(settings);
    for (int i = 0; i < wanted->set.count; i++)
        if (td_rules_set(settings, wanted->set.items[i], error) != TDBG_OK)
            return false;
    for (int i = 0; i < wanted->disable.count; i++)
        if (td_rules_disable(settings, wanted->disable.items[i], error) != TDBG_OK)
            return false;
    return true;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct check_options wanted = {0};
    struct td_rule_setting settings[TD_RULES];
    struct tdbg_error error;
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_check, argc, argv, &wanted, &args, &status))
        return status;
    if (!apply(&wanted, settings, &error))
        return cli_fail_usage(&cmd_check, "%s (--list-rules names them)", error.message);
    if (wanted.list_rules) {
        if (cli->json)
            write_json(NULL, 0, settings);
        else
            list_rules(cli, settings);
        return EXIT_FINE;
    }
    if (args.count == 0)
        return cli_fail_usage(&cmd_check, "no PATH given");
    return check(cli, &args, settings);
}

static const struct option options[] = {
    {"set", 0, OPTION_LIST, offsetof(struct check_options, set), "RULE=VALUE",
     "another threshold; RULE.steps=N: bad for N steps in a row"},
    {"disable", 0, OPTION_LIST, offsetof(struct check_options, disable), "RULE", "leave a rule out"},
    {"list-rules", 0, OPTION_FLAG, offsetof(struct check_options, list_rules), NULL,
     "the rules with their thresholds"},
    {0},
};

const struct command cmd_check = {
    .name = "check",
    .summary = "Find what goes wrong in a recorded run: NaN, gradients, dead layers, a stuck loss.",
    .usage = "RUN...",
    .options = options,
    .run = run,
    .help =
        "A RUN is a folder written by tdbg.record or the C API, finished or still growing, or a folder of\n"
        "ranks. The first offence in the order of execution comes first: what follows is often its\n"
        "consequence. Each rule and name is told once, with how often it was broken. Exit status 1 when\n"
        "there are findings.\n"
        "\n"
        "  tdbg check runs/a\n"
        "  tdbg check runs/a --set dead-relu=0.8 --set vanishing-gradient.steps=10\n"
        "  tdbg check runs/a --disable loss-not-decreasing --json\n"
        "  tdbg check --list-rules\n",
};
