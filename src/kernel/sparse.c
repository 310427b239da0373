/* sparse.c: see sparse.h.
 *
 *     COO   indices [axes, nnz]            entry k lies at (indices[0,k], indices[1,k], ...)
 *     CSR   offsets [.., rows + 1]         row r has entries offsets[r] .. offsets[r + 1] - 1,
 *           indices [.., nnz]              entry k lies in column indices[k], increasing within a row
 *     CSC   the same with rows and columns exchanged
 *
 * An index is checked when the order is made, and again each time it is used: the file may change under us,
 * and an index that went bad must not become a write out of bounds. COO entries may come in any order and
 * name a place twice; they then get a sorted list of positions, which is why their number is capped.
 */
#include "kernel/sparse.h"

#include "kernel/gather.h"
#include "kernel/sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024 };

struct td_sparse_order {
    const struct td_tensor *tensor; /* borrowed */
    int64_t entries;                /* per batch */
    int64_t batches, rows, columns; /* CSR, CSC */
    int64_t inner;                  /* elements per entry: the dense axes of COO */
    uint32_t *position;             /* COO: entries sorted by place; NULL: they are stored that way */
    uint32_t *group;                /* COO: where in that list each place begins, and the end; NULL: each
                                       place is named once */
    int64_t groups;
};

/* One row of an index table. */
struct line {
    const uint8_t *data;
    int64_t step; /* bytes */
    enum td_dtype dtype;
    bool swapped;
};

/* The run along the last axis that begins at flat index `row` of the axes before it. */
static struct line line_at(const struct td_view *view, int64_t row)
{
    int64_t offset = 0, size = (int64_t)td_dtype_size(view->dtype);
    int last = view->shape.ndim - 1;
    for (int i = last - 1; i >= 0; i--) {
        offset += row % view->shape.size[i] * view->strides[i];
        row /= view->shape.size[i];
    }
    return (struct line){view->data ? view->data + offset * size : NULL, view->strides[last] * size,
                         view->dtype, view->swapped};
}

static int64_t line_get(const struct line *line, int64_t i)
{
    const uint8_t *p = line->data + i * line->step;
    if (line->dtype == TD_I64) {
        uint64_t value;
        memcpy(&value, p, sizeof value);
        return (int64_t)(line->swapped ? __builtin_bswap64(value) : value);
    }
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return (int32_t)(line->swapped ? __builtin_bswap32(value) : value);
}

/* An index table is walked from end to end, so its length must be backed by as many bytes: strides of zero or
 * overlapping ones could make a few bytes look like 2^48 entries. */
static tdbg_status check_table(const struct td_view *view, const char *what, struct tdbg_error *error)
{
    if (view->dtype != TD_I64 && view->dtype != TD_I32)
        return td_fail(error, TDBG_UNSUPPORTED, "sparse %s of type %s", what, td_dtype_name(view->dtype));
    if (td_view_overlaps(view))
        return td_fail(error, TDBG_CORRUPT, "sparse %s that repeat themselves", what);
    return TDBG_OK;
}

/* --- COO ----------------------------------------------------------------------------------------------- */

/* The place of entry `entry` among the sparse axes, or -1 when its coordinates are out of range. */
static int64_t coo_place(const struct td_sparse *sparse, int64_t entry)
{
    const struct td_view *view = &sparse->indices;
    struct line line = line_at(view, 0);
    int64_t place = 0, size = (int64_t)td_dtype_size(view->dtype);
    for (int64_t axis = 0; axis < view->shape.size[0]; axis++) {
        int64_t index = line_get(&line, entry), limit = sparse->shape.size[axis];
        if (index < 0 || index >= limit)
            return -1;
        place = place * limit + index; /* within the product of the shape, at most TD_MAX_ELEMENTS */
        line.data += view->strides[0] * size;
    }
    return place;
}

