/* memory_chart.h: memory held over time as columns of text. */
#ifndef TD_CLI_MEMORY_CHART_H
#define TD_CLI_MEMORY_CHART_H

#include "analyse/memory.h"
#include "cli/term.h"

/* Nothing where there are too few points to draw. */
void memory_chart(const struct term *term, const struct td_memory_report *r);

#endif
