/* progress.c: a thread of its own reads the job ten times a second, so that the workers need not care. */
#include "cli/progress.h"

#include "cli/text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_MS = 300, TICK_MS = 100, BAR = 24 };

struct progress {
    const struct term *term;
    struct td_job *job;
    const char *what;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, drawn;
    struct timespec start;
};

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static void draw(struct progress *p)
{
    const struct term *term = p->term;
    uint64_t done = atomic_load_explicit(&p->job->done, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&p->job->total, memory_order_relaxed);
    double seconds = seconds_since(&p->start);
    char size[SIZE_TEXT], speed[SIZE_TEXT];
    text_size(size, done);
    text_size(speed, seconds > 0 ? (uint64_t)((double)done / seconds) : 0);
    size_t room = term->width > BAR + 45 ? (size_t)term->width - BAR - 40 : 8;
    fputs("\r\033[K", term->file);
    term_put_elided(term, p->what, room);
    fputs("  ", term->file);
    if (total > 0) {
        double share = done < total ? (double)done / (double)total : 1;
        int used = term_put_bar(term, share, BAR);
        fprintf(term->file, "%*s  %3d %%", BAR - used, "", (int)(share * 100));
    }
    fprintf(term->file, "  %s  %s/s", size, speed);
    fflush(term->file);
    p->drawn = true;
}

static void *watch(void *context)
{
    struct progress *p = context;
    struct timespec next = p->start;
    int wait = PATIENCE_MS;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        next.tv_nsec += wait * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        while (!p->stop && pthread_cond_timedwait(&p->wake, &p->lock, &next) == 0)
            ;
        if (!p->stop)
            draw(p);
        wait = TICK_MS;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct progress *progress_start(struct cli *cli, const char *what, uint64_t total)
{
    atomic_store(&cli->job->done, 0);
    atomic_store(&cli->job->total, total);
    if (!cli->err.tty || cli->quiet)
        return NULL;
    struct progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->term = &cli->err;
    p->job = cli->job;
    p->what = what;
    clock_gettime(CLOCK_MONOTONIC, &p->start);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&p->lock, NULL);
    if (pthread_create(&p->thread, NULL, watch, p) != 0) {
        pthread_cond_destroy(&p->wake);
        pthread_mutex_destroy(&p->lock);
        free(p);
        return NULL;
    }
    return p;
}

void progress_stop(struct progress **progress)
{
    struct progress *p = *progress;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    if (p->drawn) {
        fputs("\r\033[K", p->term->file);
        fflush(p->term->file);
    }
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
    *progress = NULL;
}
