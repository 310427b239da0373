/* export.h: a selection as a file other programs read: .npy and .csv. Streamed, any size. */
#ifndef TD_CLI_EXPORT_H
#define TD_CLI_EXPORT_H

#include "base/job.h"
#include "cli/values.h"

/* The first `count` elements of the selection, as an array of `shape`. */
struct export
{
    struct values *values;
    const struct td_shape *shape;
    int64_t count;
};

/* The type the .npy file will hold: the tensor's own, or float32 for types numpy does not have. */
enum td_dtype export_npy_dtype(const struct export *e);

TD_CHECK tdbg_status export_npy(const struct export *e, FILE *file, struct td_job *job,
                                struct tdbg_error *error);

/* One line per row of the last axis. */
TD_CHECK tdbg_status export_csv(const struct export *e, FILE *file, struct td_job *job,
                                struct tdbg_error *error);

#endif
