/* slice.h: numpy's basic indexing: "5,12,0:16", "..., ::-1", "-1".
 *
 * A slice is resolved against a shape when it is parsed: what is kept is, per axis, where to start, the step
 * and how many; an integer keeps one and drops the axis. Missing axes are whole. Ranges are clipped, integers
 * out of range are errors, as in numpy.
 */
#ifndef TD_TENSOR_SLICE_H
#define TD_TENSOR_SLICE_H

#include "tensor/view.h"

struct td_slice_axis {
    int64_t start, step, count;
    bool dropped; /* indexed by an integer: count is 1 and the axis is not in the result */
};

struct td_slice {
    int ndim; /* of the tensor that is sliced */
    struct td_slice_axis axis[TD_MAX_DIMS];
    struct td_shape shape; /* of the result */
    int64_t count;
};

/* The text without its brackets; "" is everything. */
TD_CHECK tdbg_status td_slice_parse(struct td_slice *out, const char *text, const struct td_shape *shape,
                                    struct tdbg_error *error);

/* Whether the text is a slice, of whatever shape it may fit. */
TD_CHECK tdbg_status td_slice_check(const char *text, struct tdbg_error *error);

/* Everything, in its own order. */
bool td_slice_is_whole(const struct td_slice *slice, const struct td_shape *shape);

/* The part of a view of plain elements that the slice selects; the slice was parsed for its shape. */
struct td_view td_slice_view(const struct td_slice *slice, const struct td_view *view);

#endif
