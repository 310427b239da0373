/* profile_open.h: whatever can be profiled, by its path: a recorded run, the runs of several ranks, a trace.
 */
#ifndef TD_ANALYSE_PROFILE_OPEN_H
#define TD_ANALYSE_PROFILE_OPEN_H

#include "analyse/profile.h"
#include "analyse/trace.h"
#include "base/job.h"
#include "store/run_store.h"

struct td_profile_source {
    struct td_profile profile; /* finished */
    bool is_run;
    struct td_run_facts run;     /* of a run */
    struct td_trace_facts trace; /* of a trace */
};

TD_CHECK tdbg_status td_profile_source_open(struct td_profile_source *out, const char *path,
                                            struct td_job *job, struct tdbg_error *error);
void td_profile_source_close(struct td_profile_source *source);

/* One run of several: the folders rank-0, rank-1, … of `path`. `*ranks` are their numbers in order, to be
 * freed; none when it is no such folder. */
TD_CHECK tdbg_status td_profile_ranks(const char *path, int **ranks, size_t *count, struct tdbg_error *error);

#endif
