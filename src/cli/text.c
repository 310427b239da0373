/* text.c: see text.h. */
#include "cli/text.h"

#include <inttypes.h>
#include <stdio.h>

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

const char *text_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
