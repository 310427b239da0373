/* gather.c: see gather.h.
 *
 * The view is first reduced to its essence: axes of size 1 fall away and neighbours that run on into each
 * other become one, so that a packed tensor is one axis and a sliced matrix two. Then rows (runs along the
 * last axis left) are copied one after the other. The exception is a transposed matrix: read row by row it
 * would touch one element of every cache line and come back for the next one a row later, so rows are copied
 * together in tiles instead.
 */
#include "kernel/gather.h"

#include <string.h>

enum { TILE_ROWS = 64, TILE_COLUMNS = 16, COLUMNS_AHEAD = 6 };

/* The view's axes that matter, outermost first; at least one. */
struct walk {
    const uint8_t *data;
    size_t size; /* bytes of an element */
    int ndim;
    int64_t shape[TD_MAX_DIMS], stride[TD_MAX_DIMS];
};

static struct walk reduce(const struct td_view *view)
{
    struct walk w = {.data = view->data, .size = td_dtype_size(view->dtype)};
    for (int i = 0; i < view->shape.ndim; i++) {
        int64_t size = view->shape.size[i], stride = view->strides[i];
        if (size == 1)
            continue;
        int last = w.ndim - 1;
        if (last >= 0 && w.stride[last] == stride * size) {
            w.shape[last] *= size;
            w.stride[last] = stride;
        } else {
            w.shape[w.ndim] = size;
            w.stride[w.ndim++] = stride;
        }
    }
    if (w.ndim == 0) {
        w.shape[0] = 1;
        w.stride[0] = 1;
        w.ndim = 1;
    }
    return w;
}

/* The address of row `row`, counted over all axes but the last. */
static const uint8_t *row_at(const struct walk *w, int64_t row)
{
    int64_t offset = 0;
    for (int i = w->ndim - 2; i >= 0; i--) {
        offset += row % w->shape[i] * w->stride[i];
        row /= w->shape[i];
    }
    return w->data + offset * (int64_t)w->size;
}

/* Copies `count` elements of `size` bytes that lie `step` bytes apart; size is a constant where it matters.
 */
static inline __attribute__((always_inline)) void copy_steps(const uint8_t *from, int64_t step, uint8_t *to,
                                                             int64_t to_step, int64_t count, size_t size)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_step, from + i * step, size);
}

static void copy_spaced(const uint8_t *from, int64_t step, uint8_t *to, int64_t to_step, int64_t count,
                        size_t size)
{
    switch (size) {
    case 1:
        copy_steps(from, step, to, to_step, count, 1);
        break;
    case 2:
        copy_steps(from, step, to, to_step, count, 2);
        break;
    case 4:
        copy_steps(from, step, to, to_step, count, 4);
        break;
    case 8:
        copy_steps(from, step, to, to_step, count, 8);
        break;
    default:
        copy_steps(from, step, to, to_step, count, size);
    }
}

static void copy_run(const struct walk *w, const uint8_t *from, int64_t count, uint8_t *to)
{
    int64_t stride = w->stride[w->ndim - 1], size = (int64_t)w->size;
    if (stride == 1)
        memcpy(to, from, (size_t)count * w->size);
    else
        copy_spaced(from, stride * size, to, size, count, w->size);
}

static bool is_transposed(const struct walk *w)
{
    if (w->ndim < 2)
        return false;
    int64_t inner = w->stride[w->ndim - 1], outer = w->stride[w->ndim - 2];
    inner = inner < 0 ? -inner : inner;
    outer = outer < 0 ? -outer : outer;
    return outer != 0 && outer < inner;
}

/* Asks for `bytes` bytes that will be copied soon. */
static void foresee(const uint8_t *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(from + at);
}

/* Rows of a transposed matrix, tile by tile. Columns often lie a power of two apart, where the cache has room
 * for a few lines only: so a tile is put together in a buffer of its own, and columns are asked for just a
 * few ahead. */