static tdbg_status coo_outside(int64_t entry, struct tdbg_error *error)
{
    return td_fail(error, TDBG_CORRUPT, "sparse entry %" PRId64 " lies outside the tensor", entry);
}

static int64_t coo_entry(const struct td_sparse_order *order, int64_t rank)
{
    return order->position ? order->position[rank] : rank;
}

static int compare_entries(const void *a, const void *b, void *context)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    int64_t p = coo_place(context, x), q = coo_place(context, y);
    if (p != q)
        return p < q ? -1 : 1;
    return x < y ? -1 : x > y; /* entries of one place add up in the order they are stored */
}

static tdbg_status coo_sort(struct td_sparse_order *order, struct tdbg_error *error)
{
    order->position = malloc((size_t)order->entries * sizeof *order->position);
    if (!order->position)
        return td_fail_nomem(error);
    for (int64_t i = 0; i < order->entries; i++)
        order->position[i] = (uint32_t)i;
    qsort_r(order->position, (size_t)order->entries, sizeof *order->position, compare_entries,
            (void *)order->tensor->sparse);
    return TDBG_OK;
}

static tdbg_status coo_group(struct td_sparse_order *order, struct tdbg_error *error)
{
    order->group = malloc(((size_t)order->entries + 1) * sizeof *order->group);
    if (!order->group)
        return td_fail_nomem(error);
    int64_t before = -1;
    for (int64_t rank = 0; rank < order->entries; rank++) {
        int64_t place = coo_place(order->tensor->sparse, coo_entry(order, rank));
        if (place != before)
            order->group[order->groups++] = (uint32_t)rank;
        before = place;
    }
    order->group[order->groups] = (uint32_t)order->entries;
    return TDBG_OK;
}

static tdbg_status coo_check_shape(struct td_sparse_order *order, struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    const struct td_shape *indices = &sparse->indices.shape, *values = &sparse->values.shape;
    if (indices->ndim != 2 || indices->size[0] > sparse->shape.ndim)
        return td_fail(error, TDBG_CORRUPT, "sparse indices do not fit a tensor of %d axes",
                       sparse->shape.ndim);
    int axes = (int)indices->size[0], dense = sparse->shape.ndim - axes;
    bool fits = values->ndim == 1 + dense && values->size[0] == indices->size[1];
    order->inner = 1;
    for (int i = 0; i < dense && fits; i++) {
        fits = values->size[1 + i] == sparse->shape.size[axes + i];
        order->inner *= values->size[1 + i];
    }
    if (!fits)
        return td_fail(error, TDBG_CORRUPT, "sparse values do not fit their indices and shape");
    order->entries = indices->size[1];
    if (axes == 0 && order->entries > 1)
        return td_fail(error, TDBG_UNSUPPORTED, "a sparse tensor without sparse axes");
    return TDBG_OK;
}

static tdbg_status coo_open(struct td_sparse_order *order, struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    TD_TRY(check_table(&sparse->indices, "indices", error));
    TD_TRY(coo_check_shape(order, error));
    bool sorted = true, distinct = true;
    int64_t before = -1;
    for (int64_t entry = 0; entry < order->entries; entry++) {
        int64_t place = coo_place(sparse, entry);
        if (place < 0)
            return coo_outside(entry, error);
        sorted = sorted && place >= before;
        distinct = distinct && place > before;
        before = place;
    }
    order->groups = order->entries;
    if (distinct)
        return TDBG_OK;
    if (order->entries > TD_MAX_UNSORTED)
        return td_fail(error, TDBG_LIMIT, "%" PRId64 " unsorted sparse entries, %d at most", order->entries,
                       TD_MAX_UNSORTED);
    if (td_view_overlaps(&sparse->values))
        return td_fail(error, TDBG_UNSUPPORTED, "unsorted sparse entries with expanded values");
    if (!sorted)
        TD_TRY(coo_sort(order, error));
    order->groups = 0;
    return coo_group(order, error);
}

