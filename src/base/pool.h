/* pool.h: a fixed set of worker threads and one way to use them: a parallel loop.
 *
 * td_pool_run calls task(context, i) once for every i in [0, count), in any order, on the workers and on the
 * calling thread, and returns when all are done. Tasks must not depend on each other's order: results go
 * into slot i and are combined afterwards in index order, which is what keeps answers the same at any thread
 * count. Not re-entrant: a task does not start a loop of its own, but with a NULL pool: that is a plain loop
 * on the calling thread.
 *
 * The threads may be somebody else's (td_pool_borrow): those of a program that is recorded are awake and have
 * in their caches what is to be read.
 */
#ifndef TD_BASE_POOL_H
#define TD_BASE_POOL_H

#include "base/status.h"

struct td_pool;

/* How many threads people want: TDBG_THREADS, else the CPUs this process may use. */
TD_CHECK tdbg_status td_pool_wanted(int *threads, struct tdbg_error *error);

/* threads 0: as many as people want. */
TD_CHECK tdbg_status td_pool_open(struct td_pool **out, int threads, struct tdbg_error *error);

/* A pool without threads of its own: a loop becomes one call of `lend`, which calls part(context, i) once for
 * every i in [0, parts), where and in what order it likes, and returns when all are done. Several loops may
 * be under way at once, each on the thread that began it. After a loop for which the threads did not come in
 * time, the caller runs the next ones alone. */
typedef void td_lend(void *lender, int parts, void (*part)(void *context, int index), void *context);
TD_CHECK tdbg_status td_pool_borrow(struct td_pool **out, td_lend *lend, void *lender,
                                    struct tdbg_error *error);

void td_pool_close(struct td_pool **pool);

/* The most tasks that run at the same time. */
int td_pool_threads(const struct td_pool *pool);

void td_pool_run(struct td_pool *pool, uint64_t count, void (*task)(void *context, uint64_t i),
                 void *context);

#endif
