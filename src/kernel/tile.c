/* tile.c: see tile.h.
 *
 * A tile is cut into bands of 16 rows of elements, which any thread takes, and a band into blocks of columns
 * whose sums stay in L1. float32 that lies row by row is read where it is; what must be gathered (a
 * transposed side) or widened comes in blocks that stay in L2; everything else (integers, quantised, sparse,
 * shards) is read as doubles. 16 rows are what a cell of the base level covers, and of a transposed matrix
 * they are one cache line of each column. Several pictures of one pair are made from a block while it is in
 * the cache: reading it is what takes the time.
 */
#include "kernel/tile.h"

#include "kernel/gather.h"
#include "kernel/tier.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BAND = 1 << TD_TILE_BASE, COLUMNS = 1024 };

/* Elements that are worth waking the other threads for. */
enum { WORTH_SHARING = 1 << 18 };

/* --- planes -------------------------------------------------------------------------------------------- */

tdbg_status td_plane_of_slice(struct td_plane *out, const struct td_slice *slice, struct tdbg_error *error)
{
    struct td_plane p = {.rows = 1, .slice = *slice, .row_axis = -1, .column_axis = -1};
    if (slice->shape.ndim < 1 || slice->shape.ndim > 2)
        return td_fail(error, TDBG_MISUSE, "a picture shows one or two axes; this slice keeps %d",
                       slice->shape.ndim);
    for (int i = 0; i < slice->ndim; i++) {
        if (slice->axis[i].dropped)
            continue;
        p.row_axis = p.column_axis;
        p.column_axis = i;
    }
    if (p.row_axis >= 0)
        p.rows = slice->axis[p.row_axis].count;
    p.columns = slice->axis[p.column_axis].count;
    p.count = slice->count;
    *out = p;
    return TDBG_OK;
}

tdbg_status td_plane_folded(struct td_plane *out, int64_t count, int64_t width, struct tdbg_error *error)
{
    if (width < 1)
        return td_fail(error, TDBG_MISUSE, "rows of %" PRId64 " elements", width);
    int64_t columns = width < count ? width : count;
    *out = (struct td_plane){.rows = count ? (count - 1) / columns + 1 : 0,
                             .columns = columns,
                             .count = count,
                             .folded = true,
                             .row_axis = -1,
                             .column_axis = -1};
    return TDBG_OK;
}

bool td_plane_equal(const struct td_plane *a, const struct td_plane *b)
{
    if (a->folded != b->folded || a->rows != b->rows || a->columns != b->columns || a->count != b->count)
        return false;
    for (int i = 0; !a->folded && i < a->slice.ndim; i++) {
        const struct td_slice_axis *x = &a->slice.axis[i], *y = &b->slice.axis[i];
        if (x->start != y->start || x->step != y->step || x->count != y->count || x->dropped != y->dropped)
            return false;
    }
    return true;
}

static int64_t cells(int64_t elements, int level)
{
    return elements ? ((elements - 1) >> level) + 1 : 0;
}

int64_t td_plane_rows(const struct td_plane *plane, int level)
{
    return cells(plane->rows, level);
}

int64_t td_plane_columns(const struct td_plane *plane, int level)
{
    return cells(plane->columns, level);
}

