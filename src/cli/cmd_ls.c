/* cmd_ls.c: `tdbg ls`: what tensors are there. Reads headers only. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/operand.h"
#include "cli/skips.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/views.h"

#include <inttypes.h>
#include <string.h>

static void write_tensor(struct td_json *j, const struct operand *o, const struct td_tensor *t)
{
    td_json_begin_object(j);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "path", o->target.path);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_field_uint(j, "bytes", t->bytes);
    td_json_field_string(j, "format", t->format);
    td_json_end_object(j);
}

static void write_json(struct td_json *j, const struct operands *operands)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "tensors");
    td_json_begin_array(j);
    for (size_t i = 0; i < operands->count; i++)
        for (size_t k = 0; k < operand_count(&operands->items[i]); k++)
            write_tensor(j, &operands->items[i], operand_tensor(&operands->items[i], k));
    td_json_end_array(j);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    skips_write(j, operands);
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
}

enum { NAME, DTYPE, SHAPE, BYTES, FORMAT, PATH, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", false, true, 0},      [DTYPE] = {"dtype", false, false, 0},
    [SHAPE] = {"shape", false, false, 0},   [BYTES] = {"size", true, false, 2},
    [FORMAT] = {"format", false, false, 3}, [PATH] = {"path", false, false, 1},
};

/* Columns that say the same in every row say nothing. */
static uint64_t needless(const struct operands *operands)
{
    const char *format = NULL;
    bool mixed = false;
    for (size_t i = 0; i < operands->count; i++)
        for (size_t k = 0; k < operand_count(&operands->items[i]); k++) {
            const char *other = operand_tensor(&operands->items[i], k)->format;
            mixed = mixed || (format && strcmp(format, other) != 0);
            format = other;
        }
    return (mixed ? 0 : UINT64_C(1) << FORMAT) | (operands->count > 1 ? 0 : UINT64_C(1) << PATH);
}

static void print_table(const struct cli *cli, const struct operands *operands)
{
    struct table table;
    char shape[SHAPE_TEXT], size[SIZE_TEXT];
    size_t count = 0;
    uint64_t bytes = 0;
    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < operands->count; i++)
        for (size_t k = 0; k < operand_count(&operands->items[i]); k++) {
            const struct td_tensor *t = operand_tensor(&operands->items[i], k);
            table_cell(&table, t->name);
            table_cell(&table, td_dtype_name(t->dtype));
            table_cell(&table, text_shape(shape, &t->shape));
            table_cell(&table, text_size(size, t->bytes));
            table_cell(&table, t->format);
            table_cell(&table, operands->items[i].target.path);
            count++;
            bytes += t->bytes;
        }
    if (count)
        table_print(&table, &cli->out, needless(operands));
    table_release(&table);
    if (!cli->quiet)
        printf("%s%zu tensor%s, %s%s\n", term_style(&cli->out, STYLE_DIM), count, text_plural(count),
               text_size(size, bytes), term_style(&cli->out, STYLE_PLAIN));
}

int ls_print(struct cli *cli, const struct operands *operands)
{
    if (!cli->json) {
        print_table(cli, operands);
        skips_print(cli, operands);
        return EXIT_FINE;
    }
    struct td_json json;
    td_json_to_file(&json, stdout);
    write_json(&json, operands);
    return td_json_finish(&json) ? EXIT_FINE : EXIT_TROUBLE;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_ls, argc, argv, NULL, &args, &status))
        return status;
    if (args.count == 0)
        return cli_fail_usage(&cmd_ls, "no PATH given");
    struct operands operands;
    operands_open(cli, &args, &operands);
    status = operands.status;
    if (operands.count > 0 && ls_print(cli, &operands) != EXIT_FINE)
        status = EXIT_TROUBLE;
    operands_release(&operands);
    return status;
}

static const struct option options[] = {{0}};

const struct command cmd_ls = {
    .name = "ls",
    .summary = "List tensors: name, dtype, shape, size.",
    .usage = "PATH...",
    .options = options,
    .run = run,
    .help =
        "A PATH is a file, a folder or an archive, nested ones included. Only headers are read. Tensors "
        "come\n"
        "in execution order where their names tell it (3_query.pth: layer 3, stage query), else as in the\n"
        "file. Each name works after 'PATH:' in the other commands.\n"
        "\n"
        "Examples:\n"
        "  tdbg ls model.safetensors              one file\n"
        "  tdbg ls dumps/ reference.tar.gz        a folder and an archive\n"
        "  tdbg ls --json ckpt.pth | jq -r '.tensors[] | select(.dtype == \"bfloat16\") .name'\n",
};
