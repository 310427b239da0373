/* view.h: borrowed bytes seen as an n-dimensional array.
 *
 * `data` points at element [0, …, 0]; element [i, j, …] lies at data + (i*strides[0] + j*strides[1] + …) *
 * size. Strides count elements, may be zero (expanded) and negative (reversed). The elements are
 * little-endian unless `swapped`. A view is made by td_view_strided or td_view_packed only: they check every
 * reachable element against the bytes that back it, so nobody downstream checks again.
 */
#ifndef TD_TENSOR_VIEW_H
#define TD_TENSOR_VIEW_H

#include "base/limits.h"
#include "base/status.h"
#include "tensor/dtype.h"

struct td_shape {
    int ndim;
    int64_t size[TD_MAX_DIMS];
};

/* Number of elements, at most TD_MAX_ELEMENTS; negative sizes and larger products fail. */
TD_CHECK tdbg_status td_shape_count(const struct td_shape *shape, int64_t *count, struct tdbg_error *error);

struct td_view {
    const uint8_t *data;
    enum td_dtype dtype;
    bool swapped;
    int64_t count; /* elements: the product of the shape */
    struct td_shape shape;
    int64_t strides[TD_MAX_DIMS];
};

/* A view of plain or affine elements within `bytes` bytes at `base`, its first element at element `offset`.
 */
TD_CHECK tdbg_status td_view_strided(struct td_view *out, const void *base, uint64_t bytes,
                                     enum td_dtype dtype, uint64_t offset, const struct td_shape *shape,
                                     const int64_t *strides, struct tdbg_error *error);

/* Row-major without gaps, for every type; blocks run along the last axis. Needs exactly the bytes it needs or
 * fewer than there are. */
TD_CHECK tdbg_status td_view_packed(struct td_view *out, const void *base, uint64_t bytes,
                                    enum td_dtype dtype, const struct td_shape *shape,
                                    struct tdbg_error *error);

/* Bytes a packed tensor of this type and shape takes. */
TD_CHECK tdbg_status td_packed_bytes(enum td_dtype dtype, const struct td_shape *shape, uint64_t *bytes,
                                     struct tdbg_error *error);

/* Complex elements as their real and imaginary parts: one more axis, of two, behind the others. */
bool td_view_can_be_real(const struct td_view *view);
struct td_view td_view_as_real(const struct td_view *view);

/* Row-major without gaps (axes of size 1 do not matter). */
bool td_view_is_packed(const struct td_view *view);

/* More elements than places they could lie at: expanded axes, or strides that let rows share elements. */
bool td_view_overlaps(const struct td_view *view);

#endif