bool td_plane_has_tile(const struct td_plane *plane, int level, int64_t y, int64_t x)
{
    int64_t rows = td_plane_rows(plane, level), columns = td_plane_columns(plane, level);
    return rows > 0 && columns > 0 && y >= 0 && x >= 0 && y <= (rows - 1) / TD_TILE_CELLS &&
           x <= (columns - 1) / TD_TILE_CELLS;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns of a row that have elements. */
static int64_t row_length(const struct td_plane *p, int64_t row)
{
    return row + 1 == p->rows ? p->count - row * p->columns : p->columns;
}

/* Elements of a cell, counted in cells of the whole plane. */
static int64_t cell_count(const struct td_plane *p, int level, int64_t row, int64_t column)
{
    int64_t size = INT64_C(1) << level, r = row << level, c = column << level;
    int64_t height = least(size, p->rows - r), width = least(size, p->columns - c);
    int64_t missing = c + width - row_length(p, p->rows - 1);
    if (r + height < p->rows || missing <= 0)
        return height * width;
    return height * width - least(missing, width);
}

/* --- blocks of elements -------------------------------------------------------------------------------- */

struct box {
    int64_t row, rows, column, columns;
};

/* `pitch` elements from one row to the next. */
struct block {
    const void *data;
    int64_t pitch;
};

struct work {
    const struct td_tile_kernels *kernels;
    const struct td_plane *plane;
    const struct td_access *side[2];     /* NULL: not read */
    bool wide;                           /* doubles, not floats */
    struct td_tile *tile[TD_TILE_KINDS]; /* NULL: not wanted; all of one size */
    int64_t row, column, rows, columns;  /* elements of the tile */
    pthread_mutex_t lock;
    struct tdbg_error error; /* the first that happened; guarded by lock */
};

/* Buffers of one thread. */
struct space {
    double side[2][BAND * COLUMNS];
    double sum[2][COLUMNS];
    float high[2][COLUMNS], low[2][COLUMNS];
    uint32_t nan[2][COLUMNS];
};

static struct td_columns columns_of(struct space *s, int which)
{
    return (struct td_columns){s->sum[which], s->high[which], s->low[which], s->nan[which]};
}

/* One dense part of a small float type that the plane cuts with strides. */
static bool reads_as_float(const struct td_access *access, const struct td_plane *plane)
{
    const struct td_operand *o = access->operand;
    const struct td_tensor *t = &o->parts[0];
    return o->part_count == 1 && td_tensor_is_dense(t) && !t->view.swapped &&
           (t->dtype == TD_F32 || t->dtype == TD_F16 || t->dtype == TD_BF16) &&
           (!plane->folded || access->loaders[0].direct);
}

/* The elements of a box, as they are stored. */
static struct td_view view_box(const struct td_access *access, const struct td_plane *plane,
                               const struct box *box)
{
    const struct td_view *from = &access->operand->parts[0].view;
    struct td_view v = {.dtype = from->dtype,
                        .count = box->rows * box->columns,
                        .shape = {.ndim = 2, .size = {box->rows, box->columns}}};
    int64_t offset = 0;
    if (plane->folded) {
        v.strides[0] = plane->columns;
        v.strides[1] = 1;
    } else {
        for (int i = 0; i < plane->slice.ndim; i++)
            offset += plane->slice.axis[i].start * from->strides[i];
        if (plane->row_axis >= 0)
            v.strides[0] = plane->slice.axis[plane->row_axis].step * from->strides[plane->row_axis];
        v.strides[1] = plane->slice.axis[plane->column_axis].step * from->strides[plane->column_axis];
    }
    offset += box->row * v.strides[0] + box->column * v.strides[1];
    v.data = from->data + offset * (int64_t)td_dtype_size(v.dtype);
    return v;
}

static struct block read_floats(const struct work *w, const struct td_access *access, const struct box *box,
                                double *space)
{
    struct td_view view = view_box(access, w->plane, box);
    struct block block = {view.data, view.strides[0]};
    float *floats = (float *)(void *)space;
    uint8_t *raw = (uint8_t *)(floats + BAND * COLUMNS);
    if (view.strides[1] != 1) {
        td_gather(&view, 0, view.count, raw);
        block = (struct block){raw, box->columns};
    }
    if (view.dtype == TD_F32)
        return block;
    for (int64_t r = 0; r < box->rows; r++) {
        const uint8_t *row = (const uint8_t *)block.data + 2 * r * block.pitch;
        int64_t n = least(box->columns, row_length(w->plane, box->row + r) - box->column);
        if (n > 0)
            (view.dtype == TD_F16 ? w->kernels->widen_f16
                                  : w->kernels->widen_bf16)(row, n, floats + r * box->columns);
    }
    return (struct block){floats, box->columns};
}

static tdbg_status read_doubles(const struct work *w, const struct td_access *access, const struct box *box,
                                double *space, struct block *out, struct tdbg_error *error)
{
    const struct td_plane *p = w->plane;
    *out = (struct block){space, box->columns};
    if (!p->folded) {
        struct td_slice slice = p->slice;
        struct td_slice_axis *row = p->row_axis >= 0 ? &slice.axis[p->row_axis] : NULL;
        struct td_slice_axis *column = &slice.axis[p->column_axis];
        if (row) {
            row->start += box->row * row->step;
            row->count = box->rows;
        }
        column->start += box->column * column->step;
        column->count = box->columns;
        slice.shape.size[slice.shape.ndim - 1] = box->columns;
        if (row)
            slice.shape.size[0] = box->rows;
        slice.count = box->rows * box->columns;
        return td_access_slice(access, &slice, space, error);
    }
    for (int64_t r = 0; r < box->rows; r++) {
        int64_t at = box->row + r, n = least(box->columns, row_length(p, at) - box->column);
        if (n > 0)
            TD_TRY(td_access_run(access, at * p->columns + box->column, n, space + r * box->columns, error));
    }
    return TDBG_OK;
}

static tdbg_status read_box(const struct work *w, const struct td_access *access, const struct box *box,
                            double *space, struct block *out, struct tdbg_error *error)
{
    if (w->wide)
        return read_doubles(w, access, box, space, out, error);
    *out = read_floats(w, access, box, space);
    return TDBG_OK;
}

/* --- cells --------------------------------------------------------------------------------------------- */

/* Rows [first, first + count) of a box, added up by column. */
static void add_rows(const struct work *w, const struct box *box, const struct block *a,
                     const struct block *b, int64_t first, int64_t count, const struct td_columns *columns)
{
    td_rows_loop *loop = w->wide ? (b ? w->kernels->dual_wide : w->kernels->single_wide)
                                 : (b ? w->kernels->dual : w->kernels->single);
    int64_t size = w->wide ? 8 : 4, last = box->row + first + count - 1;
    int64_t length = least(box->columns, row_length(w->plane, last) - box->column);
    const uint8_t *p = (const uint8_t *)a->data + first * a->pitch * size;
    const uint8_t *q = b ? (const uint8_t *)b->data + first * b->pitch * size : p;
    int64_t pitch_b = b ? b->pitch : 0, whole = length < box->columns ? count - 1 : count;
    loop(p, a->pitch, q, pitch_b, whole, box->columns, columns);
    if (whole < count && length > 0)
        loop(p + whole * a->pitch * size, 0, q + whole * pitch_b * size, 0, 1, length, columns);
}

/* Where no element was, high is still below low. */
static float peak(float high, float low, uint32_t nan)
{
    if (nan || high < low)
        return NAN;
    return high >= -low ? high : low;
}

/* Of `a`, or, unless b is NULL, of b - a. */
static void fill_cells(const struct work *w, struct td_tile *tile, const struct box *box,
                       const struct block *a, const struct block *b, struct space *s)
{
    int64_t size = INT64_C(1) << tile->level;
    for (int64_t r = 0; r < box->rows; r += size) {
        struct td_columns now = columns_of(s, 0), next = columns_of(s, 1);
        int64_t n = box->columns;
        w->kernels->clear(&now, n);
        add_rows(w, box, a, b, r, least(size, box->rows - r), &now);
        for (int level = 0; level < tile->level; level++, n = (n + 1) / 2) {
            struct td_columns halved = next;
            w->kernels->halve(&now, n, &halved);
            next = now;
            now = halved;
        }
        int64_t at = ((box->row + r - w->row) >> tile->level) * tile->columns +
                     ((box->column - w->column) >> tile->level);
        memcpy(tile->sums + at, now.sum, (size_t)n * sizeof *now.sum);
        for (int64_t i = 0; i < n; i++)
            tile->peaks[at + i] = peak(now.high[i], now.low[i], now.nan[i]);
    }
}

static tdbg_status fill_band(const struct work *w, int64_t band, struct space *space,
                             struct tdbg_error *error)
{
    struct box box = {.row = w->row + band * BAND, .rows = least(BAND, w->rows - band * BAND)};
    for (int64_t c = 0; c < w->columns; c += COLUMNS) {
        struct block blocks[2];
        box.column = w->column + c;
        box.columns = least(COLUMNS, w->columns - c);
        for (int i = 0; i < 2; i++)
            if (w->side[i])
                TD_TRY(read_box(w, w->side[i], &box, space->side[i], &blocks[i], error));
        for (int i = 0; i < 2; i++)
            if (w->tile[i])
                fill_cells(w, w->tile[i], &box, &blocks[i], NULL, space);
        if (w->tile[TD_OF_DIFFERENCE])
            fill_cells(w, w->tile[TD_OF_DIFFERENCE], &box, &blocks[0], &blocks[1], space);
    }
    return TDBG_OK;
}

static void run_band(void *context, uint64_t band)
{
    struct work *w = context;
    struct tdbg_error error;
    struct space *space = malloc(sizeof *space);
    tdbg_status status = space ? fill_band(w, (int64_t)band, space, &error) : td_fail_nomem(&error);
    free(space);
    if (status == TDBG_OK)
        return;
    pthread_mutex_lock(&w->lock);
    if (w->error.status == TDBG_OK)
        w->error = error;
    pthread_mutex_unlock(&w->lock);
}

/* --- tiles --------------------------------------------------------------------------------------------- */

static tdbg_status make_room(struct td_tile *tile, const struct td_plane *plane, int level, int64_t y,
                             int64_t x, struct tdbg_error *error)
{
    int64_t rows = td_plane_rows(plane, level), columns = td_plane_columns(plane, level);
    if (!td_plane_has_tile(plane, level, y, x))
        return td_fail(error, TDBG_MISUSE, "no tile at x %" PRId64 ", y %" PRId64 " of level %d", x, y,
                       level);
    *tile = (struct td_tile){.level = level,
                             .y = y,
                             .x = x,
                             .rows = (int)least(TD_TILE_CELLS, rows - y * TD_TILE_CELLS),
                             .columns = (int)least(TD_TILE_CELLS, columns - x * TD_TILE_CELLS)};
    size_t n = (size_t)tile->rows * (size_t)tile->columns;
    tile->sums = malloc(n * (sizeof *tile->sums + sizeof *tile->peaks));
    if (!tile->sums)
        return td_fail_nomem(error);
    tile->peaks = (float *)(void *)(tile->sums + n);
    return TDBG_OK;
}

void td_tile_release(struct td_tile *tile)
{
    free(tile->sums);
    *tile = (struct td_tile){0};
}

static void release_all(struct td_tile tiles[TD_TILE_KINDS])
{
    for (int i = 0; i < TD_TILE_KINDS; i++)
        td_tile_release(&tiles[i]);
}

/* The bands of the tiles that the work names, by all threads. */
static tdbg_status fill_tiles(struct work *w, int level, int64_t y, int64_t x, struct td_pool *pool,
                              struct tdbg_error *error)
{
    const struct td_plane *plane = w->plane;
    for (int i = 0; i < 2; i++)
        w->wide = w->wide || (w->side[i] && !reads_as_float(w->side[i], plane));
    w->row = (y * TD_TILE_CELLS) << level;
    w->column = (x * TD_TILE_CELLS) << level;
    w->rows = least((int64_t)TD_TILE_CELLS << level, plane->rows - w->row);
    w->columns = least((int64_t)TD_TILE_CELLS << level, plane->columns - w->column);
    pthread_mutex_init(&w->lock, NULL);
    td_pool_run(w->rows * w->columns >= WORTH_SHARING ? pool : NULL, (uint64_t)cells(w->rows, TD_TILE_BASE),
                run_band, w);
    pthread_mutex_destroy(&w->lock);
    if (w->error.status != TDBG_OK && error)
        *error = w->error;
    return w->error.status;
}

tdbg_status td_tiles_init(struct td_tile *const out[TD_TILE_KINDS], const struct td_plane *plane,
                          const struct td_access *a, const struct td_access *b, int level, int64_t y,
                          int64_t x, struct td_pool *pool, struct tdbg_error *error)
{
    struct td_tile tiles[TD_TILE_KINDS] = {{0}};
    const struct td_kernels *kernels;
    TD_TRY(td_kernels_select(&kernels, error));
    struct work w = {.kernels = kernels->tiles, .plane = plane};
    tdbg_status status = TDBG_OK;
    for (int i = 0; i < TD_TILE_KINDS && status == TDBG_OK; i++) {
        if (!out[i])
            continue;
        w.tile[i] = &tiles[i];
        w.side[0] = i != TD_OF_B ? a : w.side[0];
        w.side[1] = i != TD_OF_A ? b : w.side[1];
        status = make_room(&tiles[i], plane, level, y, x, error);
    }
    if (status == TDBG_OK)
        status = fill_tiles(&w, level, y, x, pool, error);
    if (status != TDBG_OK) {
        release_all(tiles);
        return status;
    }
    for (int i = 0; i < TD_TILE_KINDS; i++)
        if (out[i])
            *out[i] = tiles[i];
    return TDBG_OK;
}

tdbg_status td_tile_init(struct td_tile *out, const struct td_plane *plane, const struct td_access *a,
                         const struct td_access *b, int level, int64_t y, int64_t x, struct td_pool *pool,
                         struct tdbg_error *error)
{
    struct td_tile *const wanted[TD_TILE_KINDS] = {
        [TD_OF_A] = b ? NULL : out, [TD_OF_DIFFERENCE] = b ? out : NULL};
    return td_tiles_init(wanted, plane, a, b, level, y, x, pool, error);
}

struct cell {
    double sum;
    float peak;
};

/* Nothing in it: beyond the end of a short last row. Where there is a NaN, the sum is one too. */
static bool is_empty(struct cell c)
{
    return isnan(c.peak) && !isnan(c.sum);
}

/* The larger in size, the positive one of two of the same; NaN before all. */
static struct cell merge(struct cell a, struct cell b)
{
    if (is_empty(a) || is_empty(b))
        return is_empty(a) ? b : a;
    float x = fabsf(a.peak), y = fabsf(b.peak);
    bool first = isnan(a.peak) || x > y || (x == y && a.peak > b.peak);
    return (struct cell){a.sum + b.sum, first ? a.peak : b.peak};
}

/* A cell and its neighbour to the right, if it has one. */
static struct cell pair_of(const struct td_tile *t, int row, int column)
{
    int at = row * t->columns + column;
    struct cell left = {t->sums[at], t->peaks[at]};
    if (column + 1 == t->columns)
        return left;
    return merge(left, (struct cell){t->sums[at + 1], t->peaks[at + 1]});
}

tdbg_status td_tile_join(struct td_tile *out, const struct td_plane *plane,
                         const struct td_tile *const children[4], int level, int64_t y, int64_t x,
                         struct tdbg_error *error)
{
    enum { HALF = TD_TILE_CELLS / 2 };
    struct td_tile tile;
    TD_TRY(make_room(&tile, plane, level, y, x, error));
    for (int r = 0; r < tile.rows; r++)
        for (int c = 0; c < tile.columns; c++) {
            const struct td_tile *t = children[r / HALF * 2 + c / HALF];
            int row = r % HALF * 2, column = c % HALF * 2;
            struct cell cell = pair_of(t, row, column);
            if (row + 1 < t->rows)
                cell = merge(cell, pair_of(t, row + 1, column));
            tile.sums[r * tile.columns + c] = cell.sum;
            tile.peaks[r * tile.columns + c] = cell.peak;
        }
    *out = tile;
    return TDBG_OK;
}

void td_tile_paint(const struct td_tile *tile, const struct td_plane *plane, bool mean, bool transposed,
                   float *out)
{
    for (int r = 0; r < tile->rows; r++)
        for (int c = 0; c < tile->columns; c++) {
            int at = r * tile->columns + c;
            float value = tile->peaks[at];
            if (mean)
                value = (float)(tile->sums[at] / (double)cell_count(plane, tile->level,
                                                                    tile->y * TD_TILE_CELLS + r,
                                                                    tile->x * TD_TILE_CELLS + c));
            out[transposed ? c * tile->rows + r : at] = value;
        }
}
