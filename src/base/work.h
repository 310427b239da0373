/* work.h: what a long piece of work is done with: the threads, who watches and may stop it, and where what it
 * makes is kept. Passed down as one; a part of the work that keeps something elsewhere copies it and changes
 * the arena.
 */
#ifndef TD_BASE_WORK_H
#define TD_BASE_WORK_H

#include "base/arena.h"
#include "base/job.h"
#include "base/pool.h"

struct td_work {
    struct td_pool *pool;   /* NULL: the calling thread alone */
    struct td_job *job;     /* NULL: nobody watches */
    struct td_arena *arena; /* NULL where nothing is kept */
};

#endif