/* Adds `count` elements of an entry, from its element `first`, to `out`. */
static tdbg_status coo_add(const struct td_sparse_order *order, int64_t entry, int64_t first, int64_t count,
                           uint8_t *out, struct tdbg_error *error)
{
    const struct td_view *values = &order->tensor->sparse->values;
    size_t size = td_dtype_size(values->dtype);
    while (count > 0) {
        uint8_t piece[PIECE * 16];
        int64_t taken = count < PIECE ? count : PIECE;
        td_gather_native(values, entry * order->inner + first, taken, piece);
        TD_TRY(td_sum_into(values->dtype, piece, taken, out, error));
        out += (size_t)taken * size;
        first += taken;
        count -= taken;
    }
    return TDBG_OK;
}

static tdbg_status coo_read(const struct td_sparse_order *order, int64_t start, int64_t count, uint8_t *out,
                            struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    int64_t size = (int64_t)td_dtype_size(sparse->values.dtype), inner = order->inner;
    int64_t low = 0, high = order->entries; /* the first entry at or behind the place of `start` */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (coo_place(sparse, coo_entry(order, middle)) < start / inner)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < order->entries; low++) {
        int64_t entry = coo_entry(order, low), place = coo_place(sparse, entry);
        if (place < 0)
            return coo_outside(entry, error);
        int64_t from = place * inner, to = from + inner;
        if (from >= start + count)
            break;
        from = from < start ? start : from;
        to = to > start + count ? start + count : to;
        if (from < to)
            TD_TRY(
                coo_add(order, entry, from - place * inner, to - from, out + (from - start) * size, error));
    }
    return TDBG_OK;
}

/* --- CSR and CSC --------------------------------------------------------------------------------------- */

/* Sizes of the compressed axis and of the other one. */
static int64_t compressed_lines(const struct td_sparse_order *order)
{
    return order->tensor->sparse->kind == TD_CSR ? order->rows : order->columns;
}

static int64_t compressed_length(const struct td_sparse_order *order)
{
    return order->tensor->sparse->kind == TD_CSR ? order->columns : order->rows;
}

static tdbg_status compressed_check_shape(struct td_sparse_order *order, struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    const struct td_shape *shape = &sparse->shape, *offsets = &sparse->offsets.shape;
    const struct td_shape *indices = &sparse->indices.shape, *values = &sparse->values.shape;
    int batch_axes = shape->ndim - 2;
    if (batch_axes < 0)
        return td_fail(error, TDBG_CORRUPT, "a compressed sparse tensor of %d axes", shape->ndim);
    order->rows = shape->size[batch_axes];
    order->columns = shape->size[batch_axes + 1];
    order->batches = 1;
    order->inner = 1;
    bool fits =
        offsets->ndim == batch_axes + 1 && indices->ndim == batch_axes + 1 && values->ndim == batch_axes + 1;
    for (int i = 0; i < batch_axes && fits; i++) {
        fits = offsets->size[i] == shape->size[i] && indices->size[i] == shape->size[i] &&
               values->size[i] == shape->size[i];
        order->batches *= shape->size[i];
    }
    fits = fits && indices->size[batch_axes] == values->size[batch_axes] &&
           offsets->size[batch_axes] == compressed_lines(order) + 1;
    if (!fits)
        return td_fail(error, TDBG_CORRUPT, "sparse offsets, indices and values do not fit the shape");
    order->entries = indices->size[batch_axes];
    order->groups = order->batches * order->entries;
    return TDBG_OK;
}

/* Where compressed line `k` begins and ends among the entries; false when the offsets lie. */
static bool compressed_range(const struct td_sparse_order *order, const struct line *offsets, int64_t k,
                             int64_t *first, int64_t *end)
{
    *first = line_get(offsets, k);
    *end = line_get(offsets, k + 1);
    return 0 <= *first && *first <= *end && *end <= order->entries;
}

