/* raster.h: a tensor seen from afar: its values as few cells, each with the mean, the least and the largest
 * of what it covers.
 *
 * The last axis runs from left to right, everything before it from top to bottom. Where there is only one row
 * the picture is a line. Unlike a tile (kernel/tile.h), a raster has any proportions: it is made to fit a
 * terminal or a page, from one read of all values.
 */
#ifndef TD_REPORT_RASTER_H
#define TD_REPORT_RASTER_H

#include "base/job.h"
#include "session/elements.h"
#include "tensor/view.h"

struct td_cell {
    double sum, low, high; /* of the finite values; low > high: there are none */
    uint64_t finite, others;
};

struct td_raster {
    int rows, columns;     /* of cells; 0 where there are no values */
    int64_t height, width; /* of values */
    struct td_cell *cells; /* owned */
    double low, high;      /* of all finite values; low > high: there are none */
    double faint, bright;  /* the least and the largest mean of a cell, likewise */
    uint64_t others;       /* NaN and infinities of all */
};

/* At most so many rows and columns. */
TD_CHECK tdbg_status td_raster_init(struct td_raster *out, const struct td_elements *elements,
                                    const struct td_shape *shape, int rows, int columns, struct td_job *job,
                                    struct tdbg_error *error);
void td_raster_release(struct td_raster *raster);

const struct td_cell *td_raster_cell(const struct td_raster *raster, int row, int column);

/* NaN where the cell has no finite value. */
double td_cell_mean(const struct td_cell *cell);

/* The mean of a cell on a scale from -1 to 1: over the largest magnitude where there are means of both signs,
 * else from the least (0) to the largest (1). */
double td_raster_shade(const struct td_raster *raster, double value);

#endif
