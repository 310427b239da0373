/* sparse.h: sparse tensors read as if they were dense.
 *
 * The order of a sparse tensor is what one look through its index table yields: that every index is in
 * range, how the entries sort in row-major order, and which name the same place. It is made once per tensor
 * and then read by any number of threads.
 */
#ifndef TD_KERNEL_SPARSE_H
#define TD_KERNEL_SPARSE_H

#include "tensor/tensor.h"

struct td_sparse_order;

TD_CHECK tdbg_status td_sparse_order_open(struct td_sparse_order **out, const struct td_tensor *tensor,
                                          struct tdbg_error *error);
void td_sparse_order_close(struct td_sparse_order **order);

/* Elements [start, start + count) of the dense tensor in row-major order. */
TD_CHECK tdbg_status td_sparse_read(const struct td_sparse_order *order, int64_t start, int64_t count,
                                    void *out, struct tdbg_error *error);

/* What is stored, entries of the same place added up: the tensor without its unnamed zeros. How many elements
 * that are, and elements [start, start + count) of them. */
int64_t td_sparse_stored(const struct td_sparse_order *order);
TD_CHECK tdbg_status td_sparse_read_stored(const struct td_sparse_order *order, int64_t start, int64_t count,
                                           void *out, struct tdbg_error *error);

/* The stored elements are just the elements of the values' view. */
bool td_sparse_is_distinct(const struct td_sparse_order *order);

#endif
