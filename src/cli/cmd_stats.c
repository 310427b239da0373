/* cmd_stats.c: `tdbg stats`: what the values of each tensor are like, in one pass over them. */
#include "cli/cli.h"

#include "cli/histogram.h"
#include "cli/operand.h"
#include "cli/progress.h"
#include "cli/skips.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/views.h"
#include "report/stats_json.h"
#include "session/run_folder.h"

#include <inttypes.h>
#include <stdlib.h>

struct stats_options {
    int64_t bins; /* -1: no histogram */
};

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void write_json(const struct td_stats_rows *r, const struct operands *operands)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_stats_rows_json(j, r);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    td_stats_skips_json(j, r);
    skips_write(j, operands);
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
    (void)td_json_finish(j); /* stdout remembers */
}

/* --- Table ---------------------------------------------------------------------------------------------- */

enum { NAME, DTYPE, SHAPE, MEAN, STD, MIN, MAX, ABSMAX, NORM, ZEROS, NANS, INFS, SPARK, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", false, true, 0},        [DTYPE] = {"dtype", false, false, 4},
    [SHAPE] = {"shape", false, false, 5},     [MEAN] = {"mean", true, false, 0},
    [STD] = {"std", true, false, 0},          [MIN] = {"min", true, false, 0},
    [MAX] = {"max", true, false, 0},          [ABSMAX] = {"absmax", true, false, 8},
    [NORM] = {"norm", true, false, 7},        [ZEROS] = {"zeros", true, false, 6},
    [NANS] = {"nan", true, false, 0},         [INFS] = {"inf", true, false, 0},
    [SPARK] = {"histogram", false, false, 1},
};

static void add_number(struct table *table, double value)
{
    table_cellf(table, "%.5g", value);
}

static void add_count(struct table *table, uint64_t count)
{
    char text[TD_NUMBER_SIZE];
    td_number_uint(text, count);
    table_cell_styled(table, count ? STYLE_RED : STYLE_DIM, text);
}

static void add_row(struct table *table, const struct term *term, const struct td_stats_rows *r,
                    const struct td_stats_row *row)
{
    const struct tdbg_stats *s = &row->stats;
    char shape[SHAPE_TEXT], spark[SPARK_TEXT];
    table_cell(table, row->tensor->name);
    table_cell(table, td_dtype_name(row->tensor->dtype));
    table_cell(table, text_shape(shape, &row->tensor->shape));
    add_number(table, s->mean);
    add_number(table, s->std);
    add_number(table, s->min);
    add_number(table, s->max);
    add_number(table, s->absmax);
    add_number(table, s->norm);
    table_cellf(table, "%" PRIu64, s->zeros);
    add_count(table, s->nan);
    add_count(table, s->inf);
    table_cell(table, row->counts ? histogram_spark(spark, term, row->counts, r->bins) : "");
}

static void print_table(const struct cli *cli, const struct td_stats_rows *r)
{
    struct table table;
    uint64_t nans = 0, infs = 0, hidden = 0;
    size_t good = 0;
    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < r->count; i++) {
        if (r->rows[i].error.status != TDBG_OK)
            continue;
        add_row(&table, &cli->out, r, &r->rows[i]);
        nans += r->rows[i].stats.nan;
        infs += r->rows[i].stats.inf;
        good++;
    }
    hidden |= nans ? 0 : UINT64_C(1) << NANS;
    hidden |= infs ? 0 : UINT64_C(1) << INFS;
    hidden |= r->bins && r->count > 1 ? 0 : UINT64_C(1) << SPARK;
    if (good)
        table_print(&table, &cli->out, hidden);
    table_release(&table);
    if (r->bins && r->count == 1 && good == 1 && r->rows[0].counts)
        histogram_print(&cli->out, r, &r->rows[0]);
}

/* --- The command ---------------------------------------------------------------------------------------- */

static int report(struct cli *cli, const struct td_stats_rows *r, const struct operands *operands)
{
    int status = operands->status;
    if (cli->json) {
        write_json(r, operands);
    } else {
        print_table(cli, r);
        skips_print(cli, operands);
    }
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].error.status != TDBG_OK)
            status = skips_fail(&r->rows[i]);
    return status;
}

/* What was recorded without values, of each operand that is a run; the lists are as many as the operands. */
static tdbg_status recorded_open(struct td_recorded_list *lists, const struct operands *operands,
                                 struct tdbg_error *error)
{
    for (size_t i = 0; i < operands->count; i++)
        if (!operands->items[i].named)
            TD_TRY(td_recorded_list_init(&lists[i], operands->items[i].target.path, error));
    return TDBG_OK;
}

