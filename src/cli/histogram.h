/* histogram.h: counts as a picture made of text. */
#ifndef TD_CLI_HISTOGRAM_H
#define TD_CLI_HISTOGRAM_H

#include "cli/term.h"
#include "session/stats_rows.h"

enum { SPARK_TEXT = 512 };

/* One character per bin; bins are added up where they are more than there is room for. Returns `out`. */
const char *histogram_spark(char out[SPARK_TEXT], const struct term *term, const uint64_t *counts, int bins);

/* A line per bin: its edges, a bar, its count. */
void histogram_print(const struct term *term, const struct td_stats_rows *r, const struct td_stats_row *row);

#endif
