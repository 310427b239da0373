/* export.h: elements as a file other programs read: .npy and .csv. Streamed, any size. */
#ifndef TD_REPORT_EXPORT_H
#define TD_REPORT_EXPORT_H

#include "base/job.h"
#include "report/values.h"
#include "tensor/view.h"

/* The first `count` elements, as an array of `shape`. */
struct td_export {
    struct td_values *values;
    const struct td_shape *shape;
    int64_t count;
};

/* The type the .npy file will hold: the tensor's own, or float32 for types numpy does not have. */
enum td_dtype td_export_npy_dtype(const struct td_export *e);

TD_CHECK tdbg_status td_export_npy(const struct td_export *e, FILE *file, struct td_job *job,
                                   struct tdbg_error *error);

/* One line per row of the last axis. */
TD_CHECK tdbg_status td_export_csv(const struct td_export *e, FILE *file, struct td_job *job,
                                   struct tdbg_error *error);

#endif
