/* waiting.c: see waiting.h. */
#include "serve/waiting.h"

#include <stdlib.h>

enum { MOST = 256 };

struct errand {
    struct td_waiting *waiting;
    void (*run)(void *context);
    void *context;
};

void td_waiting_init(struct td_waiting *w)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->idle, NULL);
    w->running = 0;
    w->ended = false;
}

void td_waiting_end(struct td_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    while (w->running > 0)
        pthread_cond_wait(&w->idle, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void td_waiting_release(struct td_waiting *w)
{
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
}

static void leave(struct td_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    if (--w->running == 0)
        pthread_cond_broadcast(&w->idle);
    pthread_mutex_unlock(&w->lock);
}

static void *go(void *argument)
{
    struct errand errand = *(struct errand *)argument;
    free(argument);
    errand.run(errand.context);
    leave(errand.waiting);
    return NULL;
}

static bool enter(struct td_waiting *w)
{
    pthread_mutex_lock(&w->lock);
    bool room = w->running < MOST && !w->ended;
    w->running += room;
    pthread_mutex_unlock(&w->lock);
    return room;
}

bool td_waiting_start(struct td_waiting *w, void (*run)(void *context), void *context)
{
    if (!enter(w))
        return false;
    struct errand *errand = malloc(sizeof *errand);
    pthread_attr_t attributes;
    pthread_t thread;
    bool started = false;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (errand) {
        *errand = (struct errand){w, run, context};
        started = pthread_create(&thread, &attributes, go, errand) == 0;
    }
    pthread_attr_destroy(&attributes);
    if (!started) {
        free(errand);
        leave(w);
    }
    return started;
}
