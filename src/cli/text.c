/* text.c: see text.h. */
#include "cli/text.h"

#include <inttypes.h>

const char *text_shape(char out[SHAPE_TEXT], const struct td_shape *shape)
{
    size_t used = 0;
    out[used++] = '[';
    for (int i = 0; i < shape->ndim; i++)
        used += (size_t)snprintf(out + used, SHAPE_TEXT - used, "%s%" PRId64, i ? ", " : "", shape->size[i]);
    snprintf(out + used, SHAPE_TEXT - used, "]");
    return out;
}

const char *text_size(char out[SIZE_TEXT], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, SIZE_TEXT, "%" PRIu64 " B", bytes);
        return out;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    snprintf(out, SIZE_TEXT, "%.1f %s", value, units[unit]);
    return out;
}

void text_skips(const struct cli *cli, const struct operands *operands)
{
    const size_t few = 3;
    size_t total = 0, shown = 0;
    for (size_t i = 0; i < operands->count; i++)
        total += td_input_skips(operands->items[i].input);
    if (total == 0 || cli->quiet)
        return;
    fflush(cli->out.file);
    fprintf(stderr, "%zu skipped:\n", total);
    for (size_t i = 0; i < operands->count; i++) {
        const struct td_input *input = operands->items[i].input;
        for (size_t k = 0; k < td_input_skips(input) && (cli->verbose || shown < few); k++, shown++) {
            const struct td_skip *skip = td_input_skip(input, k);
            fprintf(stderr, "  %s: %s\n", *skip->name ? skip->name : td_input_path(input), skip->reason);
        }
    }
    if (shown < total)
        fprintf(stderr, "  and %zu more (-v lists them all)\n", total - shown);
}
