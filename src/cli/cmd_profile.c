/* cmd_profile.c: `tdbg profile`: where the time of a recorded run or a trace goes. */
#include "cli/cli.h"

#include "cli/outfile.h"
#include "cli/profile_compare.h"
#include "cli/profile_ranks.h"
#include "cli/profile_rows.h"
#include "cli/profile_text.h"
#include "cli/progress.h"
#include "report/flame.h"
#include "report/perfetto.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct profile_options {
    int64_t depth, top;
    const char *sort, *compare;
    const char *perfetto, *flame, *collapsed; /* files to write */
    bool flat, series;
};

static bool sort_of(const char *text, enum profile_sort *out)
{
    static const char *const names[] = {[SORT_TOTAL] = "total",
                                        [SORT_SELF] = "self",
                                        [SORT_CALLS] = "calls",
                                        [SORT_NAME] = "name",
                                        [SORT_ORDER] = "order"};
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum profile_sort)i;
            return true;
        }
    return !text;
}

/* --- One profile ---------------------------------------------------------------------------------------- */

static int open_source(struct cli *cli, const char *path, struct td_profile_source *out)
{
    struct tdbg_error error;
    struct stat facts;
    uint64_t size = stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? (uint64_t)facts.st_size : 0;
    struct progress *progress = progress_start(cli, "profile", size);
    tdbg_status status = td_profile_source_open(out, path, cli->job, &error);
    progress_stop(&progress);
    return status == TDBG_OK ? EXIT_FINE : cli_fail(path, &error);
}

static bool write_json(const char *path, const struct td_profile_source *source,
                       const struct td_findings *findings, const struct profile_view *view)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_field_string(j, "path", path);
    bool good = profile_write(j, source, findings, view);
    td_json_end_object(j);
    td_json_newline(j);
    return td_json_finish(j) && good;
}

static int report(struct cli *cli, const char *path, const struct td_profile_source *source,
                  const struct profile_view *view)
{
    struct td_findings findings;
    struct tdbg_error error;
    if (td_profile_find_findings(&source->profile, &findings, &error) != TDBG_OK)
        return cli_fail(path, &error);
    if (cli->json)
        return write_json(path, source, &findings, view) ? EXIT_FINE : EXIT_TROUBLE;
    profile_print_head(cli, path, source);
    if (source->profile.node_count > 1 && !profile_print_table(cli, &source->profile, view))
        return EXIT_TROUBLE;
    profile_print_findings(cli, &findings);
    return EXIT_FINE;
}

/* --- Files ---------------------------------------------------------------------------------------------- */

static int write_perfetto(struct cli *cli, const char *run, const char *file)
{
    struct td_run_store *store = NULL;
    struct outfile out;
    struct tdbg_error error;
    if (td_run_store_open(&store, run, &error) != TDBG_OK)
        return cli_fail(run, &error);
    int code = EXIT_FINE;
    tdbg_status status = outfile_open(&out, file, &error);
    if (status != TDBG_OK) {
        code = cli_fail(file, &error);
    } else if (td_perfetto_write(out.file, store, cli->job, &error) != TDBG_OK) {
        outfile_discard(&out);
        code = cli_fail(run, &error);
    } else if (outfile_commit(&out, &error) != TDBG_OK) {
        code = cli_fail(file, &error);
    }
    td_run_store_close(&store);
    return code;
}

static int write_picture(const char *file, const struct td_profile *profile, const char *title, bool svg)
{
    struct outfile out;
    struct tdbg_error error;
    tdbg_status status = outfile_open(&out, file, &error);
    if (status == TDBG_OK) {
        if (svg)
            td_flame_svg(out.file, profile, title);
        else
            td_flame_collapsed(out.file, profile);
        status = outfile_commit(&out, &error);
    }
    return status == TDBG_OK ? EXIT_FINE : cli_fail(file, &error);
}

static int write_files(struct cli *cli, const char *path, const struct td_profile_source *source,
                       const struct profile_options *wanted)
{
    int status = EXIT_FINE;
    if (wanted->perfetto)
        status = source->is_run
                     ? write_perfetto(cli, path, wanted->perfetto)
                     : cli_fail_usage(&cmd_profile, "--perfetto takes a RUN; %s is a trace already", path);
    if (status == EXIT_FINE && wanted->flame)
        status = write_picture(wanted->flame, &source->profile, path, true);
    if (status == EXIT_FINE && wanted->collapsed)
        status = write_picture(wanted->collapsed, &source->profile, path, false);
    return status;
}

/* --- The command ---------------------------------------------------------------------------------------- */

