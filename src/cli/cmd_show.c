/* cmd_show.c: `tdbg show`: the values of one tensor, or of a slice of it. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/operand.h"
#include "cli/text.h"
#include "cli/values.h"

#include <stdlib.h>

struct show_options {
    int64_t count;
};

/* The first `count` elements of the selection, nested as `shape`. Brackets open and close where an index
 * starts and ends over. */
static tdbg_status write_values(struct td_json *j, struct values *values, const struct td_shape *shape,
                                int64_t count, struct td_job *job, struct tdbg_error *error)
{
    int64_t index[TD_MAX_DIMS] = {0};
    for (int i = 0; i < shape->ndim; i++)
        td_json_begin_array(j);
    for (int64_t i = 0; i < count; i++) {
        struct value value;
        TD_TRY(values_get(values, i, &value, error));
        values_write(j, values, &value);
        if (i % VALUES_CHUNK == 0 && td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        int axis = shape->ndim - 1;
        for (; axis >= 0 && ++index[axis] == shape->size[axis]; axis--)
            index[axis] = 0;
        if (i + 1 == count)
            break;
        for (int k = axis + 1; k < shape->ndim; k++)
            td_json_end_array(j);
        for (int k = axis + 1; k < shape->ndim; k++)
            td_json_begin_array(j);
    }
    for (int i = 0; i < shape->ndim; i++)
        td_json_end_array(j);
    return TDBG_OK;
}

static tdbg_status write_json(struct td_json *j, const struct operand *o, struct values *values,
                              const struct td_shape *shape, int64_t count, struct td_job *job,
                              struct tdbg_error *error)
{
    const struct td_tensor *t = o->selection.tensor;
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_field_string(j, "slice", o->slice);
    td_json_key(j, "values");
    TD_TRY(write_values(j, values, shape, count, job, error));
    td_json_end_object(j);
    td_json_newline(j);
    return TDBG_OK;
}

static int show(struct cli *cli, const struct operand *o, const struct show_options *options)
{
    struct tdbg_error error;
    struct values *values = malloc(sizeof *values);
    struct td_json json;
    if (!values)
        return EXIT_TROUBLE;
    values_init(values, &o->selection);
    int64_t count = o->selection.slice.count;
    struct td_shape shape = o->selection.slice.shape;
    if (options->count >= 0 && options->count < count) {
        count = options->count;
        shape = (struct td_shape){.ndim = 1, .size = {count}};
    }
    td_json_to_file(&json, stdout);
    tdbg_status status = write_json(&json, o, values, &shape, count, cli->job, &error);
    free(values);
    if (status != TDBG_OK)
        return cli_fail(cli, o->target.path, &error);
    return td_json_finish(&json) ? EXIT_FINE : EXIT_TROUBLE;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct show_options values = {.count = -1};
    struct args args;
    struct operand operand;
    int status;
    if (!cli_parse(cli, &cmd_show, argc, argv, &values, &args, &status))
        return status;
    if (args.count != 1)
        return cli_fail_usage(&cmd_show, args.count ? "one TENSOR at a time" : "no TENSOR given");
    status = operand_open(cli, args.operands[0], true, &operand);
    if (status != EXIT_FINE)
        return status;
    status = show(cli, &operand, &values);
    operand_release(&operand);
    return status;
}

static const struct option options[] = {
    {"count", 'n', OPTION_COUNT, offsetof(struct show_options, count), "N", "the first N values, in one row"},
    {0},
};

const struct command cmd_show = {
    .name = "show",
    .summary = "Show the values of a tensor or of a slice of it.",
    .usage = "TENSOR",
    .options = options,
    .run = run,
    .help = "",
};
