/* selection.h: a tensor, or the slice of it that somebody asked for, read in row-major order of the result.
 *
 * A slice of a dense tensor is again a view and costs nothing. Blocks, affine and sparse tensors have no
 * strided form: they are read run by run and the elements asked for are picked out.
 */
#ifndef TD_SESSION_SELECTION_H
#define TD_SESSION_SELECTION_H

#include "kernel/pick.h"
#include "session/elements.h"
#include "tensor/tensor.h"

/* Points into itself: it must not be moved. */
struct td_selection {
    const struct td_tensor *tensor; /* as it is in its file; borrowed */
    struct td_slice slice;
    bool whole;            /* `part` is what was selected; else it is the tensor to pick from */
    struct td_tensor part; /* what the loader reads */
    struct td_loader loader;
    struct td_pick pick; /* how to pick from it */
};

/* `text` is the slice without brackets, "" for everything. */
TD_CHECK tdbg_status td_selection_init(struct td_selection *s, const struct td_tensor *tensor,
                                       const char *text, struct tdbg_error *error);
void td_selection_release(struct td_selection *s);

/* Elements [start, start + count) of the selection, as s->loader.dtype. */
TD_CHECK tdbg_status td_selection_load(const struct td_selection *s, int64_t start, int64_t count, void *out,
                                       struct tdbg_error *error);

/* The same for whoever does not care where elements come from; borrows the selection. */
struct td_elements td_selection_elements(const struct td_selection *s);

#endif
