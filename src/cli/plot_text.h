/* plot_text.h: a raster as text: a heatmap, or a line where there is one row. */
#ifndef TD_CLI_PLOT_TEXT_H
#define TD_CLI_PLOT_TEXT_H

#include "cli/term.h"
#include "report/raster.h"

/* The cells that a picture on this terminal has room for. */
void plot_text_room(const struct term *term, bool line, int *rows, int *columns);

void plot_text(const struct term *term, const struct td_raster *raster);

#endif
