/* spread.h: the squares of some pairs, added up by column and as a whole: what profiles are made of.
 *
 * With d = a - b, pair i adds d^2 to error[i] and a^2 to power[i], and both to lane i % 16, whose sums
 * combine as in block.h. A square of what is not finite is 0. Each column is added to once, so vectors of any
 * width round the same way; one read of both sides serves the errors and what they are compared with.
 */
#ifndef TD_KERNEL_SPREAD_H
#define TD_KERNEL_SPREAD_H

#include "kernel/block.h"
#include "tensor/dtype.h"

struct td_spread {
    double error, power;
};

/* Any number of pairs, at any address. */
typedef struct td_spread td_spread_kernel(const void *a, const void *b, int64_t count, double *error,
                                          double *power);

/* One table per tier: loops for the pairs of types that pair.h has loops for. */
struct td_spread_kernels {
    td_spread_kernel *loop[TD_BF16 + 1][TD_BF16 + 1];
};

extern const struct td_spread_kernels td_spreads_scalar, td_spreads_vector;
#if defined(__x86_64__)
extern const struct td_spread_kernels td_spreads_avx2, td_spreads_avx512;
#endif

#endif