static void copy_tiles(const struct walk *w, const uint8_t *from, int64_t rows, uint8_t *to)
{
    int64_t size = (int64_t)w->size, columns = w->shape[w->ndim - 1];
    int64_t column_step = w->stride[w->ndim - 1] * size, row_step = w->stride[w->ndim - 2] * size;
    for (int64_t r = 0; r < rows; r += TILE_ROWS) {
        int64_t height = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        for (int64_t c = 0; c < columns; c += TILE_COLUMNS) {
            uint8_t tile[TILE_ROWS * TILE_COLUMNS * 16];
            int64_t width = columns - c < TILE_COLUMNS ? columns - c : TILE_COLUMNS;
            for (int64_t j = 0; j < width; j++) {
                const uint8_t *column = from + r * row_step + (c + j) * column_step;
                if (row_step == size)
                    foresee(column + COLUMNS_AHEAD * column_step, height * size);
                copy_spaced(column, row_step, tile + j * size, width * size, height, w->size);
            }
            for (int64_t i = 0; i < height; i++)
                memcpy(to + ((r + i) * columns + c) * size, tile + i * width * size, (size_t)(width * size));
        }
    }
}

static void copy_rows(const struct walk *w, const uint8_t *from, int64_t rows, uint8_t *to)
{
    int64_t size = (int64_t)w->size, columns = w->shape[w->ndim - 1], step = w->stride[w->ndim - 2] * size;
    for (int64_t r = 0; r < rows; r++)
        copy_run(w, from + r * step, columns, to + r * columns * size);
}

void td_gather(const struct td_view *view, int64_t start, int64_t count, void *out)
{
    if (count == 0)
        return; /* the strides of an empty view are anything */
    const struct walk w = reduce(view);
    const int64_t columns = w.shape[w.ndim - 1], size = (int64_t)w.size;
    const bool transposed = is_transposed(&w);
    uint8_t *to = out;
    while (count > 0) {
        int64_t row = start / columns, column = start % columns, taken;
        int64_t whole = column == 0 ? count / columns : 0; /* rows ahead that are wanted in full */
        const uint8_t *from = row_at(&w, row);
        if (w.ndim > 1 && whole > 0) { /* those that share all outer coordinates go together */
            int64_t left = w.shape[w.ndim - 2] - row % w.shape[w.ndim - 2];
            int64_t rows = whole < left ? whole : left;
            (transposed ? copy_tiles : copy_rows)(&w, from, rows, to);
            taken = rows * columns;
        } else {
            taken = columns - column < count ? columns - column : count;
            copy_run(&w, from + column * w.stride[w.ndim - 1] * size, taken, to);
        }
        to += taken * size;
        start += taken;
        count -= taken;
    }
}

/* Reverses the bytes of each number in place; a complex element is two numbers. */
static void swap_bytes(enum td_dtype dtype, void *elements, int64_t count)
{
    size_t size = td_dtype_size(dtype);
    if (td_dtype_facts(dtype)->kind == TD_COMPLEX) {
        size /= 2;
        count *= 2;
    }
    uint8_t *p = elements;
    for (int64_t i = 0; i < count && size > 1; i++, p += size) {
        if (size == 2) {
            uint16_t v;
            memcpy(&v, p, 2);
            v = __builtin_bswap16(v);
            memcpy(p, &v, 2);
        } else if (size == 4) {
            uint32_t v;
            memcpy(&v, p, 4);
            v = __builtin_bswap32(v);
            memcpy(p, &v, 4);
        } else {
            uint64_t v;
            memcpy(&v, p, 8);
            v = __builtin_bswap64(v);
            memcpy(p, &v, 8);
        }
    }
}

void td_gather_native(const struct td_view *view, int64_t start, int64_t count, void *out)
{
    td_gather(view, start, count, out);
    if (view->swapped)
        swap_bytes(view->dtype, out, count);
}
