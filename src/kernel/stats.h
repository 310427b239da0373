/* stats.h: one pass over a tensor, everything worth knowing about its values. */
#ifndef TD_KERNEL_STATS_H
#define TD_KERNEL_STATS_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/tensor.h"

/* The answer is the same, bit for bit, whatever the tier, the strides and the number of threads. Expanded
 * axes (stride 0) and the unnamed zeros of a sparse tensor are not walked but counted, so there the last bits
 * may differ from those of a dense copy. std of a single value is NaN, as n - 1 is zero. pool NULL: the
 * calling thread does it alone. */
TD_CHECK tdbg_status td_stats(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                              struct tdbg_stats *out, struct tdbg_error *error);

/* The same with a tier that was chosen before. For a program that is recorded: its environment, which names
 * the tier, lies cold in memory, and another of its threads may be changing it. The pool, if any, is given
 * single blocks: its threads are awake, and the tensors of a program are often of a few blocks only. */
struct td_kernels;
TD_CHECK tdbg_status td_stats_with(const struct td_kernels *kernels, const struct td_tensor *tensor,
                                   struct td_pool *pool, struct tdbg_stats *out, struct tdbg_error *error);

/* What a pass over blocks leaves to its caller, for values up to `absmax` in size: the power of two by which
 * to multiply them so that their squares stay within the range of doubles, mostly 1; how a second pass over
 * the scaled values completes the first; and the answer. */
struct td_partial;
double td_spread_scale(double absmax);
void td_partial_complete(struct td_partial *p, const struct td_partial *scaled);
void td_partial_report(const struct td_partial *p, double scale, struct tdbg_stats *out);

/* Counts of the finite values in `bins` equal bins over [low, high], the last one closed, as numpy does
 * (low = high: half a unit to either side). `edges` gets the bins + 1 edges that decided. */
TD_CHECK tdbg_status td_histogram(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                                  double low, double high, int bins, double *edges, uint64_t *counts,
                                  struct tdbg_error *error);

#endif