static int profile_one(struct cli *cli, const char *path, const struct profile_options *wanted,
                       const struct profile_view *view)
{
    struct td_profile_source source, other;
    int status = open_source(cli, path, &source);
    if (status != EXIT_FINE)
        return status;
    status = write_files(cli, path, &source, wanted);
    if (status != EXIT_FINE) {
        /* told already */
    } else if (!wanted->compare) {
        status = report(cli, path, &source, view);
    } else if ((status = open_source(cli, wanted->compare, &other)) == EXIT_FINE) {
        status = profile_report_comparison(cli, wanted->compare, &other.profile, path, &source.profile, view);
        td_profile_source_close(&other);
    }
    td_profile_source_close(&source);
    return status;
}

static int profile(struct cli *cli, const char *path, const struct profile_options *wanted,
                   const struct profile_view *view)
{
    struct tdbg_error error;
    int *ranks, status;
    size_t count;
    if (td_profile_ranks(path, &ranks, &count, &error) != TDBG_OK)
        return cli_fail(path, &error);
    if (count && (wanted->compare || wanted->perfetto || wanted->flame || wanted->collapsed))
        status = cli_fail_usage(&cmd_profile, "%s holds several ranks; take one: %s/rank-%d", path, path,
                                ranks[0]);
    else if (count)
        status = profile_report_ranks(cli, path, ranks, count, view);
    else
        status = profile_one(cli, path, wanted, view);
    free(ranks);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct profile_options wanted = {.depth = -1, .top = 40};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_profile, argc, argv, &wanted, &args, &status))
        return status;
    if (args.count != 1)
        return cli_fail_usage(&cmd_profile,
                              args.count ? "one RUN or TRACE at a time" : "no RUN or TRACE given");
    struct profile_view view = {
        .depth = wanted.depth, .top = wanted.top, .flat = wanted.flat, .series = wanted.series};
    if (!sort_of(wanted.sort, &view.sort))
        return cli_fail_usage(&cmd_profile, "--sort takes total, self, calls, name or order, not '%s'",
                              wanted.sort);
    return profile(cli, args.operands[0], &wanted, &view);
}

#define AT(field) offsetof(struct profile_options, field)

static const struct option options[] = {
    {"depth", 0, OPTION_COUNT, AT(depth), "N", "the upper N levels of the tree only"},
    {"top", 0, OPTION_COUNT, AT(top), "N", "the N heaviest scopes (40; 0: all)"},
    {"sort", 0, OPTION_TEXT, AT(sort), "KEY",
     "total (the default), self, calls, name, or order of first call"},
    {"compare", 0, OPTION_TEXT, AT(compare), "OTHER",
     "what became slower or faster than in OTHER, beyond the noise of the steps"},
    {"perfetto", 0, OPTION_TEXT, AT(perfetto), "FILE", "write the RUN as a Chrome trace for ui.perfetto.dev"},
    {"flame", 0, OPTION_TEXT, AT(flame), "FILE", "write a flame graph as SVG"},
    {"collapsed", 0, OPTION_TEXT, AT(collapsed), "FILE", "write collapsed stacks, self time in nanoseconds"},
    {"flat", 0, OPTION_FLAG, AT(flat), NULL, "by name, wherever it was called, instead of the tree"},
    {"series", 0, OPTION_FLAG, AT(series), NULL, "with --json: the time of each scope in each step"},
    {0},
};

const struct command cmd_profile = {
    .name = "profile",
    .summary = "Where the time goes, layer by layer.",
    .usage = "RUN|TRACE",
    .options = options,
    .run = run,
    .help =
        "A RUN is a folder recorded through libtdbg or tdbg.record; also while it grows. A TRACE is what\n"
        "torch.profiler exports (export_chrome_trace), what ONNX Runtime writes (enable_profiling), or any\n"
        "other JSON of Chrome's trace events, plain or compressed, of any size.\n"
        "\n"
        "total: time of a scope with all it calls. self: without. share: of the time of all threads.\n"
        "p50/step, p90, p99: how its time a step spreads over the steps. Self times add up to the whole.\n"
        "What stands out follows the table, each time with the number it rests on.\n"
        "\n"
        "Exit status: 0 fine, 1 with --compare when a scope is slower than in OTHER, 2 trouble.\n"
        "\n"
        "Examples:\n"
        "  tdbg profile runs/a\n"
        "  tdbg profile runs/new --compare runs/old\n"
        "  tdbg profile runs/a --flame a.svg --perfetto a.json\n"
        "  tdbg profile trace.json.gz --flat --top 20\n"
        "  tdbg profile --json runs/a | jq '.scopes[] | select(.share > 0.1) | .path'\n",
};
