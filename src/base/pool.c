/* pool.c: see pool.h.
 *
 * The workers sleep on `wake` until `round` changes, then draw indices from one atomic counter until it runs
 * out; the caller draws as well and then waits on `idle` for the last worker that came. One that comes when
 * nothing is left to draw finds the loop closed: where others keep the CPUs busy nobody waits for it. One
 * loop at a time: `entry` makes a second caller wait its turn. Which thread runs which index is left to
 * chance on purpose: it balances itself, and nothing may depend on it.
 *
 * On a virtual machine Linux takes a CPU that rests for one that the host has taken away. It then wakes a
 * thread on the CPU of whoever wakes it, where it may wait for milliseconds while the other CPU rests. So
 * sleeping workers are sent elsewhere, and each may use all its CPUs again as soon as it runs.
 *
 * A loop on borrowed threads is cut into parts of neighbouring indices, because threads that are given parts
 * in order often find in their own caches what they wrote themselves. How the lender waits for its threads is
 * its own affair; that everybody sees what the others wrote is seen to here, by a counter of finished parts.
 * On a machine with more to do than CPUs a lent thread may not come for milliseconds, and the loop waits for
 * it at the end. Where the caller alone would have been done long before, the next loops are left to it.
 */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 256 };

/* A loop on borrowed threads that takes so much longer than the caller would alone was in vain; after it so
 * many loops are not lent. The shortest turn that a scheduler gives is a few milliseconds. */
enum { VAIN_NS = 1000000, REST = 64 };

/* More workers than this spread by themselves, and to send them all would take long. */
enum { MOST_SENT = 8 };

struct worker {
    struct td_pool *pool;
    pthread_t thread;
    bool sent;      /* guarded by the pool's lock: not to the caller's CPU; */
    cpu_set_t cpus; /* … these are its own */
};

struct td_pool {
    pthread_mutex_t entry, lock;
    pthread_cond_t wake, idle;
    uint64_t round;     /* guarded by lock, as are the next three */
    bool open, closing; /* open: whoever comes may draw */
    int busy;           /* workers that draw */

    void (*task)(void *context, uint64_t i);
    void *context;
    uint64_t count;
    _Atomic uint64_t next;

    td_lend *lend; /* NULL: the threads are ours */
    void *lender;
    _Atomic int rest; /* loops that it is not asked for */

    int worker_count; /* threads beside the caller */
    struct worker workers[];
};

static void draw(struct td_pool *pool)
{
    for (;;) {
        uint64_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->count)
            return;
        pool->task(pool->context, i);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct td_pool *pool = worker->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->closing)
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->closing)
            break;
        seen = pool->round;
        if (worker->sent)
            (void)sched_setaffinity(0, sizeof worker->cpus, &worker->cpus);
        worker->sent = false;
        if (!pool->open)
            continue;
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        draw(pool);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

tdbg_status td_pool_wanted(int *threads, struct tdbg_error *error)
{
    const char *text = getenv("TDBG_THREADS");
    if (text && *text) {
        char *end;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (errno || *end || value < 1 || value > MAX_THREADS)
            return td_fail(error, TDBG_MISUSE, "TDBG_THREADS=%s: a number from 1 to %d is needed", text,
                           MAX_THREADS);
        *threads = (int)value;
        return TDBG_OK;
    }
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    *threads = count > MAX_THREADS ? MAX_THREADS : count;
    return TDBG_OK;
}

tdbg_status td_pool_open(struct td_pool **out, int threads, struct tdbg_error *error)
{
    if (threads < 0 || threads > MAX_THREADS)
        return td_fail(error, TDBG_MISUSE, "%d threads: a number from 1 to %d is needed", threads,
                       MAX_THREADS);
    if (threads == 0)
        TD_TRY(td_pool_wanted(&threads, error));

    struct td_pool *pool = calloc(1, sizeof *pool + (size_t)(threads - 1) * sizeof pool->workers[0]);
    if (!pool)
        return td_fail_nomem(error);
    pthread_mutex_init(&pool->entry, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    for (int i = 0; i < threads - 1; i++) {
        pool->workers[i].pool = pool;
        int code = pthread_create(&pool->workers[i].thread, NULL, work, &pool->workers[i]);
        if (code != 0) {
            td_pool_close(&pool);
            errno = code;
            return td_fail_errno(error, "cannot start a thread");
        }
        pool->worker_count++;
    }
    *out = pool;
    return TDBG_OK;
}

tdbg_status td_pool_borrow(struct td_pool **out, td_lend *lend, void *lender, struct tdbg_error *error)
{
    struct td_pool *pool;
    TD_TRY(td_pool_open(&pool, 1, error));
    pool->lend = lend;
    pool->lender = lender;
    *out = pool;
    return TDBG_OK;
}

void td_pool_close(struct td_pool **slot)
{
    struct td_pool *pool = *slot;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->worker_count; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->entry);
    free(pool);
    *slot = NULL;
}

