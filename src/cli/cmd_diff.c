/* cmd_diff.c: `tdbg diff`: where two runs part first, by how much, and what kind of mistake it looks like. */
#include "cli/cli.h"

#include "cli/diff_files.h"
#include "cli/diff_self.h"
#include "cli/diff_text.h"
#include "cli/progress.h"
#include "session/diff_setup.h"

#include <stdlib.h>
#include <string.h>

struct diff_values {
    struct td_diff_setup setup;
    struct diff_files files;
    const char *only;
    int64_t top; /* negative: not given */
};

/* --- which pairs to show -------------------------------------------------------------------------------- */

static bool is_identical(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_IDENTICAL;
}

static bool is_within(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_WITHIN;
}

static bool is_diverged(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_DIVERGED;
}

static bool is_error(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_ERROR;
}

static bool is_unmatched(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_ONLY_A || p->outcome.ruling.verdict == TD_ONLY_B;
}

static bool is_born(const struct td_pair *p)
{
    return p->outcome.origin == TD_BORN;
}

static bool find_filter(const char *name, td_pair_filter **out)
{
    static const struct {
        const char *name;
        td_pair_filter *filter;
    } filters[] = {{"identical", is_identical}, {"within", is_within},       {"diverged", is_diverged},
                   {"errors", is_error},        {"unmatched", is_unmatched}, {"born", is_born}};
    *out = NULL;
    for (size_t i = 0; name && i < sizeof filters / sizeof *filters; i++)
        if (strcmp(filters[i].name, name) == 0)
            *out = filters[i].filter;
    return !name || *out;
}

/* --- the command ---------------------------------------------------------------------------------------- */

static int print(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter)
{
    if (!cli->json)
        return diff_text(cli, diff, filter) ? EXIT_FINE : EXIT_TROUBLE;
    struct td_json json;
    td_json_to_file(&json, stdout);
    td_diff_json(&json, diff, filter);
    td_json_newline(&json);
    return td_json_finish(&json) ? EXIT_FINE : EXIT_TROUBLE;
}

/* Two dumps of which next to nothing is paired do not agree. */
static int outcome(const struct td_diff *diff)
{
    if (diff->result.first || !diff->result.summary.enough)
        return EXIT_FINDINGS;
    return diff->result.summary.errors ? EXIT_TROUBLE : EXIT_FINE;
}

static int compare(struct cli *cli, const struct diff_values *values, char **paths, td_pair_filter *filter)
{
    struct td_pool *pool = cli_pool(cli);
    struct td_diff *diff = NULL;
    struct tdbg_error error;
    if (!pool)
        return EXIT_TROUBLE;
    struct progress *progress = progress_start(cli, "comparing", 0);
    tdbg_status done = td_diff_run(&diff, paths[0], paths[1], &values->setup,
                                   &(struct td_work){pool, cli->job, NULL}, &error);
    progress_stop(&progress);
    if (done != TDBG_OK)
        return cli_fail(NULL, &error);
    int status = print(cli, diff, filter);
    if (status == EXIT_FINE)
        status = diff_files_write(diff, &values->files);
    if (status == EXIT_FINE)
        status = outcome(diff);
    td_diff_close(&diff);
    return status;
}

/* The first option given that means nothing for a file against itself. */
static const char *needs_two(const struct diff_values *v)
{
    const struct {
        const char *name, *value;
    } options[] = {
        {"--match", v->setup.match},         {"--pairs", v->setup.pairs},   {"--names", v->setup.names},
        {"--reference", v->setup.reference}, {"--layout", v->setup.layout}, {"--save-pairs", v->files.pairs},
        {"--html", v->files.html},           {"--junit", v->files.junit},   {"--csv", v->files.csv}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value)
            return options[i].name;
    return NULL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct diff_values values = {.setup = TD_DIFF_SETUP, .top = -1};
    struct args args;
    td_pair_filter *filter;
    int status;
    if (!cli_parse(cli, &cmd_diff, argc, argv, &values, &args, &status))
        return status;
    if (args.count != 1 && args.count != 2)
        return cli_fail_usage(&cmd_diff, "two PATHs are compared, or one with itself; %d given", args.count);
    if (!find_filter(values.only, &filter))
        return cli_fail_usage(&cmd_diff,
                              "--only takes identical, within, diverged, errors, unmatched or born, not '%s'",
                              values.only);
    if (args.count == 1 && needs_two(&values))
        return cli_fail_usage(&cmd_diff, "%s needs two PATHs", needs_two(&values));
    if (args.count == 1)
        return diff_self(cli, args.operands[0], &values.setup, values.top, filter);
    if (values.top >= 0)
        values.setup.top = values.top;
    return compare(cli, &values, args.operands, filter);
}

