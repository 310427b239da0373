/* gzip.c: gzip through ISA-L.
 *
 *     1f 8b 08 flags mtime(4) xfl os | [extra] [name] [comment] [crc16] | deflate | crc32 size(4)
 *
 * A file may hold several of these one after another; what they unpack to is joined. ISA-L parses the header
 * and checks the trailer (CRC and length). What follows the last one is ignored, as gzip does.
 *
 * Where there is much to do, and a second CPU, scouts unpack ahead (scout.h). There are two of them: while
 * what one made is handed out, the other is on its way; and when one is done before the reader comes to it,
 * the other is sent behind it.
 *
 *     the reader ──────►|· · · · · · ·|──────►|· · · · ·       · what a scout made
 *                       | first scout |       | second scout
 */
#include "base/pool.h"
#include "io/blind.h"
#include "io/decoder.h"
#include "io/scout.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

/* How far ahead a scout is sent, and how far it may go from there: both have as much to do. Near the end it
 * is less; too little is not worth it. The last of the stream is left to the reader, who alone may end it. */
enum { REACH = 6 << 20, LEAST_REACH = 1 << 20, LAST = 1 << 10 };

/* After so many that were no use in a row, no more are sent: in this stream it does not work. */
enum { MOST_MISSES = 3 };

enum { SCOUTS = 2 };

/* A scout that is away. */
struct errand {
    struct td_scout *scout;
    size_t gate, end; /* the byte after which it began, or was sent; how far it goes */
    bool met;         /* `start` is known */
    uint64_t start;   /* the bit where it began */
};

struct gzip {
    struct td_decoder base;
    const uint8_t *data;
    size_t size;
    struct td_arrival *arrival; /* NULL: no more will come */
    struct inflate_state *state;

    bool alone_while_arriving;       /* where what arrives keeps the other CPU busy */
    struct td_scout *scouts[SCOUTS]; /* NULL: not needed yet; they go in turn */
    unsigned next, misses;
    struct errand away[SCOUTS]; /* in the order of the stream */
    unsigned away_count;
    const uint8_t *made; /* by the last one, and not handed out yet */
    size_t made_left;
    const uint8_t *fresh; /* what came out since the window was noted */
    uint8_t window[TD_BLIND_WINDOW];
};

/* ISA-L counts in 32 bits. */
static uint32_t step_of(uint64_t left)
{
    return left < (UINT32_C(1) << 30) ? (uint32_t)left : UINT32_C(1) << 30;
}

/* Waits for more input; false: this is all. */
static bool grow(struct gzip *gzip)
{
    size_t known = gzip->size;
    if (gzip->arrival)
        gzip->size = gzip->arrival->wait(gzip->arrival, known);
    return gzip->size > known;
}

/* Whether another member follows, or the end. */
static bool has_member(struct gzip *gzip)
{
    enum { MAGIC = 3 };
    while (gzip->size - gzip->base.consumed < MAGIC && grow(gzip))
        ;
    return td_packing_of(gzip->state->next_in, gzip->size - gzip->base.consumed) == TD_PACKING_GZIP;
}

static void start_member(struct gzip *gzip)
{
    isal_inflate_reset(gzip->state);
    gzip->state->crc_flag = ISAL_GZIP;
}

/* --- scouts --------------------------------------------------------------------------------------------- */

static void note_window(struct gzip *gzip, const uint8_t *end)
{
    size_t size = (size_t)(end - gzip->fresh), old = size < TD_BLIND_WINDOW ? TD_BLIND_WINDOW - size : 0;
    memmove(gzip->window, gzip->window + (TD_BLIND_WINDOW - old), old);
    memcpy(gzip->window + old, end - (TD_BLIND_WINDOW - old), TD_BLIND_WINDOW - old);
    gzip->fresh = end;
}

/* One works at a time, and none while what it made is still needed. */
static bool may_send(struct gzip *gzip)
{
    unsigned away = gzip->away_count;
    if (gzip->misses >= MOST_MISSES || away == SCOUTS ||
        (away > 0 && (gzip->made_left > 0 || !td_scout_is_back(gzip->away[away - 1].scout))))
        return false;
    return !gzip->arrival || gzip->arrival->complete(gzip->arrival, &gzip->size) ||
           !gzip->alone_while_arriving;
}

static void send_scout(struct gzip *gzip)
{
    if (!may_send(gzip))
        return;
    size_t from = gzip->away_count ? gzip->away[gzip->away_count - 1].end : (size_t)gzip->base.consumed;
    size_t end = gzip->size < LAST ? 0 : gzip->size - LAST, left = end < from ? 0 : end - from;
    size_t reach = left / 2 < REACH ? left / 2 : REACH;
    if (reach < LEAST_REACH)
        return;
    struct td_scout **scout = &gzip->scouts[gzip->next];
    struct errand errand = {.gate = from + reach, .end = from + 2 * reach};
    if (!*scout)
        *scout = td_scout_open();
    errand.scout = *scout;
    if (*scout && td_scout_send(*scout, gzip->data, errand.end, errand.gate)) {
        gzip->away[gzip->away_count++] = errand;
        gzip->next = (gzip->next + 1) % SCOUTS;
    } else {
        gzip->misses = MOST_MISSES;
    }
}

static void forget_first(struct gzip *gzip)
{
    gzip->away_count--;
    memmove(gzip->away, gzip->away + 1, gzip->away_count * sizeof *gzip->away);
}

/* The first one was no use. */
static void recall_first(struct gzip *gzip)
{
    td_scout_recall(gzip->away[0].scout);
    forget_first(gzip);
    gzip->misses++;
}

