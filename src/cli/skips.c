/* skips.c: see skips.h. */
#include "cli/skips.h"

#include "report/diff_json.h"

void skips_print(const struct cli *cli, const struct operands *operands)
{
    const size_t few = 3;
    size_t total = 0, shown = 0;
    for (size_t i = 0; i < operands->count; i++)
        total += td_input_skips(operands->items[i].input);
    if (total == 0 || cli->quiet)
        return;
    fflush(cli->out.file);
    fprintf(stderr, "%zu skipped:%s", total, total == 1 ? "" : "\n");
    for (size_t i = 0; i < operands->count; i++) {
        const struct td_input *input = operands->items[i].input;
        for (size_t k = 0; k < td_input_skips(input) && (cli->verbose || shown < few); k++, shown++) {
            const struct td_skip *skip = td_input_skip(input, k);
            fprintf(stderr, "%s%s: %s\n", total == 1 ? " " : "  ",
                    *skip->name ? skip->name : td_input_path(input), skip->reason);
        }
    }
    if (shown < total)
        fprintf(stderr, "  and %zu more (-v lists them all)\n", total - shown);
}

void skips_write(struct td_json *j, const struct operands *operands)
{
    for (size_t i = 0; i < operands->count; i++)
        td_skips_json(j, operands->items[i].input);
}

int skips_fail(const struct td_stats_row *row)
{
    struct tdbg_error error = row->error;
    if (*row->tensor->name)
        td_error_prefix(&error, row->tensor->name);
    return cli_fail(row->path, &error);
}