static tdbg_status bad_offsets(int64_t k, struct tdbg_error *error)
{
    return td_fail(error, TDBG_CORRUPT, "sparse offsets %" PRId64 " and %" PRId64 " are out of order", k,
                   k + 1);
}

static tdbg_status bad_index(int64_t k, struct tdbg_error *error)
{
    return td_fail(error, TDBG_CORRUPT, "sparse index %" PRId64 " is out of order or outside the tensor", k);
}

static tdbg_status compressed_check_batch(const struct td_sparse_order *order, int64_t batch,
                                          struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    struct line offsets = line_at(&sparse->offsets, batch), indices = line_at(&sparse->indices, batch);
    int64_t lines = compressed_lines(order), length = compressed_length(order), expected = 0;
    for (int64_t k = 0; k < lines; k++) {
        int64_t first, end, before = -1;
        if (!compressed_range(order, &offsets, k, &first, &end) || first != expected)
            return bad_offsets(k, error);
        for (int64_t i = first; i < end; i++) {
            int64_t index = line_get(&indices, i);
            if (index <= before || index >= length)
                return bad_index(i, error);
            before = index;
        }
        expected = end;
    }
    if (expected != order->entries)
        return td_fail(error, TDBG_CORRUPT, "sparse offsets end at %" PRId64 " of %" PRId64 " entries",
                       expected, order->entries);
    return TDBG_OK;
}

static tdbg_status compressed_open(struct td_sparse_order *order, struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    TD_TRY(check_table(&sparse->indices, "indices", error));
    TD_TRY(check_table(&sparse->offsets, "offsets", error));
    TD_TRY(compressed_check_shape(order, error));
    for (int64_t batch = 0; batch < order->batches; batch++)
        TD_TRY(compressed_check_batch(order, batch, error));
    return TDBG_OK;
}

/* The part of one batch that a range of elements covers: rows [top, bottom], of the first and last row only
 * some columns. */
struct window {
    int64_t batch, start, count; /* elements of the batch */
    uint8_t *out;                /* of element `start` */
};

/* Places the entries of compressed line `k` whose index along the other axis is within [low, high]. Indices
 * increase within a line, so the first of them is found by bisection. */
static tdbg_status compressed_place(const struct td_sparse_order *order, const struct window *window,
                                    int64_t k, int64_t low, int64_t high, struct tdbg_error *error)
{
    const struct td_sparse *sparse = order->tensor->sparse;
    struct line offsets = line_at(&sparse->offsets, window->batch);
    struct line indices = line_at(&sparse->indices, window->batch);
    size_t size = td_dtype_size(sparse->values.dtype);
    int64_t first, end;
    if (!compressed_range(order, &offsets, k, &first, &end))
        return bad_offsets(k, error);
    for (int64_t stop = end; first < stop;) {
        int64_t middle = first + (stop - first) / 2;
        if (line_get(&indices, middle) < low)
            first = middle + 1;
        else
            stop = middle;
    }
    for (; first < end; first++) {
        int64_t index = line_get(&indices, first);
        if (index > high)
            break;
        int64_t at = sparse->kind == TD_CSR ? k * order->columns + index : index * order->columns + k;
        if (index < low)
            return bad_index(first, error);
        if (at >= window->start && at < window->start + window->count)
            td_gather_native(&sparse->values, window->batch * order->entries + first, 1,
                             window->out + (size_t)(at - window->start) * size);
    }
    return TDBG_OK;
}

static tdbg_status compressed_read_batch(const struct td_sparse_order *order, const struct window *window,
                                         struct tdbg_error *error)
{
    int64_t last = window->start + window->count - 1;
    int64_t top = window->start / order->columns, bottom = last / order->columns;
    int64_t left = top == bottom ? window->start % order->columns : 0;
    int64_t right = top == bottom ? last % order->columns : order->columns - 1;
    if (order->tensor->sparse->kind == TD_CSR) {
        for (int64_t row = top; row <= bottom; row++)
            TD_TRY(compressed_place(order, window, row, left, right, error));
    } else {
        for (int64_t column = left; column <= right; column++)
            TD_TRY(compressed_place(order, window, column, top, bottom, error));
    }
    return TDBG_OK;
}

