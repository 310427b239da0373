/* cmd_stats.c: `tdbg stats`: what the values of each tensor are like, in one pass over them. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/histogram.h"
#include "cli/operand.h"
#include "cli/progress.h"
#include "cli/skips.h"
#include "cli/stats_rows.h"
#include "cli/table.h"
#include "cli/text.h"

#include <inttypes.h>

struct stats_options {
    int64_t bins; /* -1: no histogram */
};

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void write_histogram(struct td_json *j, const struct stats_rows *r, const struct stats_row *row)
{
    td_json_key(j, "hist");
    td_json_begin_object(j);
    td_json_key(j, "edges");
    td_json_begin_array(j);
    for (int i = 0; i <= r->bins; i++)
        td_json_number(j, row->edges[i]);
    td_json_end_array(j);
    td_json_key(j, "counts");
    td_json_begin_array(j);
    for (int i = 0; i < r->bins; i++)
        td_json_uint(j, row->counts[i]);
    td_json_end_array(j);
    td_json_end_object(j);
}

static void write_row(struct td_json *j, const struct stats_rows *r, const struct stats_row *row)
{
    const struct td_tensor *t = row->tensor;
    const struct tdbg_stats *s = &row->stats;
    td_json_begin_object(j);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "path", row->operand->target.path);
    if (row->operand->named && *row->operand->slice)
        td_json_field_string(j, "slice", row->operand->slice);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_field_uint(j, "count", s->count);
    td_json_field_uint(j, "finite", s->finite);
    td_json_field_uint(j, "nan", s->nan);
    td_json_field_uint(j, "inf", s->inf);
    td_json_field_uint(j, "zeros", s->zeros);
    td_json_field_number(j, "mean", s->mean);
    td_json_field_number(j, "std", s->std);
    td_json_field_number(j, "min", s->min);
    td_json_field_number(j, "max", s->max);
    td_json_field_number(j, "absmax", s->absmax);
    td_json_field_number(j, "norm", s->norm);
    if (row->counts)
        write_histogram(j, r, row);
    td_json_end_object(j);
}

static void write_json(const struct stats_rows *r, const struct operands *operands)
{
    struct td_json json, *j = &json;
    char reason[512];
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "tensors");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].error.status == TDBG_OK)
            write_row(j, r, &r->rows[i]);
    td_json_end_array(j);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].error.status != TDBG_OK)
            skips_write_one(j, r->rows[i].tensor->name, r->rows[i].operand->target.path,
                            td_error_text(&r->rows[i].error, reason, sizeof reason));
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

static void add_row(struct table *table, const struct term *term, const struct stats_rows *r,
                    const struct stats_row *row)
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

static void print_table(const struct cli *cli, const struct stats_rows *r)
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
    if (r->bins && r->count == 1 && good == 1)
        histogram_print(&cli->out, r, &r->rows[0]);
}

/* --- The command ---------------------------------------------------------------------------------------- */

static int report(struct cli *cli, const struct stats_rows *r, const struct operands *operands)
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
            status = cli_fail(r->rows[i].tensor->name, &r->rows[i].error);
    return status;
}

static int stats(struct cli *cli, const struct operands *operands, int bins)
{
    struct stats_rows rows;
    struct tdbg_error error;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return EXIT_TROUBLE;
    struct progress *progress = progress_start(cli, "statistics", stats_rows_bytes(operands, bins));
    tdbg_status status = stats_rows_init(&rows, operands, bins, pool, cli->job, &error);
    progress_stop(&progress);
    if (status != TDBG_OK)
        return cli_fail(NULL, &error);
    int code = report(cli, &rows, operands);
    stats_rows_release(&rows);
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
    status =
        operands.count > 0 ? stats(cli, &operands, wanted.bins > 0 ? (int)wanted.bins : 0) : operands.status;
    operands_release(&operands);
    return status;
}

static const struct option options[] = {
    {"hist", 0, OPTION_COUNT, offsetof(struct stats_options, bins), "N",
     "a histogram of N bins from min to max"},
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
        "  tdbg stats model.safetensors\n"
        "  tdbg stats dumps/ --hist 32\n"
        "  tdbg stats 'ckpt.pth:embed.weight[:1000]' --hist 20\n"
        "  tdbg stats --json dumps.zip | jq -r '.tensors[] | select(.nan > 0) .name'\n",
};
