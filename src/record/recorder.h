/* recorder.h: a run that is being recorded.
 *
 *     threads of the program ── lanes ──► writer ──► run.db, step-….safetensors
 *
 * A call of the program costs a clock, a look-up and a few stores into the lane of its thread; a tensor costs
 * its copy, or its statistics where nothing else is kept. Everything else (files, sketches, SQL) is the
 * writer's, one thread for the run. Locks are taken
 * only where a step begins, a thread records for the first time, or somebody has to wait.
 *
 * Steps: each event carries the ordinal of the step it was recorded in. The writer finishes a step when the
 * program has begun the next one and every lane is drained of the events before it.
 */
#ifndef TD_RECORD_RECORDER_H
#define TD_RECORD_RECORDER_H

#include "record/lane.h"
#include "record/observer.h"

#include <pthread.h>
#include <sys/types.h>

/* A step as the program began it. */
struct td_begun {
    int64_t number, time_ns, cpu_ns;
};

/* Something for the table of notes, on its way. */
struct td_pending_note {
    struct td_pending_note *next;
    int64_t time_ns;
    const char *kind; /* static */
    char text[];
};

struct tdbg_run {
    char *dir;
    pid_t pid; /* a forked child has no writer: it must neither wait for one nor take the lock */
    struct timespec start;
    const struct td_kernels *kernels; /* what statistics are taken with */
    struct td_pool *lent;             /* threads of the program for large tensors; NULL: it lends none */
    pthread_key_t key;                /* the lane of a thread */
    _Atomic(struct td_lane *) lanes;
    _Atomic(const struct td_observer *) observer;
    _Atomic(struct td_capture *) capture;
    _Atomic int64_t next_tensor; /* the order of execution */
    _Atomic uint32_t ordinal;    /* of the step under way */
    _Atomic int64_t number;      /* its number */
    _Atomic int64_t saved;
    atomic_bool dead; /* recording has ended: trouble, or this is a forked child */
    struct td_budget budget;

    pthread_mutex_t lock; /* of everything below, and of adding to the lanes */
    pthread_cond_t wake;  /* the writer has something to do */
    pthread_cond_t room;  /* the writer made room */
    atomic_bool asleep;   /* the writer waits */
    atomic_bool pressing; /* it should not */
    bool closing;
    uint32_t threads;
    struct td_begun *begun; /* steps the writer has not finished, the oldest first */
    size_t begun_count, begun_capacity;
    struct td_pending_note *notes;
    size_t note_count; /* in all */

    struct td_control *control; /* of live/, which opens and closes it */
    struct td_writer *writer;
    pthread_t thread;
    tdbg_status trouble;
    struct tdbg_error trouble_error;
};

/* `dir` exists and holds no run. */
TD_CHECK tdbg_status td_recorder_open(tdbg_run **out, const char *dir, const struct tdbg_run_options *options,
                                      int rank, int world, struct tdbg_error *error);
/* What went wrong while recording, if anything; the run is gone in any case. */
TD_CHECK tdbg_status td_recorder_close(tdbg_run **run, struct tdbg_error *error);

/* Nanoseconds since the run began. */
int64_t td_recorder_now(const tdbg_run *run);

#endif
