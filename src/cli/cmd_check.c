/* cmd_check.c: `tdbg check`: what went wrong in a recorded run, the first offence first, or in stored
 * tensors.
 *
 * The rules and what they find are in analyse/rules.h, how they are fed in checked.h; here they are set, and
 * what they found is told. A folder of ranks is checked rank by rank.
 */
#include "cli/cli.h"

#include "base/number.h"
#include "cli/checked.h"
#include "cli/table.h"
#include "cli/text.h"
#include "report/check_json.h"
#include "store/run_folders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct check_options {
    struct option_list set, disable;
    const char *as;
    bool list_rules;
};

struct checks {
    struct checked *items;
    size_t count;
    int status;
};

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void write_fits(struct td_json *j, const struct checked *c)
{
    td_json_key(j, "fits");
    td_json_begin_array(j);
    for (size_t i = 0; i < c->fit_count; i++) {
        const struct fit *f = &c->fits[i];
        td_json_begin_object(j);
        td_json_field_string(j, "name", f->name);
        td_json_field_string(j, "dtype", f->dtype);
        td_json_field_uint(j, "count", f->count);
        td_json_field_uint(j, "beyond", f->counts.beyond);
        td_json_field_uint(j, "lost", f->counts.lost);
        td_json_field_uint(j, "subnormal", f->counts.subnormal);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

static void write_checked(struct td_json *j, const struct checked *c)
{
    td_json_begin_object(j);
    td_json_field_string(j, "path", c->path);
    if (c->run)
        td_json_field_uint(j, "steps", td_checker_steps(c->checker));
    td_json_field_uint(j, "tensors", td_checker_tensors(c->checker));
    if (c->run)
        td_json_field_uint(j, "scalars", td_checker_scalars(c->checker));
    td_json_key(j, "first");
    if (td_checker_count(c->checker))
        td_finding_json(j, td_checker_finding(c->checker, 0));
    else
        td_json_null(j);
    td_json_key(j, "findings");
    td_findings_json(j, c->checker);
    if (c->fits)
        write_fits(j, c);
    td_json_end_object(j);
}

static void write_kind(struct td_json *j, const struct checks *all, const char *key, bool run)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].run == run)
            write_checked(j, &all->items[i]);
    td_json_end_array(j);
}

static void write_json(const struct checks *all, const struct td_rule_setting *settings)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    write_kind(j, all, "runs", true);
    write_kind(j, all, "inputs", false);
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

static void print_first(const struct cli *cli, const struct td_finding *f, bool run)
{
    char words[160], step[32];
    const char *before = !run ? "" : f->under_way ? "the unfinished step" : "step ";
    printf("%sfirst: %s%s%s%s: %s (%s)%s\n", term_style(&cli->out, STYLE_BOLD), before,
           run && !f->under_way ? step_text(step, f) : "", run ? ", " : "", f->name, f->rule->what,
           td_finding_words(f, words, sizeof words), term_style(&cli->out, STYLE_PLAIN));
}

enum { STEP, RULE, NAME, NUMBER, THRESHOLD, WORST, TIMES, COLUMNS };

static void print_findings(const struct cli *cli, struct td_checker *checker, bool run)
{
    static const struct column columns[COLUMNS] = {
        [STEP] = {"step", true, false, 0},           [RULE] = {"rule", false, false, 0},
        [NAME] = {"name", false, true, 0},           [NUMBER] = {"number", true, false, 0},
        [THRESHOLD] = {"threshold", true, false, 2}, [WORST] = {"worst", true, false, 3},
        [TIMES] = {"times", true, false, 1}};
    const uint64_t only_runs = UINT64_C(1) << STEP | UINT64_C(1) << WORST | UINT64_C(1) << TIMES;
    struct table table;
    char step[32];
    table_init(&table, columns, COLUMNS);
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
    table_print(&table, &cli->out, run ? 0 : only_runs);
    table_release(&table);
}

