/* cmd_show.c: `tdbg show`: the values of one tensor, or of a slice of it. */
#include "cli/cli.h"

#include "base/json.h"
#include "report/export.h"
#include "cli/operand.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/show_text.h"
#include "cli/text.h"
#include "cli/views.h"
#include "report/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is to be shown: the first `count` values of the operand, as an array of `shape`. */
struct show {
    const struct operand *operand;
    struct td_values *values;
    struct td_shape shape;
    int64_t count;
};

static tdbg_status write_values(struct td_json *j, const struct show *show, struct td_job *job,
                                struct tdbg_error *error)
{
    const struct td_shape *shape = &show->shape;
    int64_t index[TD_MAX_DIMS] = {0};
    for (int i = 0; i < shape->ndim; i++)
        td_json_begin_array(j);
    for (int64_t i = 0; i < show->count; i++) {
        struct td_value value;
        if (i % TD_VALUES_CHUNK == 0 && td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        TD_TRY(td_values_get(show->values, i, &value, error));
        td_values_write(j, show->values, &value);
        if (j->failed || i + 1 == show->count)
            break;
        int axis = shape->ndim - 1; /* brackets close and open where an index starts over */
        for (; axis >= 0 && ++index[axis] == shape->size[axis]; axis--)
            index[axis] = 0;
        for (int k = axis + 1; k < shape->ndim; k++)
            td_json_end_array(j);
        for (int k = axis + 1; k < shape->ndim; k++)
            td_json_begin_array(j);
    }
    for (int i = 0; i < shape->ndim; i++)
        td_json_end_array(j);
    return TDBG_OK;
}

/* [2, 0, 3] nests as [[], []], but a header alone must not make us write for days. */
static void write_empty(struct td_json *j, const struct td_shape *shape, int axis, int64_t *budget)
{
    td_json_begin_array(j);
    for (int64_t i = 0; i < shape->size[axis] && *budget > 0; i++, --*budget)
        if (axis + 1 < shape->ndim)
            write_empty(j, shape, axis + 1, budget);
    td_json_end_array(j);
}

static tdbg_status write_json(struct td_json *j, const struct show *show, struct td_job *job,
                              struct tdbg_error *error)
{
    const struct td_tensor *t = show->operand->selection.tensor;
    int64_t budget = 1 << 16;
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_field_string(j, "slice", show->operand->slice);
    td_json_key(j, "values");
    if (show->count == 0)
        write_empty(j, &show->shape, 0, &budget);
    else
        TD_TRY(write_values(j, show, job, error));
    td_json_end_object(j);
    td_json_newline(j);
    return TDBG_OK;
}

static tdbg_status print_json(const struct show *show, struct td_job *job, struct tdbg_error *error)
{
    struct td_json json;
    td_json_to_file(&json, stdout);
    tdbg_status status = write_json(&json, show, job, error);
    if (status == TDBG_OK)
        (void)td_json_finish(&json); /* stdout remembers */
    return status;
}

/* "layers.0.weight  float32 [4, 5]", and the shape of the slice when there is one. */
static void print_title(const struct cli *cli, const struct show *show)
{
    const struct td_tensor *t = show->operand->selection.tensor;
    const struct td_shape *part = &show->operand->selection.slice.shape;
    char shape[SHAPE_TEXT];
    printf("%s%s%s  %s %s", term_style(&cli->out, STYLE_BOLD), t->name, term_style(&cli->out, STYLE_PLAIN),
           td_dtype_name(t->dtype), text_shape(shape, &t->shape));
    if (*show->operand->slice)
        printf("  [%s] -> %s", show->operand->slice, text_shape(shape, part));
    if (show->count < show->operand->selection.slice.count)
        printf("  first %" PRId64, show->count);
    putchar('\n');
}

static tdbg_status print_text(const struct cli *cli, const struct show *show, bool all,
                              struct tdbg_error *error)
{
    if (!cli->quiet)
        print_title(cli, show);
    return show_text(&cli->out, show->values, &show->shape, all, cli->job, error);
}

/* --npy and --csv. `where` becomes the file at fault, should there be one. */
static tdbg_status write_file(struct cli *cli, const struct show *show, const char *path, bool npy,
                              const char **where, struct tdbg_error *error)
{
    struct td_export e = {show->values, &show->shape, show->count};
    struct outfile file;
    *where = path;
    TD_TRY(outfile_open(&file, path, error));
    size_t size = td_dtype_size(npy ? td_export_npy_dtype(&e) : show->values->dtype);
    struct progress *progress = progress_start(cli, path, (uint64_t)show->count * size);
    tdbg_status status =
        npy ? td_export_npy(&e, file.file, cli->job, error) : td_export_csv(&e, file.file, cli->job, error);
    if (status == TDBG_OK && (status = td_input_verify(show->operand->selection.tensor, error)) != TDBG_OK)
        *where = show->operand->target.path;
    progress_stop(&progress);
    if (status != TDBG_OK) {
        outfile_discard(&file);
        return status;
    }
    TD_TRY(outfile_commit(&file, error));
    char shape[SHAPE_TEXT];
    enum td_dtype stored = show->operand->selection.tensor->dtype,
                  written = npy ? td_export_npy_dtype(&e) : stored;
    if (!cli->quiet)
        fprintf(stderr, "wrote %s: %s %s%s%s%s\n", path, td_dtype_name(written),
                text_shape(shape, &show->shape), written == stored ? "" : " (numpy has no ",
                written == stored ? "" : td_dtype_name(stored), written == stored ? "" : ")");
    return TDBG_OK;
}

int show_print(struct cli *cli, const struct operand *o, const struct show_options *wanted)
{
    struct show show = {.operand = o, .shape = o->selection.slice.shape, .count = o->selection.slice.count};
    struct tdbg_error error;
    tdbg_status status = TDBG_OK;
    const char *where = o->target.path;
    if (wanted->count >= 0 && wanted->count < show.count) {
        show.count = wanted->count;
        show.shape = (struct td_shape){.ndim = 1, .size = {show.count}};
    }
    show.values = malloc(sizeof *show.values);
    if (!show.values) {
        td_fail_nomem(&error);
        return cli_fail(where, &error);
    }
    td_values_init(show.values, td_selection_elements(&o->selection));
    if (wanted->npy)
        status = write_file(cli, &show, wanted->npy, true, &where, &error);
    if (wanted->csv && status == TDBG_OK)
        status = write_file(cli, &show, wanted->csv, false, &where, &error);
    if (!wanted->npy && !wanted->csv) {
        status = cli->json ? print_json(&show, cli->job, &error)
                           : print_text(cli, &show, wanted->all || wanted->count >= 0, &error);
        if (status == TDBG_OK)
            status = td_input_verify(o->selection.tensor, &error);
    }
    free(show.values);
    return status == TDBG_OK ? EXIT_FINE : cli_fail(where, &error);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct show_options values = {.count = -1};
    struct args args;
    struct operand operand;
    int status;
    if (!cli_parse(cli, &cmd_show, argc, argv, &values, &args, &status))
        return status;
    if (values.npy && values.csv && strcmp(values.npy, "-") == 0 && strcmp(values.csv, "-") == 0)
        return cli_fail_usage(&cmd_show, "--npy and --csv cannot both be standard output");
    if (args.count != 1)
        return cli_fail_usage(&cmd_show, args.count ? "one TENSOR at a time" : "no TENSOR given");
    status = operand_open(cli, args.operands[0], true, &operand);
    if (status != EXIT_FINE)
        return status;
    status = show_print(cli, &operand, &values);
    operand_release(&operand);
    return status;
}

static const struct option options[] = {
    {"count", 'n', OPTION_COUNT, offsetof(struct show_options, count), "N", "the first N values, in one row"},
    {"all", 'a', OPTION_FLAG, offsetof(struct show_options, all), NULL, "every value, however many"},
    {"npy", 0, OPTION_TEXT, offsetof(struct show_options, npy), "FILE", "write a .npy file instead"},
    {"csv", 0, OPTION_TEXT, offsetof(struct show_options, csv), "FILE",
     "write a .csv file instead, a line per row"},
    {0},
};

const struct command cmd_show = {
    .name = "show",
    .summary = "Show the values of a tensor or of a slice of it.",
    .usage = "TENSOR",
    .options = options,
    .run = run,
    .help = "TENSOR is PATH, PATH:NAME or PATH:NAME[slice]; 'tdbg ls PATH' prints the names, and the last "
            "part of a\n"
            "name will do where only one tensor has it. Slices are numpy's: integers, ranges a:b:c, negative "
            "ones\n"
            "and '...'. Quote them from the shell. Large tensors are shown by their edges.\n"
            "\n"
            "Examples:\n"
            "  tdbg show ckpt.pth:layers.0.weight\n"
            "  tdbg show 'dumps.zip:3_query.pth[0, :4, ::8]'\n"
            "  tdbg show 'x.npy[..., -1]' --count 10\n"
            "  tdbg show model.gguf:blk.0.attn_q.weight --npy q.npy     de-quantised to float32\n"
            "  tdbg show --json 'x.npy[5]' | jq '.values[0]'\n"
            "\n"
            "In JSON and CSV, floats read back to the same bits; bfloat16 and float8 carry the digits of a "
            "float32.\n"
            "NaN and infinities are the strings \"nan\", \"inf\", \"-inf\"; a complex number is [re, im].\n"
            "numpy has no bfloat16 or float8: --npy writes float32. '-' as FILE is standard output.\n",
};
