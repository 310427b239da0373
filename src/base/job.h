/* job.h: how far a long piece of work has come, and whether it should stop.
 *
 * The worker adds to `done` and looks at `cancelled` every so often; whoever watches (a terminal, a server)
 * reads. A NULL job is legal everywhere: nobody watches.
 */
#ifndef TD_BASE_JOB_H
#define TD_BASE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct td_job {
    _Atomic uint64_t done, total; /* bytes; total 0: not known yet */
    atomic_bool cancelled;
};

static inline bool td_job_cancelled(struct td_job *job)
{
    return job && atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

static inline void td_job_advance(struct td_job *job, uint64_t bytes)
{
    if (job)
        atomic_fetch_add_explicit(&job->done, bytes, memory_order_relaxed);
}

#endif