static void recorded_close(struct td_recorded_list *lists, size_t count)
{
    for (size_t i = 0; lists && i < count; i++)
        td_recorded_list_release(&lists[i]);
    free(lists);
}

static void fill_rows(struct td_stats_rows *r, const struct operands *operands,
                      const struct td_recorded_list *lists)
{
    for (size_t i = 0, at = 0; i < operands->count; i++) {
        const struct operand *o = &operands->items[i];
        for (size_t k = 0; k < lists[i].count; k++, at++) {
            free(r->rows[at].edges);
            free(r->rows[at].counts);
            r->rows[at] = (struct td_stats_row){.tensor = &lists[i].items[k].tensor,
                                                .path = o->target.path,
                                                .slice = "",
                                                .known = true,
                                                .stats = lists[i].items[k].stats};
        }
        for (size_t k = 0; k < operand_count(o); k++, at++)
            r->rows[at] =
                (struct td_stats_row){.tensor = o->named ? &o->selection.part : operand_tensor(o, k),
                                      .path = o->target.path,
                                      .slice = o->named ? o->slice : "",
                                      .unsliceable = o->named && !o->selection.whole,
                                      .edges = r->rows[at].edges,
                                      .counts = r->rows[at].counts};
    }
}

static size_t row_count(const struct operands *operands, const struct td_recorded_list *lists)
{
    size_t count = 0;
    for (size_t i = 0; i < operands->count; i++)
        count += operand_count(&operands->items[i]) + lists[i].count;
    return count;
}

static int measure(struct cli *cli, const struct operands *operands, const struct td_recorded_list *lists,
                   int bins)
{
    struct td_stats_rows rows;
    struct tdbg_error error;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return EXIT_TROUBLE;
    if (td_stats_rows_init(&rows, row_count(operands, lists), bins, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    fill_rows(&rows, operands, lists);
    struct progress *progress = progress_start(cli, "statistics", td_stats_rows_bytes(&rows));
    tdbg_status status = td_stats_rows_measure(&rows, pool, cli->job, &error);
    progress_stop(&progress);
    int code = status == TDBG_OK ? report(cli, &rows, operands) : cli_fail(NULL, &error);
    td_stats_rows_release(&rows);
    return code;
}

int stats_print(struct cli *cli, const struct operands *operands, int bins)
{
    struct tdbg_error error;
    struct td_recorded_list *lists = calloc(operands->count, sizeof *lists);
    tdbg_status status = lists ? recorded_open(lists, operands, &error) : td_fail_nomem(&error);
    int code = status == TDBG_OK ? measure(cli, operands, lists, bins) : cli_fail(NULL, &error);
    recorded_close(lists, operands->count);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct stats_options wanted = {.bins = -1};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_stats, argc, argv, &wanted, &args, &status))
        return status;
    if (args.count == 0)
        return cli_fail_usage(&cmd_stats, "no PATH given");
    if (wanted.bins == 0 || wanted.bins > TD_MAX_BINS)
        return cli_fail_usage(&cmd_stats, "--hist takes 1 to %d bins", TD_MAX_BINS);
    struct operands operands;
    operands_open(cli, &args, &operands);
    status = operands.count > 0 ? stats_print(cli, &operands, wanted.bins > 0 ? (int)wanted.bins : 0)
                                : operands.status;
    operands_release(&operands);
    return status;
}

static const struct option options[] = {
    {"hist", 0, OPTION_COUNT, offsetof(struct stats_options, bins), "N",
     "a histogram of N bins from min to max, N up to 65536"},
    {0},
};

const struct command cmd_stats = {
    .name = "stats",
    .summary = "Statistics of each tensor: mean, std, min, max, NaN and Inf.",
    .usage = "PATH...",
    .options = options,
    .run = run,
    .help =
        "A PATH is a file, folder or archive, or PATH:NAME for one tensor, PATH:NAME[slice] for a part of "
        "it.\n"
        "Everything is computed over the finite values in double precision, std with n - 1; NaN and Inf are\n"
        "counted beside. Complex values count by their modulus. The answer is the same, bit for bit, on any\n"
        "CPU and number of threads. A narrow terminal leaves columns out; --json has them all.\n"
        "\n"
        "Examples:\n"
        "  tdbg stats model.safetensors\n"
        "  tdbg stats dumps/ --hist 32\n"
        "  tdbg stats 'ckpt.pth:embed.weight[:1000]' --hist 20\n"
        "  tdbg stats --json dumps.zip | jq -r '.tensors[] | select(.nan > 0) .name'\n",
};
