/* cmd_batch.c: `tdbg batch`: many comparisons from one file, and whether each came out as it should. */
#include "cli/cli.h"

#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "report/batch_report.h"

struct batch_values {
    const char *junit;
};

/* --- printing ------------------------------------------------------------------------------------------- */

enum { NAME, PAIRS, DIVERGED, FIRST, KIND, VERDICT, EXPECTED, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {.title = "name", .elastic = true},
    [PAIRS] = {.title = "pairs", .right = true, .drop = 3},
    [DIVERGED] = {.title = "diverged", .right = true, .drop = 2},
    [FIRST] = {.title = "first divergence", .drop = 1},
    [KIND] = {.title = "kind"},
    [VERDICT] = {.title = "verdict"},
    [EXPECTED] = {.title = ""},
};

static void add_row(struct table *table, const struct td_batch_entry *c)
{
    bool ok = td_batch_as_expected(c), failed = c->outcome == TD_FAILED;
    const struct td_diagnosis *d = c->first ? &c->first->diagnosis : NULL;
    table_cell(table, c->name);
    table_cellf(table, "%zu", c->summary.pairs);
    table_cellf(table, "%zu", c->summary.diverged);
    table_cell(table, c->first ? c->first->place : "");
    table_cell(table, d && d->count ? td_mistake_name(d->list[0].kind) : "");
    table_cell_styled(table,
                      ok       ? STYLE_GREEN
                      : failed ? STYLE_YELLOW
                               : STYLE_RED,
                      td_batch_outcome_name(c->outcome));
    if (failed)
        table_cell(table, "");
    else if (!ok)
        table_cellf(table, "expected %s", td_batch_outcome_name(c->expected));
    else
        table_cell(table, c->expected == TD_SAME ? "" : "as expected");
}

static bool print_table(const struct cli *cli, const struct td_batch *batch)
{
    struct table table;
    struct td_batch_summary s = td_batch_summarise(batch);
    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < batch->count; i++)
        if (!cli->quiet || !td_batch_as_expected(&batch->list[i]))
            add_row(&table, &batch->list[i]);
    bool ok = table.cell_count == 0 || table_print(&table, &cli->out, 0);
    table_release(&table);
    if (!cli->quiet)
        printf("\n%zu %s: %zu as expected, %zu not, %zu could not be compared\n", batch->count,
               batch->count == 1 ? "comparison" : "comparisons", batch->count - s.unexpected - s.errors,
               s.unexpected, s.errors);
    return ok;
}

static int print(const struct cli *cli, const struct td_batch *batch)
{
    if (!cli->json)
        return print_table(cli, batch) ? EXIT_FINE : EXIT_TROUBLE;
    struct td_json json;
    td_json_to_file(&json, stdout);
    td_batch_json(&json, batch);
    td_json_newline(&json);
    return td_json_finish(&json) ? EXIT_FINE : EXIT_TROUBLE;
}

static int write_junit(const char *path, const char *name, const struct td_batch *batch)
{
    struct outfile out;
    struct tdbg_error error;
    if (outfile_open(&out, path, &error) != TDBG_OK)
        return cli_fail(path, &error);
    td_batch_junit(out.file, name, batch);
    return outfile_commit(&out, &error) == TDBG_OK ? EXIT_FINE : cli_fail(path, &error);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static int verdict(const struct td_batch *batch)
{
    struct td_batch_summary s = td_batch_summarise(batch);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->list[i].outcome == TD_FAILED)
            cli_fail(batch->list[i].name, &batch->list[i].error);
    return s.errors ? EXIT_TROUBLE : s.unexpected ? EXIT_FINDINGS : EXIT_FINE;
}

static int compare(struct cli *cli, struct td_batch *batch)
{
    struct tdbg_error error;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return EXIT_TROUBLE;
    struct progress *progress = progress_start(cli, "comparing", 0);
    tdbg_status done = td_batch_run(batch, pool, cli->job, &error);
    progress_stop(&progress);
    return done == TDBG_OK ? print(cli, batch) : cli_fail(NULL, &error);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct batch_values values = {0};
    struct td_batch batch;
    struct tdbg_error error;
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_batch, argc, argv, &values, &args, &status))
        return status;
    if (args.count != 1)
        return cli_fail_usage(&cmd_batch, "one FILE.json is run, %d given", args.count);
    const char *path = args.operands[0];
    if (td_batch_read(&batch, path, &error) != TDBG_OK)
        return cli_fail(path, &error);
    status = compare(cli, &batch);
    if (status == EXIT_FINE && values.junit)
        status = write_junit(values.junit, path, &batch);
    if (status == EXIT_FINE)
        status = verdict(&batch);
    td_batch_release(&batch);
    return status;
}

static const struct option options[] = {
    {"junit", 0, OPTION_TEXT, offsetof(struct batch_values, junit), "FILE", "write a JUnit report for CI"},
    {0},
};

const struct command cmd_batch = {
    .name = "batch",
    .summary = "Run many comparisons from one JSON file, for CI.",
    .usage = "FILE.json",
    .options = options,
    .run = run,
    .help =
        "The file names the comparisons; paths in it are relative to the file:\n"
        "\n"
        "  {\"version\": 1,\n"
        "   \"defaults\": {\"policy\": \"noise\"},\n"
        "   \"comparisons\": [\n"
        "     {\"name\": \"prefill\", \"a\": \"hf/prefill\", \"b\": \"ours/prefill\"},\n"
        "     {\"name\": \"weights\", \"a\": \"hf.safetensors\", \"b\": \"ours.gguf\", \"policy\": "
        "\"strict\"},\n"
        "     {\"name\": \"old bug\", \"a\": \"hf/decode\", \"b\": \"old/decode\", \"expect\": "
        "\"diverged\"}]}\n"
        "\n"
        "A comparison takes what 'tdbg diff' takes, under the same names: match, threshold, pairs,\n"
        "names, coverage, policy, rtol, atol, reference, layout. \"defaults\" holds what all of them\n"
        "take; a comparison that names a rule of its own (policy, rtol, atol or reference) is free of\n"
        "the one there.\n"
        "\"expect\" is \"same\" (the default) or \"diverged\". One comparison that fails stops no other.\n"
        "\n"
        "Exit status: 0 all as expected, 1 some not, 2 something could not be read or compared.\n"
        "\n"
        "Examples:\n"
        "  tdbg batch nightly.json\n"
        "  tdbg batch nightly.json --junit report.xml\n"
        "  tdbg batch --json nightly.json | jq -r '.comparisons[] | select(.ok | not) .name'\n",
};