static void add_count(struct table *table, uint64_t count, enum style style)
{
    char text[TD_NUMBER_SIZE];
    td_number_uint(text, count);
    table_cell_styled(table, count ? style : STYLE_DIM, text);
}

static void print_fits(const struct cli *cli, const struct checked *c, const char *as)
{
    static const struct column columns[] = {{"name", false, true, 0},  {"dtype", false, false, 1},
                                            {"count", true, false, 0}, {"beyond", true, false, 0},
                                            {"lost", true, false, 0},  {"subnormal", true, false, 0}};
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->fit_count; i++) {
        const struct fit *f = &c->fits[i];
        table_cell(&table, f->name);
        table_cell(&table, f->dtype);
        table_cellf(&table, "%" PRIu64, f->count);
        add_count(&table, f->counts.beyond, STYLE_RED);
        add_count(&table, f->counts.lost, STYLE_YELLOW);
        add_count(&table, f->counts.subnormal, STYLE_PLAIN);
    }
    printf("%sas %s:%s\n", term_style(&cli->out, STYLE_BOLD), as, term_style(&cli->out, STYLE_PLAIN));
    if (c->fit_count)
        table_print(&table, &cli->out, 0);
    table_release(&table);
}

static void print_count(uint64_t count, const char *what)
{
    printf("%" PRIu64 " %s%s", count, what, text_plural(count));
}

static void print_summary(const struct cli *cli, const struct checked *c)
{
    size_t count = td_checker_count(c->checker);
    printf("%s: ", c->path);
    if (c->run) {
        print_count(td_checker_steps(c->checker), "step");
        printf(", ");
    }
    print_count(td_checker_tensors(c->checker), "tensor");
    if (c->run) {
        printf(", ");
        print_count(td_checker_scalars(c->checker), "scalar");
    }
    printf(": %s", term_style(&cli->out, count ? STYLE_RED : STYLE_GREEN));
    print_count(count, "finding");
    printf("%s\n", term_style(&cli->out, STYLE_PLAIN));
}

static void print_checked(const struct cli *cli, const struct checked *c, const char *as)
{
    if (!cli->quiet)
        print_summary(cli, c);
    if (td_checker_count(c->checker)) {
        print_first(cli, td_checker_finding(c->checker, 0), c->run);
        if (!cli->quiet)
            print_findings(cli, c->checker, c->run);
    }
    if (c->fits && !cli->quiet)
        print_fits(cli, c, as);
}

/* --- The command ---------------------------------------------------------------------------------------- */

/* Trouble counts more than findings, and they more than nothing. */
static void worsen(struct checks *all, int status)
{
    if (status > all->status)
        all->status = status;
}

static struct checked *new_item(struct checks *all)
{
    struct checked *grown = realloc(all->items, (all->count + 1) * sizeof *grown);
    if (!grown) {
        worsen(all, EXIT_TROUBLE);
        return NULL;
    }
    all->items = grown;
    grown[all->count] = (struct checked){0};
    return &grown[all->count];
}

static void keep(struct checks *all, int status)
{
    bool done = status == EXIT_FINE || status == EXIT_FINDINGS;
    worsen(all, done && all->items[all->count].partial ? EXIT_TROUBLE : status);
    all->count += done;
}

static void check_operand(struct cli *cli, const char *operand, const struct td_rule_setting *settings,
                          enum td_dtype as, struct checks *all)
{
    struct td_run_folders folders = {0};
    struct tdbg_error error;
    struct checked *item;
    if (td_run_folders_init(&folders, operand, &error) != TDBG_OK) {
        worsen(all, cli_fail(operand, &error));
        return;
    }
    for (size_t i = 0; i < folders.count && (item = new_item(all)); i++)
        keep(all, checked_run(folders.paths[i], settings, item));
    if (folders.count == 0 && (item = new_item(all)))
        keep(all, checked_input(cli, operand, settings, as, item));
    td_run_folders_release(&folders);
}

