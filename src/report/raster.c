/* raster.c: see raster.h. */
#include "report/raster.h"

#include "kernel/convert.h"

#include <math.h>
#include <stdlib.h>

enum { PIECE = 4096 };

static void add_value(struct td_cell *cell, double value)
{
    if (!isfinite(value)) {
        cell->others++;
        return;
    }
    cell->sum += value;
    cell->low = fmin(cell->low, value);
    cell->high = fmax(cell->high, value);
    cell->finite++;
}

/* The values from `at` on, which lie one behind the other in rows of `width`. */
static void add_values(struct td_raster *r, int64_t at, const double *values, int64_t count)
{
    int64_t y = at / r->width, x = at % r->width;
    for (int64_t i = 0; i < count; i++) {
        add_value(&r->cells[(y * r->rows / r->height) * r->columns + x * r->columns / r->width], values[i]);
        if (++x == r->width) {
            x = 0;
            y++;
        }
    }
}

static tdbg_status read_values(struct td_raster *r, const struct td_elements *e, struct td_job *job,
                               struct tdbg_error *error)
{
    _Alignas(16) char raw[PIECE * 16];
    double values[PIECE];
    for (int64_t at = 0; at < e->count; at += PIECE) {
        int64_t count = e->count - at < PIECE ? e->count - at : PIECE;
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        TD_TRY(e->load(e->context, at, count, raw, error));
        td_convert_f64(e->dtype, raw, count, values);
        add_values(r, at, values, count);
        td_job_advance(job, (uint64_t)count * td_dtype_size(e->dtype));
    }
    return TDBG_OK;
}

static void sum_up(struct td_raster *r)
{
    for (int i = 0; i < r->rows * r->columns; i++) {
        r->low = fmin(r->low, r->cells[i].low);
        r->high = fmax(r->high, r->cells[i].high);
        r->faint = fmin(r->faint, td_cell_mean(&r->cells[i])); /* passes over NaN */
        r->bright = fmax(r->bright, td_cell_mean(&r->cells[i]));
        r->others += r->cells[i].others;
    }
}

tdbg_status td_raster_init(struct td_raster *out, const struct td_elements *elements,
                           const struct td_shape *shape, int rows, int columns, struct td_job *job,
                           struct tdbg_error *error)
{
    struct td_raster r = {.low = INFINITY, .high = -INFINITY, .faint = INFINITY, .bright = -INFINITY};
    if (elements->count > 0) {
        r.width = shape->ndim ? shape->size[shape->ndim - 1] : 1;
        r.height = elements->count / r.width;
        r.rows = r.height < rows ? (int)r.height : rows;
        r.columns = r.width < columns ? (int)r.width : columns;
    }
    size_t count = (size_t)r.rows * (size_t)r.columns;
    r.cells = malloc((count + 1) * sizeof *r.cells);
    if (!r.cells)
        return td_fail_nomem(error);
    for (size_t i = 0; i < count; i++)
        r.cells[i] = (struct td_cell){.low = INFINITY, .high = -INFINITY};
    tdbg_status status = read_values(&r, elements, job, error);
    if (status != TDBG_OK) {
        free(r.cells);
        return status;
    }
    sum_up(&r);
    *out = r;
    return TDBG_OK;
}

void td_raster_release(struct td_raster *raster)
{
    free(raster->cells);
    *raster = (struct td_raster){0};
}

const struct td_cell *td_raster_cell(const struct td_raster *raster, int row, int column)
{
    return &raster->cells[row * raster->columns + column];
}

double td_cell_mean(const struct td_cell *cell)
{
    return cell->finite ? cell->sum / (double)cell->finite : NAN;
}

double td_raster_shade(const struct td_raster *r, double value)
{
    if (!isfinite(value))
        return NAN;
    if (r->faint < 0 && r->bright > 0)
        return value / fmax(-r->faint, r->bright);
    return r->bright > r->faint ? (value - r->faint) / (r->bright - r->faint) : 0.5;
}
