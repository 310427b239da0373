/* writing.c: see writing.h. */
#include "serve/writing.h"

#include "io/write_all.h"
#include "serve/room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Pieces that may wait. */
enum { MOST_WAITING = 4 };

struct td_writing {
    int file;
    uint64_t size; /* the thread's, with its room and what hears of it */
    struct td_room room;
    void (*written)(void *context, uint64_t size);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *waiting[MOST_WAITING]; /* a ring; from here on under the lock */
    unsigned taken, done;           /* pieces in all */
    bool ended;
    int trouble;
};

/* The piece stays in the ring while it is written: it is empty again when it counts as done. */
static void *write_pieces(void *context)
{
    struct td_writing *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->done == w->taken && !w->ended)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->done == w->taken)
            break;
        const uint8_t *piece = w->waiting[w->done % MOST_WAITING];
        int trouble = w->trouble;
        pthread_mutex_unlock(&w->lock);
        if (!trouble) {
            td_room_take(&w->room, w->file, w->size + TD_WRITING_PIECE);
            trouble = td_write_all(w->file, piece, TD_WRITING_PIECE);
        }
        if (!trouble)
            w->written(w->context, w->size += TD_WRITING_PIECE);
        pthread_mutex_lock(&w->lock);
        w->trouble = trouble;
        w->done++;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void discard(struct td_writing *w)
{
    for (int i = 0; i < MOST_WAITING; i++)
        free(w->waiting[i]);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct td_writing *td_writing_start(int file, uint64_t size, void (*written)(void *, uint64_t), void *context)
{
    struct td_writing *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct td_writing){
        .file = file, .size = size, .room = {size}, .written = written, .context = context};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    bool ready = true;
    for (int i = 0; i < MOST_WAITING; i++)
        ready = (w->waiting[i] = malloc(TD_WRITING_PIECE)) && ready;
    if (ready && pthread_create(&w->thread, NULL, write_pieces, w) == 0)
        return w;
    discard(w);
    return NULL;
}

int td_writing_take(struct td_writing *w, uint8_t **piece)
{
    pthread_mutex_lock(&w->lock);
    while (w->taken - w->done == MOST_WAITING)
        pthread_cond_wait(&w->changed, &w->lock);
    uint8_t **place = &w->waiting[w->taken % MOST_WAITING], *empty = *place;
    *place = *piece;
    *piece = empty;
    w->taken++;
    int trouble = w->trouble;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return trouble;
}

int td_writing_end(struct td_writing **writing)
{
    struct td_writing *w = *writing;
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    int trouble = w->trouble;
    td_room_end(&w->room, w->file, w->size);
    discard(w);
    *writing = NULL;
    return trouble;
}