/* Whether the stream has come to the beginning of a block at this bit. What ISA-L has of a header is kept
 * apart until the rest comes. */
static bool is_block_at(const struct gzip *gzip, uint64_t bit)
{
    const struct inflate_state *state = gzip->state;
    uint64_t taken = gzip->base.consumed - (uint64_t)state->tmp_in_size;
    return state->block_state == ISAL_BLOCK_HDR && taken * 8 - (uint64_t)state->read_in_length == bit;
}

/* Continues from where the scout came to. */
static bool join_scout(struct gzip *gzip)
{
    const struct inflate_state *before = gzip->state;
    uint32_t crc = before->crc, total = before->total_out;
    uint8_t *out = before->next_out;
    note_window(gzip, out);
    if (!td_scout_return(gzip->away[0].scout, gzip->window, &gzip->made, &gzip->made_left, &gzip->state))
        return false;
    struct inflate_state *state = gzip->state;
    state->crc_flag = ISAL_GZIP;
    state->wrapper_flag = 1; /* the header was read long ago */
    state->crc = crc32_gzip_refl(crc, gzip->made, gzip->made_left);
    state->total_out = total + (uint32_t)gzip->made_left;
    state->next_out = out;
    gzip->base.consumed = (uint64_t)(state->next_in - gzip->data);
    forget_first(gzip);
    gzip->misses = 0;
    return true;
}

/* All bytes before the gate are taken. First they are those before the place where the scout was sent, then
 * those before the bit where it began. */
static void reach_gate(struct gzip *gzip)
{
    struct errand *first = &gzip->away[0];
    if (!first->met && td_scout_start(first->scout, &first->start)) {
        first->met = true;
        first->gate = (size_t)((first->start + 7) / 8);
    } else if (!first->met || !is_block_at(gzip, first->start) || !join_scout(gzip)) {
        recall_first(gzip);
    }
}

static void hand_out(struct gzip *gzip, const uint8_t *out_end)
{
    size_t room = (size_t)(out_end - gzip->state->next_out);
    size_t size = gzip->made_left < room ? gzip->made_left : room;
    memcpy(gzip->state->next_out, gzip->made, size);
    gzip->state->next_out += size;
    gzip->made += size;
    gzip->made_left -= size;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* One call of ISA-L. */
static tdbg_status inflate_some(struct gzip *gzip, const uint8_t *out_end, bool *moved,
                                struct tdbg_error *error)
{
    struct inflate_state *state = gzip->state;
    struct td_decoder *decoder = &gzip->base;
    const uint8_t *before = state->next_in, *out_before = state->next_out;
    state->avail_in = step_of((gzip->away_count ? gzip->away[0].gate : gzip->size) - decoder->consumed);
    state->avail_out = step_of((uint64_t)(out_end - out_before));
    int code = isal_inflate(state);
    decoder->consumed = (uint64_t)(state->next_in - gzip->data);
    if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT)
        return td_fail_at(error, TDBG_CORRUPT, decoder->consumed, "gzip: %s",
                          code == ISAL_INCORRECT_CHECKSUM ? "the checksum is wrong: the content is damaged"
                                                          : "the stream is damaged");
    *moved = state->next_in != before || state->next_out != out_before;
    return TDBG_OK;
}

static tdbg_status gzip_read(struct td_decoder *decoder, uint8_t *out, size_t room, size_t *made,
                             struct tdbg_error *error)
{
    struct gzip *gzip = (struct gzip *)decoder;
    uint8_t *out_end = out + room;
    gzip->state->next_out = out;
    gzip->fresh = out;
    while (!decoder->ended && gzip->state->next_out < out_end) {
        bool moved = false;
        send_scout(gzip);
        if (gzip->made_left > 0) {
            hand_out(gzip, out_end);
            continue;
        }
        TD_TRY(inflate_some(gzip, out_end, &moved, error));
        if (gzip->state->block_state == ISAL_BLOCK_FINISH) {
            while (gzip->away_count > 0)
                recall_first(gzip);
            if (has_member(gzip))
                start_member(gzip);
            else
                decoder->ended = true;
        } else if (!moved && gzip->away_count) {
            reach_gate(gzip);
        } else if (!moved && !grow(gzip)) {
            decoder->ended = decoder->cut = true; /* wants more than there is */
        }
    }
    note_window(gzip, gzip->state->next_out);
    *made = (size_t)(gzip->state->next_out - out);
    return TDBG_OK;
}

static void gzip_free(struct td_decoder *decoder)
{
    struct gzip *gzip = (struct gzip *)decoder;
    for (int i = 0; i < SCOUTS; i++)
        td_scout_close(&gzip->scouts[i]);
    free(gzip->state);
    free(gzip);
}

struct td_decoder *td_decoder_gzip(const uint8_t *data, size_t size, struct td_arrival *arrival)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    struct inflate_state *state = malloc(sizeof *state);
    if (!gzip || !state) {
        free(gzip);
        free(state);
        return NULL;
    }
    int threads;
    if (td_pool_wanted(&threads, NULL) != TDBG_OK)
        threads = 1;
    *gzip = (struct gzip){.base = {.read = gzip_read, .free = gzip_free},
                          .data = data,
                          .size = size,
                          .arrival = arrival,
                          .state = state,
                          .alone_while_arriving = threads == 2,
                          .misses = threads == 1 ? MOST_MISSES : 0};
    isal_inflate_init(state);
    start_member(gzip);
    state->next_in = (uint8_t *)(uintptr_t)data;
    return &gzip->base;
}
