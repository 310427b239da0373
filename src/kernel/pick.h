/* pick.h: a slice of a tensor that has no strided form: blocks, affine, sparse.
 *
 * The last kept axes of the slice are a run `first, first + step, …` of the tensor's row-major order. A run
 * without gaps is loaded straight to its place; another one in pieces of the tensor, from which every step-th
 * element is kept.
 */
#ifndef TD_KERNEL_PICK_H
#define TD_KERNEL_PICK_H

#include "kernel/load.h"
#include "tensor/slice.h"

struct td_pick {
    const struct td_loader *loader; /* borrowed, as the rest */
    const struct td_slice *slice;
    const struct td_shape *shape; /* that the slice was parsed for; the elements in the loader's order */

    /* Every index of the first `outer` axes begins a run of `run` elements, the first of them `start` into
     * what the index names, `step` apart. */
    int outer;
    int64_t run, start, step;
};

void td_pick_init(struct td_pick *pick, const struct td_loader *loader, const struct td_shape *shape,
                  const struct td_slice *slice);

/* Elements [start, start + count) of the slice, as loader->dtype. */
TD_CHECK tdbg_status td_pick_load(const struct td_pick *pick, int64_t start, int64_t count, void *out,
                                  struct tdbg_error *error);

#endif
