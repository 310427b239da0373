/* histogram.c: see histogram.h. */
#include "cli/histogram.h"

#include <inttypes.h>
#include <string.h>

enum { WIDE = 100, FEW_SPARKS = 12, MOST_SPARKS = 64, WIDEST_BAR = 60 };

const char *histogram_spark(char out[SPARK_TEXT], const struct term *term, const uint64_t *counts, int bins)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    const char *const *levels = term->unicode ? blocks : plain;
    uint64_t sums[MOST_SPARKS] = {0}, most = 0;
    int room = term->width && term->width < WIDE ? FEW_SPARKS : MOST_SPARKS,
        shown = bins < room ? bins : room;
    for (int i = 0; i < bins; i++) {
        uint64_t *sum = &sums[(int64_t)i * shown / bins];
        *sum += counts[i];
        if (*sum > most)
            most = *sum;
    }
    out[0] = 0;
    for (int i = 0; i < shown; i++) {
        /* A bin that holds anything shows. */
        int level = sums[i] ? 1 + (int)(7 * ((double)sums[i] / (double)most)) : 0;
        strcat(out, levels[level]);
    }
    return out;
}

void histogram_print(const struct term *term, const struct td_stats_rows *r, const struct td_stats_row *row)
{
    uint64_t most = 1;
    for (int i = 0; i < r->bins; i++)
        if (row->counts[i] > most)
            most = row->counts[i];
    int bar = term->width ? term->width - 40 : WIDEST_BAR;
    bar = bar > WIDEST_BAR ? WIDEST_BAR : bar < 8 ? 8 : bar;
    for (int i = 0; i < r->bins; i++) {
        fprintf(term->file, "%11.4g %s %-11.4g %10" PRIu64 "  ", row->edges[i], term->unicode ? "…" : "..",
                row->edges[i + 1], row->counts[i]);
        term_put_bar(term, (double)row->counts[i] / (double)most, bar);
        fputc('\n', term->file);
    }
}
