/* gather.h: elements of a strided view, in row-major order, packed. */
#ifndef TD_KERNEL_GATHER_H
#define TD_KERNEL_GATHER_H

#include "tensor/view.h"

/* Copies elements [start, start + count) of the row-major order to `out`, bytes as they are stored. The view
 * is of a plain or affine type; the range lies within it. */
void td_gather(const struct td_view *view, int64_t start, int64_t count, void *out);

/* The same, bytes swapped where the view says so. */
void td_gather_native(const struct td_view *view, int64_t start, int64_t count, void *out);

#endif
