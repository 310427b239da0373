/* scout.c: see scout.h. What the thread makes is its own until it is joined; only where it began is told
 * before. */
#include "io/scout.h"

#include "io/blind.h"

#include <pthread.h>
#include <stdlib.h>

/* How far a block is searched for; ordinary ones have some ten KiB. */
enum { SEARCH = 1 << 20 };

/* What it may make after it knows its window, and the input between two looks at whether to stop. */
enum { MOST_MADE = 10 << 20, STEP = 1 << 18 };

enum progress { SEARCHING, BEGUN, LOST };

struct td_scout {
    pthread_t thread;
    bool away; /* there is a thread to be joined */
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum progress progress; /* these two under the lock */
    uint64_t start;
    atomic_bool back; /* all that is made is made */

    const uint8_t *data;
    size_t size, from;
    struct td_blind *blind;
    struct inflate_state *state;
    size_t made;
    bool good;
    uint8_t out[TD_BLIND_MOST + MOST_MADE + 512]; /* a block may run a little over what is blind */
};

/* --- the thread ----------------------------------------------------------------------------------------- */

static void tell(struct td_scout *s, enum progress progress, uint64_t start)
{
    pthread_mutex_lock(&s->lock);
    s->progress = progress;
    s->start = start;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ISA-L, set to begin at a bit with a known window. */
static void set_state(struct td_scout *s, uint64_t bit)
{
    uint8_t window[TD_BLIND_WINDOW];
    struct inflate_state *state = s->state;
    unsigned used = bit % 8;
    td_blind_window(s->blind, window);
    isal_inflate_init(state);
    (void)isal_inflate_set_dict(state, window, sizeof window); /* fails in other states only */
    state->next_in = (uint8_t *)(uintptr_t)(s->data + bit / 8);
    if (used > 0) {
        state->read_in = (uint64_t)*state->next_in++ >> used;
        state->read_in_length = (int32_t)(8 - used);
    }
}

/* Until the input ends or the room is full. False: the stream is damaged, or it ends, which is the reader's
 * to judge. */
static bool go_on(struct td_scout *s)
{
    struct inflate_state *state = s->state;
    const uint8_t *in_end = s->data + s->size, *out_end = s->out + sizeof s->out;
    const uint8_t *in_before, *out_before;
    state->next_out = s->out + td_blind_count(s->blind);
    do {
        if (atomic_load_explicit(&s->stop, memory_order_relaxed))
            return false;
        in_before = state->next_in;
        out_before = state->next_out;
        size_t left = (size_t)(in_end - in_before);
        state->avail_in = left < STEP ? (uint32_t)left : STEP;
        state->avail_out = (uint32_t)(out_end - out_before);
        int code = isal_inflate(state);
        if ((code != ISAL_DECOMP_OK && code != ISAL_END_INPUT) || state->block_state == ISAL_BLOCK_FINISH)
            return false;
    } while (state->next_in != in_before || state->next_out != out_before);
    s->made = (size_t)(state->next_out - s->out);
    return true;
}

static void go(struct td_scout *s)
{
    size_t search = s->size - s->from < SEARCH ? s->size : s->from + SEARCH;
    uint64_t start, end;
    if (!td_blind_find(s->blind, s->data, s->size, s->from, search, &s->stop, &start)) {
        tell(s, LOST, 0);
        return;
    }
    tell(s, BEGUN, start);
    if (td_blind_run(s->blind, s->data, s->size, start, &s->stop, &end)) {
        set_state(s, end);
        s->good = go_on(s);
    }
}

static void *scout(void *context)
{
    struct td_scout *s = context;
    go(s);
    atomic_store(&s->back, true);
    return NULL;
}

/* --- its owner ------------------------------------------------------------------------------------------ */

struct td_scout *td_scout_open(void)
{
    struct td_scout *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    s->away = false;
    s->blind = td_blind_open();
    s->state = malloc(sizeof *s->state);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (!s->blind || !s->state)
        td_scout_close(&s);
    return s;
}

void td_scout_close(struct td_scout **slot)
{
    struct td_scout *s = *slot;
    if (!s)
        return;
    td_scout_recall(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    td_blind_close(&s->blind);
    free(s->state);
    free(s);
    *slot = NULL;
}

bool td_scout_send(struct td_scout *s, const uint8_t *data, size_t size, size_t from)
{
    s->data = data;
    s->size = size;
    s->from = from;
    s->good = false;
    s->progress = SEARCHING;
    atomic_store(&s->stop, false);
    atomic_store(&s->back, false);
    s->away = pthread_create(&s->thread, NULL, scout, s) == 0;
    return s->away;
}

bool td_scout_start(struct td_scout *s, uint64_t *bit)
{
    pthread_mutex_lock(&s->lock);
    while (s->progress == SEARCHING)
        pthread_cond_wait(&s->changed, &s->lock);
    bool begun = s->progress == BEGUN;
    if (begun)
        *bit = s->start;
    pthread_mutex_unlock(&s->lock);
    return begun;
}

bool td_scout_is_back(struct td_scout *s)
{
    return atomic_load(&s->back);
}

static void join(struct td_scout *s)
{
    if (s->away)
        pthread_join(s->thread, NULL);
    s->away = false;
}

void td_scout_recall(struct td_scout *s)
{
    atomic_store(&s->stop, true);
    join(s);
}

bool td_scout_return(struct td_scout *s, const uint8_t *before, const uint8_t **made, size_t *size,
                     struct inflate_state **state)
{
    join(s);
    if (!s->good)
        return false;
    td_blind_resolve(s->blind, before, s->out);
    struct inflate_state *mine = s->state;
    s->state = *state;
    *state = mine;
    *made = s->out;
    *size = s->made;
    return true;
}
