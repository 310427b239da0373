/* recorder.c: a recording begins and ends; see recorder.h. */
#include "record/recorder.h"

#include "base/pool.h"
#include "kernel/tier.h"
#include "record/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_CAPTURE "*=full"

static const uint64_t DEFAULT_STAGING = UINT64_C(256) << 20;

static void release(tdbg_run *run)
{
    for (struct td_lane *lane = atomic_load(&run->lanes), *next; lane; lane = next) {
        next = lane->next;
        td_lane_free(lane);
    }
    for (struct td_pending_note *note = run->notes, *next; note; note = next) {
        next = note->next;
        free(note);
    }
    td_writer_free(run->writer);
    td_capture_free(atomic_load(&run->capture));
    td_pool_close(&run->lent);
    pthread_key_delete(run->key);
    pthread_cond_destroy(&run->wake);
    pthread_cond_destroy(&run->room);
    pthread_mutex_destroy(&run->lock);
    free(run->begun);
    free(run->dir);
    free(run);
}

static tdbg_status create(tdbg_run **out, const char *dir, struct tdbg_error *error)
{
    tdbg_run *run = calloc(1, sizeof *run);
    if (!run)
        return td_fail_nomem(error);
    run->dir = strdup(dir);
    if (!run->dir || pthread_key_create(&run->key, NULL) != 0) {
        free(run->dir);
        free(run);
        return td_fail_nomem(error);
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->wake, &monotonic);
    pthread_cond_init(&run->room, &monotonic);
    pthread_condattr_destroy(&monotonic);
    clock_gettime(CLOCK_MONOTONIC, &run->start);
    run->pid = getpid();
    atomic_init(&run->saved, -1);
    *out = run;
    return TDBG_OK;
}

static tdbg_status borrow_threads(tdbg_run *run, const struct tdbg_run_options *options,
                                  struct tdbg_error *error)
{
    int wanted = 1;
    if (options->parallel)
        TD_TRY(td_pool_wanted(&wanted, error));
    return wanted > 1 ? td_pool_borrow(&run->lent, options->parallel, options->parallel_user, error)
                      : TDBG_OK;
}

/* The program's signals are the program's business: the writer takes none. */
static tdbg_status start_thread(tdbg_run *run, struct tdbg_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&run->thread, NULL, td_writer_main, run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? TDBG_OK : td_fail(error, TDBG_NOMEM, "cannot start a thread");
}

static tdbg_status begin(tdbg_run *run, const struct tdbg_run_options *options, int rank, int world,
                         struct tdbg_error *error)
{
    struct td_run_facts facts = {.started = time(NULL), .pid = run->pid, .rank = rank, .world = world};
    struct td_capture *capture;
    const char *environment = getenv("TDBG_CAPTURE");
    const char *rules = options->capture ? options->capture : environment ? environment : DEFAULT_CAPTURE;
    TD_TRY(td_kernels_select(&run->kernels, error));
    TD_TRY(borrow_threads(run, options, error));
    run->budget.limit = options->staging_bytes ? options->staging_bytes : DEFAULT_STAGING;
    TD_TRY(td_capture_parse(&capture, rules, NULL, error));
    atomic_init(&run->capture, capture);
    td_run_fact_set(facts.program, sizeof facts.program,
                    options->program ? options->program : program_invocation_short_name);
    td_run_fact_set(facts.capture, sizeof facts.capture, rules);
    if (gethostname(facts.host, sizeof facts.host - 1) != 0)
        facts.host[0] = 0;
    TD_TRY(td_writer_new(&run->writer, run, &facts, error));
    return start_thread(run, error);
}

tdbg_status td_recorder_open(tdbg_run **out, const char *dir, const struct tdbg_run_options *options,
                             int rank, int world, struct tdbg_error *error)
{
    tdbg_run *run = NULL;
    TD_TRY(create(&run, dir, error));
    tdbg_status status = begin(run, options, rank, world, error);
    if (status != TDBG_OK) {
        release(run);
        return status;
    }
    *out = run;
    return TDBG_OK;
}

tdbg_status td_recorder_close(tdbg_run **handle, struct tdbg_error *error)
{
    tdbg_run *run = *handle;
    *handle = NULL;
    if (!run || getpid() != run->pid) /* a forked child has nothing to close */
        return TDBG_OK;
    pthread_mutex_lock(&run->lock);
    run->closing = true;
    pthread_cond_signal(&run->wake);
    pthread_mutex_unlock(&run->lock);
    pthread_join(run->thread, NULL);
    tdbg_status status = run->trouble;
    if (status != TDBG_OK && error)
        *error = run->trouble_error;
    release(run);
    return status;
}
