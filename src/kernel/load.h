/* load.h: any tensor, any part of it, as plain elements in row-major order.
 *
 * Strides are walked, bytes swapped, blocks de-quantised, affine integers scaled, sparse tensors densified:
 * only for the elements asked for. td_direct is the short cut for what needs none of that.
 *
 * What a tensor needs before it can be read (a look through the index table of a sparse one) is done once by
 * td_loader_init; td_loader_read then serves any number of threads. td_load does both for a single read.
 */
#ifndef TD_KERNEL_LOAD_H
#define TD_KERNEL_LOAD_H

#include "tensor/tensor.h"

/* The plain type that elements of this tensor read as. */
enum td_dtype td_value_dtype(const struct td_tensor *tensor);

/* The elements in memory when they are dense, packed and native; else NULL. */
const void *td_direct(const struct td_tensor *tensor);

struct td_loader {
    const struct td_tensor *tensor; /* borrowed */
    enum td_dtype dtype;            /* td_value_dtype */
    const uint8_t *direct;          /* td_direct */
    struct td_sparse_order *order;  /* owned; sparse tensors only */
};

TD_CHECK tdbg_status td_loader_init(struct td_loader *loader, const struct td_tensor *tensor,
                                    struct tdbg_error *error);
void td_loader_release(struct td_loader *loader);

/* Writes elements [start, start + count) of the row-major order to `out` as loader->dtype. */
TD_CHECK tdbg_status td_loader_read(const struct td_loader *loader, int64_t start, int64_t count, void *out,
                                    struct tdbg_error *error);

/* One read of [start, start + count), as td_value_dtype. */
TD_CHECK tdbg_status td_load(const struct td_tensor *tensor, int64_t start, int64_t count, void *out,
                             struct tdbg_error *error);

/* The same as doubles: integers and bools as numbers, complex by modulus. */
TD_CHECK tdbg_status td_load_f64(const struct td_tensor *tensor, int64_t start, int64_t count, double *out,
                                 struct tdbg_error *error);

#endif
