/* stats_rows.h: statistics of many tensors at once.
 *
 * A big tensor is split over the worker threads; small ones are shared out whole, many to a task. Each row
 * stands for itself: one that fails does not stop the others.
 */
#ifndef TD_SESSION_STATS_ROWS_H
#define TD_SESSION_STATS_ROWS_H

#include "session/side.h"

struct td_stats_row {
    const struct td_tensor *tensor; /* what is measured: the tensor, or the slice of it that was named */
    const char *path, *slice;       /* of its input, and the text of the slice; "" when all is meant */
    bool unsliceable;               /* a slice was named of what has none */
    bool known;                     /* recorded: the statistics are filled in, and there are no values */
    struct tdbg_stats stats;
    double *edges;           /* of the histogram: bins + 1; NULL when none was asked for */
    uint64_t *counts;        /* of its bins */
    struct tdbg_error error; /* status TDBG_OK: none */
};

struct td_stats_rows {
    struct td_stats_row *rows;
    size_t count;
    int bins; /* 0: no histograms */
};

/* Room for `count` rows, whose first members the caller fills. */
TD_CHECK tdbg_status td_stats_rows_init(struct td_stats_rows *out, size_t count, int bins,
                                        struct tdbg_error *error);
void td_stats_rows_release(struct td_stats_rows *r);

/* Measures every row; fails only when cancelled or out of memory. */
TD_CHECK tdbg_status td_stats_rows_measure(struct td_stats_rows *r, struct td_pool *pool, struct td_job *job,
                                           struct tdbg_error *error);

/* Bytes that measuring will read, for those who watch. */
uint64_t td_stats_rows_bytes(const struct td_stats_rows *r);

#endif
