/* operand.h: one side of a comparison, lined up: one tensor, or the shards of one, seen in the layout in
 * which they are compared.
 *
 * Each part is a tensor whose shape and strides are already those of the comparison; the parts follow each
 * other along `axis`, or add up, or are copies of which the first stands for all. Layout operations change
 * shapes and strides only, part by part, so a permuted or split shard costs nothing until it is read.
 */
#ifndef TD_TENSOR_OPERAND_H
#define TD_TENSOR_OPERAND_H

#include "tensor/tensor.h"

enum td_join {
    TD_JOIN_CONCAT, /* one after the other along `axis`; also the case of a single part */
    TD_JOIN_SUM     /* partial sums of one result */
};

struct td_operand {
    enum td_join join;
    int axis; /* TD_JOIN_CONCAT with several parts: where they follow each other */
    struct td_shape shape;
    int64_t count;
    int part_count;
    struct td_tensor *parts; /* borrowed; all have the shape of the operand, but for `axis` */

    /* The tensors as they are stored. What is not dense (blocks, sparse, affine) is read through these: its
     * layout never changes but for its shape, so the row-major order is the same. */
    const struct td_tensor *const *stored;
};

static inline bool td_tensor_is_dense(const struct td_tensor *t)
{
    return td_dtype_is_plain(t->dtype) && !t->sparse;
}

#endif
