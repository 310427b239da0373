/* events.c: see streams.h. One lock guards the list and every stream in it; it is held while a stream is
 * asked for news, which does not block, and while its connection is suspended or resumed, so that the two
 * cannot cross. The HTTP library is never called with a lock of its own held that it would want to take from
 * here. */
#include "serve/streams.h"

#include "serve/request.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TICK_MILLISECONDS = 100,
    HEARTBEAT_TICKS = 150,
    MOST_STREAMS = 128,
    MOST_PENDING = 4 << 20,
    BLOCK = 16384
};

struct stream {
    struct stream *next, **link;
    struct td_streams *all;
    struct MHD_Connection *connection;
    struct td_events events;
    struct td_buffer pending;
    size_t sent; /* bytes of it */
    int quiet;   /* ticks since something was sent */
    bool suspended, ended;
};

struct td_streams {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t ticker;
    struct stream *first;
    int count;
    bool ending;
    bool hurry; /* somebody has news: do not wait for the next tick */
};

/* Fills `pending`, if there is anything. The lock is held. */
static void ask(struct stream *s)
{
    s->sent = 0;
    td_buffer_clear(&s->pending);
    if (s->all->ending || !s->events.next(s->events.context, &s->pending) || s->pending.failed)
        s->ended = true;
    else if (s->pending.size == 0 && ++s->quiet >= HEARTBEAT_TICKS)
        td_buffer_puts(&s->pending, ":\n\n");
    if (s->pending.size > 0)
        s->quiet = 0;
}

static void *tick(void *argument)
{
    struct td_streams *all = argument;
    pthread_mutex_lock(&all->lock);
    while (!all->ending) {
        for (struct stream *s = all->first; s; s = s->next) {
            if (!s->suspended)
                continue;
            ask(s);
            if (s->pending.size > 0 || s->ended) {
                s->suspended = false;
                td_mhd.resume_connection(s->connection);
            }
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_MILLISECONDS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        while (!all->ending && !all->hurry &&
               pthread_cond_timedwait(&all->wake, &all->lock, &until) != ETIMEDOUT)
            continue;
        all->hurry = false;
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

tdbg_status td_streams_open(struct td_streams **out, struct tdbg_error *error)
{
    struct td_streams *all = calloc(1, sizeof *all);
    if (!all)
        return td_fail_nomem(error);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&all->ticker, NULL, tick, all) != 0) {
        pthread_cond_destroy(&all->wake);
        pthread_mutex_destroy(&all->lock);
        free(all);
        return td_fail(error, TDBG_NOMEM, "cannot start a thread");
    }
    *out = all;
    return TDBG_OK;
}

void td_streams_hurry(struct td_streams *all)
{
    pthread_mutex_lock(&all->lock);
    all->hurry = true;
    pthread_cond_signal(&all->wake);
    pthread_mutex_unlock(&all->lock);
}

void td_streams_end(struct td_streams *all)
{
    pthread_mutex_lock(&all->lock);
    all->ending = true;
    pthread_cond_signal(&all->wake);
    for (struct stream *s = all->first; s; s = s->next) {
        if (s->suspended)
            td_mhd.resume_connection(s->connection);
        s->suspended = false;
    }
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->ticker, NULL);
}

void td_streams_close(struct td_streams **streams)
{
    struct td_streams *all = *streams;
    if (!all)
        return;
    pthread_cond_destroy(&all->wake);
    pthread_mutex_destroy(&all->lock);
    free(all);
    *streams = NULL;
}

/* --- The HTTP library's side ---------------------------------------------------------------------------- */

static ssize_t read_stream(void *context, uint64_t position, char *out, size_t room)
{
    struct stream *s = context;
    struct td_streams *all = s->all;
    (void)position;
    ssize_t result = 0;
    pthread_mutex_lock(&all->lock);
    size_t left = s->pending.size - s->sent;
    if (left > 0) {
        result = (ssize_t)(left < room ? left : room);
        memcpy(out, s->pending.data + s->sent, (size_t)result);
        s->sent += (size_t)result;
    } else if (s->ended || all->ending) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        s->suspended = true;
        td_mhd.suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&all->lock);
    return result;
}

static void free_stream(void *context)
{
    struct stream *s = context;
    struct td_streams *all = s->all;
    pthread_mutex_lock(&all->lock);
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    all->count--;
    pthread_mutex_unlock(&all->lock);
    s->events.release(s->events.context);
    td_buffer_release(&s->pending);
    free(s);
}

/* Puts it into the list, and asks it for what is known already. False: there are too many. */
static bool enlist(struct td_streams *all, struct stream *s)
{
    pthread_mutex_lock(&all->lock);
    bool room = all->count < MOST_STREAMS && !all->ending;
    if (room) {
        s->all = all;
        s->link = &all->first;
        s->next = all->first;
        if (s->next)
            s->next->link = &s->next;
        all->first = s;
        all->count++;
        ask(s);
    }
    pthread_mutex_unlock(&all->lock);
    return room;
}

void td_answer_events(struct td_exchange *x, const struct td_events *events)
{
    struct td_request *r = x->transport;
    struct stream *s = calloc(1, sizeof *s);
    if (s) {
        s->connection = r->connection;
        s->events = *events;
        td_buffer_init(&s->pending, MOST_PENDING);
    }
    if (!s || !enlist(x->server->streams, s)) {
        free(s);
        events->release(events->context);
        td_answer_error(x, 503, "too many clients are watching");
        return;
    }
    struct MHD_Response *response =
        td_mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, s, free_stream);
    if (!response)
        free_stream(s);
    td_answer_response(r, 200, "text/event-stream", response);
}
