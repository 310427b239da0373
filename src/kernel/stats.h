/* stats.h: one pass over a tensor, everything worth knowing about its values. */
#ifndef TD_KERNEL_STATS_H
#define TD_KERNEL_STATS_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/tensor.h"

/* The answer is the same, bit for bit, whatever the tier, the strides and the number of threads. */
TD_CHECK tdbg_status td_stats(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                              struct tdbg_stats *out, struct tdbg_error *error);

/* Counts of the finite values in `bins` equal bins over [low, high], the last one closed, as numpy does. */
TD_CHECK tdbg_status td_histogram(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                                  double low, double high, int bins, uint64_t *counts,
                                  struct tdbg_error *error);

#endif
