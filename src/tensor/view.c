/* view.c: the one door through which claims about shapes and strides become views. */
#include "tensor/view.h"

#include "base/checked.h"

#include <inttypes.h>

tdbg_status td_shape_count(const struct td_shape *shape, int64_t *count, struct tdbg_error *error)
{
    if (shape->ndim < 0 || shape->ndim > TD_MAX_DIMS)
        return td_fail(error, TDBG_LIMIT, "%d dimensions, %d at most", shape->ndim, TD_MAX_DIMS);
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < shape->ndim; i++) {
        int64_t size = shape->size[i];
        if (size < 0)
            return td_fail(error, TDBG_CORRUPT, "negative size %" PRId64 " of axis %d", size, i);
        if (size == 0)
            empty = true;
        else if (size > TD_MAX_ELEMENTS || !td_mul_i64(product, size, &product) || product > TD_MAX_ELEMENTS)
            return td_fail(error, TDBG_LIMIT, "more than 2^48 elements");
    }
    *count = empty ? 0 : product;
    return TDBG_OK;
}

/* The lowest and highest element reached from element `offset`, or false on overflow. */
static bool reach(const struct td_shape *shape, const int64_t *strides, uint64_t offset, int64_t *low,
                  int64_t *high)
{
    if (offset > INT64_MAX)
        return false;
    *low = *high = (int64_t)offset;
    for (int i = 0; i < shape->ndim; i++) {
        int64_t span;
        if (!td_mul_i64(shape->size[i] - 1, strides[i], &span) ||
            !td_add_i64(span < 0 ? *low : *high, span, span < 0 ? low : high))
            return false;
    }
    return true;
}

tdbg_status td_view_strided(struct td_view *out, const void *base, uint64_t bytes, enum td_dtype dtype,
                            uint64_t offset, const struct td_shape *shape, const int64_t *strides,
                            struct tdbg_error *error)
{
    struct td_view view = {.dtype = dtype, .shape = *shape};
    TD_TRY(td_shape_count(shape, &view.count, error));
    uint64_t size = td_dtype_size(dtype);
    for (int i = 0; i < shape->ndim; i++)
        view.strides[i] = strides[i];
    if (view.count > 0) {
        int64_t low, high;
        if (!reach(shape, strides, offset, &low, &high) || low < 0 || (uint64_t)high >= bytes / size)
            return td_fail(error, TDBG_CORRUPT, "a view reaches outside its storage of %" PRIu64 " elements",
                           bytes / size);
        view.data = (const uint8_t *)base + offset * size;
    }
    *out = view;
    return TDBG_OK;
}

tdbg_status td_packed_bytes(enum td_dtype dtype, const struct td_shape *shape, uint64_t *bytes,
                            struct tdbg_error *error)
{
    const struct td_dtype_facts *facts = td_dtype_facts(dtype);
    int64_t count;
    TD_TRY(td_shape_count(shape, &count, error));
    if (facts->block > 1) {
        int64_t row = shape->ndim ? shape->size[shape->ndim - 1] : 1;
        if (row % facts->block)
            return td_fail(error, TDBG_CORRUPT, "rows of %" PRId64 " elements in blocks of %u", row,
                           facts->block);
    }
    *bytes = (uint64_t)count / facts->block * facts->bytes; /* at most 2^48 * 16 */
    return TDBG_OK;
}

tdbg_status td_view_packed(struct td_view *out, const void *base, uint64_t bytes, enum td_dtype dtype,
                           const struct td_shape *shape, struct tdbg_error *error)
{
    struct td_view view = {.dtype = dtype, .shape = *shape};
    uint64_t need;
    TD_TRY(td_packed_bytes(dtype, shape, &need, error));
    TD_TRY(td_shape_count(shape, &view.count, error));
    if (need > bytes)
        return td_fail(error, TDBG_CORRUPT, "needs %" PRIu64 " bytes of data, has %" PRIu64, need, bytes);
    int64_t stride = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        view.strides[i] = stride;
        if (shape->size[i] > 0)
            stride *= shape->size[i];
    }
    view.data = need ? (const uint8_t *)base : NULL;
    *out = view;
    return TDBG_OK;
}

bool td_view_can_be_real(const struct td_view *view)
{
    return (view->dtype == TD_C64 || view->dtype == TD_C128) && view->shape.ndim < TD_MAX_DIMS &&
           view->count <= TD_MAX_ELEMENTS / 2;
}

struct td_view td_view_as_real(const struct td_view *view)
{
    struct td_view real = *view;
    int last = real.shape.ndim++;
    real.dtype = view->dtype == TD_C64 ? TD_F32 : TD_F64;
    real.count *= 2;
    /* Elements are half as large. Where nothing is reached a stride may be anything. */
    for (int i = 0; i < last; i++)
        real.strides[i] = view->count > 0 && view->shape.size[i] > 1 ? 2 * view->strides[i] : 0;
    real.shape.size[last] = 2;
    real.strides[last] = 1;
    return real;
}

bool td_view_is_packed(const struct td_view *view)
{
    int64_t expected = 1;
    for (int i = view->shape.ndim - 1; i >= 0; i--) {
        if (view->shape.size[i] == 1)
            continue;
        if (view->strides[i] != expected)
            return view->count == 0;
        expected *= view->shape.size[i];
    }
    return true;
}

bool td_view_overlaps(const struct td_view *view)
{
    int64_t span = 1; /* does not overflow: the view's reach was checked */
    for (int i = 0; i < view->shape.ndim && view->count > 0; i++) {
        int64_t length = (view->shape.size[i] - 1) * view->strides[i];
        span += length < 0 ? -length : length;
    }
    return view->count > span;
}