static int check(struct cli *cli, const struct args *args, const struct td_rule_setting *settings,
                 enum td_dtype as)
{
    struct checks all = {.status = EXIT_FINE};
    for (int i = 0; i < args->count && !td_job_cancelled(cli->job); i++)
        check_operand(cli, args->operands[i], settings, as, &all);
    if (cli->json && all.count)
        write_json(&all, settings);
    for (size_t i = 0; !cli->json && i < all.count; i++)
        print_checked(cli, &all.items[i], as < TD_DTYPES ? td_dtype_name(as) : "");
    for (size_t i = 0; i < all.count; i++)
        checked_release(&all.items[i]);
    free(all.items);
    return all.status;
}

/* TD_DTYPES where no type was asked for; false: there is no such type. */
static bool parse_type(const char *text, enum td_dtype *out)
{
    struct td_range range;
    *out = TD_DTYPES;
    for (int d = 0; text && d < TD_PLAIN_DTYPES; d++)
        if (strcmp(td_dtype_name((enum td_dtype)d), text) == 0)
            *out = (enum td_dtype)d;
    return !text || (*out < TD_DTYPES && td_range_of(*out, &range));
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
    enum td_dtype as;
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_check, argc, argv, &wanted, &args, &status))
        return status;
    if (!apply(&wanted, settings, &error))
        return cli_fail_usage(&cmd_check, "%s (--list-rules names them)", error.message);
    if (!parse_type(wanted.as, &as))
        return cli_fail_usage(&cmd_check,
                              "--as takes float32, float16, bfloat16, float8_e4m3fn or float8_e5m2, not '%s'",
                              wanted.as);
    if (wanted.list_rules) {
        if (cli->json)
            write_json(&(struct checks){0}, settings);
        else
            list_rules(cli, settings);
        return EXIT_FINE;
    }
    if (args.count == 0)
        return cli_fail_usage(&cmd_check, "no PATH given");
    return check(cli, &args, settings, as);
}

static const struct option options[] = {
    {"set", 0, OPTION_LIST, offsetof(struct check_options, set), "RULE=VALUE",
     "another threshold; RULE.steps=N: bad for N steps in a row"},
    {"disable", 0, OPTION_LIST, offsetof(struct check_options, disable), "RULE", "leave a rule out"},
    {"as", 0, OPTION_TEXT, offsetof(struct check_options, as), "DTYPE",
     "what stored tensors would lose in float32, float16, bfloat16, float8_e4m3fn or float8_e5m2"},
    {"list-rules", 0, OPTION_FLAG, offsetof(struct check_options, list_rules), NULL,
     "the rules with their thresholds"},
    {0},
};

const struct command cmd_check = {
    .name = "check",
    .summary = "Find what goes wrong: NaN, gradients, dead layers, a stuck loss, numbers a type cannot hold.",
    .usage = "RUN/PATH...",
    .options = options,
    .run = run,
    .help =
        "A RUN is a folder written by tdbg.record or the C API, finished or still growing, or a folder of\n"
        "ranks. The first offence in the order of execution comes first: what follows is often its\n"
        "consequence. Each rule and name is told once, with how often it was broken.\n"
        "\n"
        "Any other PATH is an input like those of 'tdbg stats'. Its tensors go through the rules that need\n"
        "no steps. --as says how many of their finite values would be infinite in another type (beyond),\n"
        "zero (lost), or short of digits (subnormal).\n"
        "\n"
        "Exit status: 0 nothing found, 1 findings, or values beyond the type of --as, 2 trouble.\n"
        "\n"
        "Examples:\n"
        "  tdbg check runs/a\n"
        "  tdbg check runs/a --set dead-relu=0.8 --set vanishing-gradient.steps=10\n"
        "  tdbg check runs/a --disable loss-not-decreasing --json\n"
        "  tdbg check model.safetensors --as float16\n"
        "  tdbg check --list-rules\n",
};
