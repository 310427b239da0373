/* selection.h: a tensor, or the slice of it that somebody asked for, read in row-major order of the result.
 *
 * A slice of a dense tensor is again a view and costs nothing. Blocks, affine and sparse tensors have no
 * strided form: they are read run by run and the elements asked for are picked out.
 */
#ifndef TD_SESSION_SELECTION_H
#define TD_SESSION_SELECTION_H

#include "tensor/slice.h"
#include "tensor/tensor.h"

struct td_selection {
    const struct td_tensor *tensor; /* as it is in its file */
    struct td_slice slice;
    struct td_tensor part; /* the slice as a tensor of its own, when `strided` */
    bool strided;
};

/* `text` is the slice without brackets, "" for everything. The tensor is borrowed. */
TD_CHECK tdbg_status td_selection_init(struct td_selection *out, const struct td_tensor *tensor,
                                       const char *text, struct tdbg_error *error);

/* Elements [start, start + count) of the selection, as td_value_dtype or as doubles. */
TD_CHECK tdbg_status td_selection_load(const struct td_selection *s, int64_t start, int64_t count, void *out,
                                       struct tdbg_error *error);
TD_CHECK tdbg_status td_selection_load_f64(const struct td_selection *s, int64_t start, int64_t count,
                                           double *out, struct tdbg_error *error);

#endif
