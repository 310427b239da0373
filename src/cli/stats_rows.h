/* stats_rows.h: statistics of many tensors at once.
 *
 * A big tensor is split over the worker threads; small ones are shared out whole, many to a task. Each row
 * stands for itself: one that fails does not stop the others.
 */
#ifndef TD_CLI_STATS_ROWS_H
#define TD_CLI_STATS_ROWS_H

#include "cli/operand.h"

struct stats_row {
    const struct operand *operand;
    const struct td_tensor *tensor; /* what is measured: the tensor, or the slice of it that was named */
    struct tdbg_stats stats;
    double *edges;           /* of the histogram: bins + 1; NULL when none was asked for */
    uint64_t *counts;        /* of its bins */
    struct tdbg_error error; /* status TDBG_OK: none */
};

struct stats_rows {
    struct stats_row *rows;
    size_t count;
    int bins; /* 0: no histograms */
};

/* Measures every tensor of the operands. Fails only where nothing can be measured at all; cancelled when the
 * job is. */
TD_CHECK tdbg_status stats_rows_init(struct stats_rows *out, const struct operands *operands, int bins,
                                     struct td_pool *pool, struct td_job *job, struct tdbg_error *error);
void stats_rows_release(struct stats_rows *r);

/* Bytes that will be read, for the progress bar. */
uint64_t stats_rows_bytes(const struct operands *operands, int bins);

#endif
