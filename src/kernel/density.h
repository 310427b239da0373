/* density.h: how the values of two operands lie: each by itself over one range, and one against the other. */
#ifndef TD_KERNEL_DENSITY_H
#define TD_KERNEL_DENSITY_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/operand.h"

/* Counts of both sides in the same bins over [low, high]; the bins + 1 edges that decided, as doubles. */
TD_CHECK tdbg_status td_histograms(const struct td_operand *a, const struct td_operand *b,
                                   struct td_pool *pool, struct td_job *job, double low, double high,
                                   int bins, double *edges, uint64_t *counts_a, uint64_t *counts_b,
                                   struct tdbg_error *error);

/* Counts of pairs, both within [low, high]: size * size of them, row = bin of b, column = bin of a. */
TD_CHECK tdbg_status td_density(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                                struct td_job *job, double low, double high, int size, uint64_t *counts,
                                struct tdbg_error *error);

#endif
