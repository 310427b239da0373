/* last.h: the tensor that a thread measured last, in case it is handed over again.
 *
 * A layer that returns what its last part returned hands over one tensor twice, and so does one that passes
 * on what it got. The caller knows that it is the same tensor and that nobody has changed it who says so.
 * Those who write to memory behind its back do not say so: a kernel with a bare pointer, a collective
 * operation. So a sample is kept of what was measured, 64 lines of it, and compared before the statistics are
 * believed again. What changes all values, as they do, shows; then the tensor is measured like any other.
 */
#ifndef TD_RECORD_LAST_H
#define TD_RECORD_LAST_H

#include "tensor/tensor.h"

/* Fewer elements are measured sooner than a sample of them is taken and compared for each. */
enum { TD_LAST_LEAST = 1 << 20 };

struct td_last {
    const void *data; /* NULL: none, or one that is small or not dense */
    enum td_dtype dtype;
    int64_t count;
    uint64_t sample;
    struct tdbg_stats stats;
};

void td_last_keep(struct td_last *last, const struct td_tensor *tensor, const struct tdbg_stats *stats);

/* Whether `tensor` lies where the last one lay and, as far as the sample shows, still has its values. */
bool td_last_is(const struct td_last *last, const struct td_tensor *tensor);

#endif
