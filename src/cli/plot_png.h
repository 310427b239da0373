/* plot_png.h: a raster as a PNG picture, with its scale and its name. */
#ifndef TD_CLI_PLOT_PNG_H
#define TD_CLI_PLOT_PNG_H

#include "base/status.h"
#include "report/raster.h"

/* The cells that a picture has room for. */
enum { PLOT_PNG_ROWS = 800, PLOT_PNG_COLUMNS = 1200 };

TD_CHECK tdbg_status plot_png(const char *path, const char *title, const struct td_raster *raster,
                              struct tdbg_error *error);

#endif
