/* tensorboard.h: a recorded run as an event file of TensorBoard.
 *
 * Scalars come as they were recorded. A tensor with a sketch, or with values, becomes a histogram of
 * TD_SKETCH_BINS bins at the number of its step; the step under way is left out, as its number is not known.
 */
#ifndef TD_REPORT_TENSORBOARD_H
#define TD_REPORT_TENSORBOARD_H

#include "base/job.h"
#include "base/pool.h"
#include "store/run_store.h"

#include <stdio.h>

struct td_tensorboard_counts {
    uint64_t scalars, histograms;
    uint64_t bare;              /* tensors of which statistics alone were kept */
    uint64_t lost;              /* tensors whose values could not be read */
    struct tdbg_error why_lost; /* of the first of them */
};

/* The name TensorBoard looks for, the same each time for the same run. Returns `out`. */
const char *td_tensorboard_name(const struct td_run_facts *facts, char *out, size_t size);

TD_CHECK tdbg_status td_tensorboard_write(struct td_run_store *store, const char *dir, FILE *file,
                                          struct td_pool *pool, struct td_job *job,
                                          struct td_tensorboard_counts *out, struct tdbg_error *error);

#endif
