/* job.h: how far a long piece of work has come, and whether it should stop.
 *
 * The worker adds to `done` and looks at `cancelled` every so often; whoever watches (a terminal, a server)
 * reads. A NULL job is legal everywhere: nobody watches.
 *
 * A job may know of work that is done already: a server unpacks what it is sent while it arrives. And it may
 * be done for somebody who is not to see every file that its owner can read.
 */
#ifndef TD_BASE_JOB_H
#define TD_BASE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where files may be opened: whether one that is really at `real` may be, as part of what is at `top`, links
 * resolved in both. What lies in the folder that `top` is, or is in, always may. */
struct td_bound {
    bool (*holds)(const void *context, const char *top, const char *real);
    const void *context;
};

struct td_job {
    _Atomic uint64_t done, total; /* bytes; total 0: not known yet */
    atomic_bool cancelled;
    /* A compressed file somewhere under this folder may have TD_UNPACKED beside it, which is what it unpacks
     * to; whoever names the folder vouches for that. NULL: there is none. */
    const char *prepared;
    const struct td_bound *bound; /* NULL: links are followed wherever they lead */
};

#define TD_UNPACKED ".unpacked"

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