#define SETUP(field) offsetof(struct diff_values, setup.field)
#define FILES(field) offsetof(struct diff_values, files.field)

static const struct option options[] = {
    {"match", 0, OPTION_TEXT, SETUP(match), "S",
     "how tensors are paired (auto): stage, weights, value, exact, fuzzy, fused, shape, regex:FROM=>TO, "
     "program:CMD, or a chain of them with commas; auto is the first seven, in this order"},
    {"threshold", 0, OPTION_REAL, SETUP(threshold), "X",
     "similarity that fuzzy names need, above 0 and up to 1 (0.6)"},
    {"pairs", 0, OPTION_TEXT, SETUP(pairs), "FILE", "pairs by hand, from a JSON file; they come first"},
    {"names", 0, OPTION_TEXT, SETUP(names), "FILE",
     "what your engine calls its tensors: lines of PATTERN = STAGE, {L} for the layer"},
    {"coverage", 0, OPTION_REAL, SETUP(coverage), "X",
     "share of the side with fewer tensors that needs a partner before they can agree (0.5); half of it "
     "is enough where the model's result agrees"},
    {"save-pairs", 0, OPTION_TEXT, FILES(pairs), "FILE",
     "write the pairs that were found, to edit and use again"},
    {"policy", 0, OPTION_TEXT, SETUP(policy), "P",
     "noise, which follows types and depth (the default), or strict, per type"},
    {"rtol", 0, OPTION_REAL, SETUP(rtol), "X", "relative tolerance for every element (0 with --atol)"},
    {"atol", 0, OPTION_REAL, SETUP(atol), "X", "absolute tolerance for every element (0 with --rtol)"},
    {"reference", 0, OPTION_TEXT, SETUP(reference), "R",
     "a third, more precise run: B may be 3 times as far from it as A"},
    {"layout", 0, OPTION_TEXT, SETUP(layout), "EXPR", "B's axes by hand: 'b h t d -> t h d'"},
    {"top", 0, OPTION_COUNT, offsetof(struct diff_values, top), "K",
     "worst elements to list of each diverged pair (5); of one PATH: pairs to list"},
    {"only", 0, OPTION_TEXT, offsetof(struct diff_values, only), "V",
     "list only pairs that are: identical, within, diverged, errors, unmatched, born"},
    {"html", 0, OPTION_TEXT, FILES(html), "FILE",
     "write one page with chart, table and values, for a browser"},
    {"junit", 0, OPTION_TEXT, FILES(junit), "FILE", "write a JUnit report for CI"},
    {"csv", 0, OPTION_TEXT, FILES(csv), "FILE", "write one row per pair"},
    {0},
};

const struct command cmd_diff = {
    .name = "diff",
    .summary = "Compare two dumps: where they part first, by how much, and why.",
    .usage = "A [B]",
    .help = "A and B are files, folders or archives, of any formats and types, or one tensor or slice of\n"
            "such (PATH:NAME[5, 0:16]). Tensors are paired by their names and values, whatever engines call\n"
            "them, lined up by their values (transposed axes, head order, shards of several ranks), and\n"
            "judged: rounding that the types and the depth explain is no divergence. The first divergence\n"
            "in execution order is diagnosed.\n"
            "\n"
            "One PATH alone is compared with itself: every pair of its tensors, as they come; on a terminal\n"
            "the first 50. Pairs whose shapes do not line up are passed over.\n"
            "\n"
            "Exit status: 0 they agree, 1 they differ or too little is paired to say, 2 something could not\n"
            "be read or compared.\n"
            "\n"
            "Examples:\n"
            "  tdbg diff dumps/hf dumps/ours\n"
            "  tdbg diff dumps/hf dumps/ours --html report.html\n"
            "  tdbg diff hf.tar.gz ours.zip --only diverged --csv pairs.csv\n"
            "  tdbg diff model.safetensors model.gguf --policy strict\n"
            "  tdbg diff a b --match 'regex:blk\\.(\\d+)\\.attn_q=>layers.\\1.q_proj'\n"
            "  tdbg diff bf16 ours --reference fp32\n"
            "  tdbg diff model.safetensors --only identical\n",
    .options = options,
    .run = run,
};