int td_pool_threads(const struct td_pool *pool)
{
    return pool->lend ? MAX_THREADS : pool->worker_count + 1;
}

/* A loop on borrowed threads. */
struct loan {
    void (*task)(void *context, uint64_t i);
    void *context;
    uint64_t count;
    int parts;
    _Atomic int done; /* parts */

    pthread_t caller;
    int own; /* parts that the caller ran itself */
    int64_t begun, own_end;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_part(void *context, int index)
{
    struct loan *loan = context;
    (void)atomic_load_explicit(&loan->done, memory_order_acquire); /* sees all that the caller did before */
    uint64_t parts = (uint64_t)loan->parts, part = (uint64_t)index;
    for (uint64_t i = loan->count * part / parts; i < loan->count * (part + 1) / parts; i++)
        loan->task(loan->context, i);
    if (pthread_equal(pthread_self(), loan->caller)) {
        loan->own++;
        loan->own_end = now();
    }
    atomic_fetch_add_explicit(&loan->done, 1, memory_order_release);
}

static bool was_in_vain(const struct loan *loan)
{
    int64_t alone = loan->own ? (loan->own_end - loan->begun) / loan->own * loan->parts : INT64_MAX / 2;
    return now() - loan->begun > alone + VAIN_NS;
}

static void run_borrowed(struct td_pool *pool, struct loan *loan)
{
    loan->caller = pthread_self();
    loan->begun = now();
    loan->parts = loan->count < MAX_THREADS ? (int)loan->count : MAX_THREADS;
    atomic_store_explicit(&loan->done, 0, memory_order_release);
    pool->lend(pool->lender, loan->parts, run_part, loan);
    (void)atomic_load_explicit(&loan->done, memory_order_acquire); /* the caller sees all that they did */
    if (was_in_vain(loan))
        atomic_store_explicit(&pool->rest, REST, memory_order_relaxed);
}

static bool rests(struct td_pool *pool)
{
    return atomic_load_explicit(&pool->rest, memory_order_relaxed) > 0 &&
           atomic_fetch_sub_explicit(&pool->rest, 1, memory_order_relaxed) > 0;
}

static void send_elsewhere(struct td_pool *pool)
{
    int here = sched_getcpu();
    for (int i = 0; i < pool->worker_count && pool->worker_count <= MOST_SENT && here >= 0; i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->sent || pthread_getaffinity_np(worker->thread, sizeof worker->cpus, &worker->cpus) != 0)
            continue;
        cpu_set_t others = worker->cpus;
        CPU_CLR((size_t)here, &others);
        worker->sent =
            CPU_COUNT(&others) > 0 && pthread_setaffinity_np(worker->thread, sizeof others, &others) == 0;
    }
}

void td_pool_run(struct td_pool *pool, uint64_t count, void (*task)(void *context, uint64_t i), void *context)
{
    bool alone = !pool || count < 2 || (pool->lend && rests(pool));
    for (uint64_t i = 0; alone && i < count; i++)
        task(context, i);
    if (alone)
        return;
    if (pool->lend) {
        run_borrowed(pool, &(struct loan){.task = task, .context = context, .count = count});
        return;
    }
    pthread_mutex_lock(&pool->entry);
    pool->task = task;
    pool->context = context;
    pool->count = count;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);

    pthread_mutex_lock(&pool->lock);
    pool->round++;
    pool->open = true;
    send_elsewhere(pool);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);

    draw(pool);

    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    while (pool->busy > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->entry);
}
