/* unpack.c: unpacking in a thread of its own, writing in the caller's.
 *
 *     decoder --> ring of buffers --> sink: the spill, or a file of the caller's
 *     (thread)                        (caller)
 *
 * Decoding is the slow part and keeps one core busy; copying into the page cache would take another fifth of
 * its time, so it happens beside it. The ring is small: it smooths, it does not store, and the buffers stay
 * in the cache between the two.
 */
#include "io/unpack.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8, SLOT_SIZE = 1 << 18 };

struct slot {
    uint8_t *data;
    size_t size;
    uint64_t consumed; /* compressed bytes it took to fill */
};

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    uint64_t filled, emptied; /* slots so far; filled - emptied <= SLOTS */
    bool ended;               /* the decoder will fill no more */
    bool stop;                /* the caller wants no more */
    tdbg_status status;       /* of the decoder; valid when ended */
    struct tdbg_error error;
    struct td_decoder *decoder;
};

/* --- the decoder's side --------------------------------------------------------------------------------- */

/* The slot to fill next, or NULL when the caller wants no more. */
static struct slot *wait_empty(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (!ring->stop && ring->filled - ring->emptied == SLOTS)
        pthread_cond_wait(&ring->changed, &ring->lock);
    struct slot *slot = ring->stop ? NULL : &ring->slots[ring->filled % SLOTS];
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

static void publish(struct ring *ring, tdbg_status status)
{
    pthread_mutex_lock(&ring->lock);
    if (status == TDBG_OK)
        ring->filled++;
    ring->status = status;
    ring->ended = status != TDBG_OK || ring->decoder->ended;
    pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static void *decode(void *context)
{
    struct ring *ring = context;
    struct td_decoder *decoder = ring->decoder;
    struct slot *slot;
    bool more = true;
    while (more && (slot = wait_empty(ring))) {
        uint64_t before = decoder->consumed;
        tdbg_status status = decoder->read(decoder, slot->data, SLOT_SIZE, &slot->size, &ring->error);
        slot->consumed = decoder->consumed - before;
        more = status == TDBG_OK && !decoder->ended;
        publish(ring, status);
    }
    return NULL;
}

/* --- the caller's side ---------------------------------------------------------------------------------- */

/* The next filled slot, or NULL at the end. */
static struct slot *wait_filled(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (!ring->ended && ring->filled == ring->emptied)
        pthread_cond_wait(&ring->changed, &ring->lock);
    struct slot *slot = ring->filled == ring->emptied ? NULL : &ring->slots[ring->emptied % SLOTS];
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

static void give_back(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->emptied++;
    pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static tdbg_status drain(struct ring *ring, struct td_sink *sink, struct tdbg_error *error)
{
    struct slot *slot;
    while ((slot = wait_filled(ring))) {
        TD_TRY(sink->take(sink, slot->data, slot->size, slot->consumed, error));
        give_back(ring);
    }
    if (ring->status != TDBG_OK && error)
        *error = ring->error;
    return ring->status;
}

/* Signals are for the program's own threads; only faults must reach this one. */
static int start_thread(pthread_t *thread, struct ring *ring)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, NULL, decode, ring);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static tdbg_status run(struct ring *ring, struct td_sink *sink, struct tdbg_error *error)
{
    pthread_t thread;
    int code = start_thread(&thread, ring);
    if (code != 0)
        return td_fail(error, TDBG_IO, "cannot start a thread: %s", strerror(code));
    tdbg_status status = drain(ring, sink, error);
    pthread_mutex_lock(&ring->lock);
    ring->stop = true;
    pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
    pthread_join(thread, NULL);
    return status;
}

static tdbg_status ring_open(struct ring **out, struct td_decoder *decoder, struct tdbg_error *error)
{
    struct ring *ring = calloc(1, sizeof *ring);
    uint8_t *buffers = malloc((size_t)SLOTS * SLOT_SIZE);
    if (!ring || !buffers) {
        free(ring);
        free(buffers);
        return td_fail_nomem(error);
    }
    for (size_t i = 0; i < SLOTS; i++)
        ring->slots[i].data = buffers + i * SLOT_SIZE;
    ring->decoder = decoder;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
    *out = ring;
    return TDBG_OK;
}

static void ring_close(struct ring *ring)
{
    if (!ring)
        return;
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
    free(ring->slots[0].data);
    free(ring);
}

tdbg_status td_unpack_into(struct td_sink *sink, struct td_decoder *decoder, struct tdbg_error *error)
{
    struct ring *ring = NULL;
    TD_TRY(ring_open(&ring, decoder, error));
    tdbg_status status = run(ring, sink, error);
    ring_close(ring);
    return status;
}

/* --- into the spill ------------------------------------------------------------------------------------- */

struct spiller {
    struct td_sink sink; /* first */
    struct td_spill_stream stream;
    struct td_job *job;
};

static tdbg_status spill_piece(struct td_sink *sink, const uint8_t *data, size_t size, uint64_t consumed,
                               struct tdbg_error *error)
{
    struct spiller *spiller = (struct spiller *)sink;
    if (td_job_cancelled(spiller->job))
        return td_fail(error, TDBG_CANCELLED, "cancelled");
    TD_TRY(td_spill_stream_write(&spiller->stream, data, size, error));
    td_job_advance(spiller->job, consumed);
    return TDBG_OK;
}

tdbg_status td_unpack(struct td_unpacked *out, const uint8_t *data, size_t size, enum td_packing packing,
                      struct td_spill *spill, struct td_job *job, struct tdbg_error *error)
{
    struct td_decoder *decoder = NULL;
    struct spiller spiller = {.sink.take = spill_piece, .job = job};
    struct td_unpacked result = {0};
    TD_TRY(td_spill_stream_open(&spiller.stream, spill, error));
    tdbg_status status = td_decoder_open(&decoder, packing, data, size, error);
    if (status == TDBG_OK) {
        if (job)
            atomic_fetch_add_explicit(&job->total, size, memory_order_relaxed);
        status = td_unpack_into(&spiller.sink, decoder, error);
    }
    if (status == TDBG_OK) {
        result.cut = decoder->cut;
        status = td_spill_stream_map(&spiller.stream, &result.data, &result.size, error);
    }
    td_decoder_close(&decoder);
    td_spill_stream_close(&spiller.stream);
    if (status == TDBG_OK)
        *out = result;
    return status;
}