static tdbg_status compressed_read(const struct td_sparse_order *order, int64_t start, int64_t count,
                                   uint8_t *out, struct tdbg_error *error)
{
    int64_t area = order->rows * order->columns, size = (int64_t)td_dtype_size(order->tensor->dtype);
    while (count > 0) {
        struct window window = {.batch = start / area, .start = start % area, .out = out};
        window.count = area - window.start < count ? area - window.start : count;
        TD_TRY(compressed_read_batch(order, &window, error));
        out += window.count * size;
        start += window.count;
        count -= window.count;
    }
    return TDBG_OK;
}

/* --- Both ---------------------------------------------------------------------------------------------- */

tdbg_status td_sparse_order_open(struct td_sparse_order **out, const struct td_tensor *tensor,
                                 struct tdbg_error *error)
{
    const struct td_sparse *sparse = tensor->sparse;
    if (!td_dtype_is_plain(sparse->values.dtype) || sparse->values.dtype != tensor->dtype)
        return td_fail(error, TDBG_UNSUPPORTED, "sparse values of type %s",
                       td_dtype_name(sparse->values.dtype));
    int64_t count;
    TD_TRY(td_shape_count(&sparse->shape, &count, error));
    if (count != tensor->count)
        return td_fail(error, TDBG_CORRUPT, "a sparse tensor of %" PRId64 " elements in a shape of %" PRId64,
                       count, tensor->count);
    struct td_sparse_order *order = calloc(1, sizeof *order);
    if (!order)
        return td_fail_nomem(error);
    order->tensor = tensor;
    tdbg_status status = sparse->kind == TD_COO ? coo_open(order, error) : compressed_open(order, error);
    if (status != TDBG_OK) {
        td_sparse_order_close(&order);
        return status;
    }
    *out = order;
    return TDBG_OK;
}

void td_sparse_order_close(struct td_sparse_order **slot)
{
    if (!*slot)
        return;
    free((*slot)->position);
    free((*slot)->group);
    free(*slot);
    *slot = NULL;
}

tdbg_status td_sparse_read(const struct td_sparse_order *order, int64_t start, int64_t count, void *out,
                           struct tdbg_error *error)
{
    if (count == 0)
        return TDBG_OK;
    memset(out, 0, (size_t)count * td_dtype_size(order->tensor->dtype)); /* zero in every plain type */
    return order->tensor->sparse->kind == TD_COO ? coo_read(order, start, count, out, error)
                                                 : compressed_read(order, start, count, out, error);
}

bool td_sparse_is_distinct(const struct td_sparse_order *order)
{
    return !order->group;
}

int64_t td_sparse_stored(const struct td_sparse_order *order)
{
    return order->groups * order->inner;
}

tdbg_status td_sparse_read_stored(const struct td_sparse_order *order, int64_t start, int64_t count,
                                  void *out, struct tdbg_error *error)
{
    size_t size = td_dtype_size(order->tensor->dtype);
    if (!order->group) {
        td_gather_native(&order->tensor->sparse->values, start, count, out);
        return TDBG_OK;
    }
    memset(out, 0, (size_t)count * size);
    for (uint8_t *to = out; count > 0;) {
        int64_t group = start / order->inner, first = start % order->inner;
        int64_t taken = order->inner - first < count ? order->inner - first : count;
        for (uint32_t rank = order->group[group]; rank < order->group[group + 1]; rank++)
            TD_TRY(coo_add(order, coo_entry(order, rank), first, taken, to, error));
        to += (size_t)taken * size;
        start += taken;
        count -= taken;
    }
    return TDBG_OK;
}
