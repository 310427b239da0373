/* cmd_stats.c: `tdbg stats`: what the values of each tensor are like, in one pass over them. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/operand.h"
#include "cli/table.h"
#include "cli/text.h"
#include "kernel/stats.h"

#include <stdlib.h>

struct stats_options {
    int64_t bins;
};

/* A tensor and what came of it. */
struct row {
    const struct operand *operand;
    const struct td_tensor *tensor;
    struct tdbg_stats stats;
    struct tdbg_error error; /* status OK: none */
};

static void write_row(struct td_json *j, const struct row *row)
{
    const struct td_tensor *t = row->tensor;
    const struct tdbg_stats *s = &row->stats;
    td_json_begin_object(j);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "path", row->operand->target.path);
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
    td_json_end_object(j);
}

static void write_json(struct td_json *j, const struct row *rows, size_t count)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "tensors");
    td_json_begin_array(j);
    for (size_t i = 0; i < count; i++)
        if (rows[i].error.status == TDBG_OK)
            write_row(j, &rows[i]);
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
}

static int stats(struct cli *cli, const struct operands *operands)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < operands->count; i++)
        count += operand_count(&operands->items[i]);
    struct row *rows = calloc(count + 1, sizeof *rows);
    struct td_pool *pool = cli_pool(cli);
    int status = operands->status;
    if (!rows || !pool) {
        free(rows);
        return EXIT_TROUBLE;
    }
    for (size_t i = 0; i < operands->count; i++)
        for (size_t k = 0; k < operand_count(&operands->items[i]); k++, at++) {
            struct row *row = &rows[at];
            row->operand = &operands->items[i];
            row->tensor = operand_tensor(row->operand, k);
            if (td_input_stats(row->tensor, pool, cli->job, &row->stats, &row->error) != TDBG_OK) {
                status = cli_fail(cli, row->tensor->name, &row->error);
                if (status == EXIT_INTERRUPTED)
                    break;
            } else {
                row->error.status = TDBG_OK;
            }
        }
    struct td_json json;
    td_json_to_file(&json, stdout);
    write_json(&json, rows, count);
    if (!td_json_finish(&json))
        status = EXIT_TROUBLE;
    free(rows);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct stats_options values = {0};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_stats, argc, argv, &values, &args, &status))
        return status;
    if (args.count == 0)
        return cli_fail_usage(&cmd_stats, "no PATH given");
    struct operands operands;
    operands_open(cli, &args, &operands);
    status = operands.count > 0 ? stats(cli, &operands) : operands.status;
    operands_release(&operands);
    return status;
}

static const struct option options[] = {
    {"hist", 0, OPTION_COUNT, offsetof(struct stats_options, bins), "N", "a histogram of N bins"},
    {0},
};

const struct command cmd_stats = {
    .name = "stats",
    .summary = "Statistics of each tensor: mean, std, min, max, NaN and Inf.",
    .usage = "PATH...",
    .options = options,
    .run = run,
    .help = "",
};
