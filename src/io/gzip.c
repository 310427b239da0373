/* gzip.c: gzip through ISA-L.
 *
 *     1f 8b 08 flags mtime(4) xfl os | [extra] [name] [comment] [crc16] | deflate | crc32 size(4)
 *
 * A file may hold several of these one after another; what they unpack to is joined. ISA-L parses the header
 * and checks the trailer (CRC and length). What follows the last one is ignored, as gzip does.
 *
 * Where there is much to do, teams decode ahead (team.h), each three stretches of the stream; ISA-L reads
 * what is before the first of them, between those that do not meet, and the end. It comes to the beginning of
 * a stretch when it has taken all bytes before it and stands at that very bit.
 *
 *     ISA-L ──►|── team 0 ──►|── team 1 ──►| …  ──►|──► ISA-L
 *              | 3 stretches | 3 stretches |       |
 */
#include "base/pool.h"
#include "io/decoder.h"
#include "io/team.h"

#include <assert.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

/* Compressed bytes of a stretch: as many as fill most of its room, judging by what came before. Near the end
 * it is less; too little is not worth it. The last of the stream is left to ISA-L, which alone may end it. */
enum { MOST_MADE = TD_STRETCH_ROOM / 4 * 3, MOST_REACH = 1 << 20, LEAST_REACH = 1 << 16, LAST = 1 << 10 };

/* The first goes less far, and alone: it may not pay. */
enum { FIRST_REACH = 1 << 17 };

/* How far a block is searched for; ordinary ones have some ten KiB. */
enum { SEARCH = 1 << 20 };

/* After so many stretches that were no use in a row, or were slow, ISA-L goes so far alone: archives have all
 * kinds of files in them. */
enum { MOST_MISSES = 4, ALONE = 16 << 20 };

/* What one made is handed out while others are away. */
enum { TEAMS = 3 };

/* A team that is away, or whose stretches are not all taken yet. */
struct errand {
    struct td_team *team;
    uint64_t starts[TD_STRETCHES + 1]; /* bits; the last one is where the last stretch ends */
    unsigned count, taken;
};

struct gzip {
    struct td_decoder base;
    const uint8_t *data;
    size_t size;
    struct td_arrival *arrival; /* NULL: no more will come */
    struct inflate_state *state;
    uint64_t total; /* bytes that came out */

    unsigned most_away;           /* teams at once */
    bool alone_while_arriving;    /* what arrives keeps the other CPU busy */
    bool paid;                    /* what the last one made was worth it */
    struct td_team *teams[TEAMS]; /* NULL: not needed yet; they go in turn */
    unsigned next_team, misses;
    uint64_t alone_until;         /* of the compressed bytes */
    struct errand errands[TEAMS]; /* in the order of the stream */
    unsigned errand_count;
    uint64_t frontier; /* the bit where the next one will begin; 0: not known */

    bool between;        /* at a block, with nothing taken of it; ISA-L is behind */
    uint64_t at;         /* that block's first bit */
    const uint8_t *made; /* by the last stretch, and not handed out yet */
    size_t made_left;
    const uint8_t *fresh; /* what came out since the window was noted */
    uint8_t window[TD_DEFLATE_WINDOW];
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

/* --- sending teams -------------------------------------------------------------------------------------- */

static void go_alone(struct gzip *gzip)
{
    gzip->alone_until = gzip->base.consumed + ALONE;
    gzip->misses = 0;
    gzip->paid = false;
}

static void miss(struct gzip *gzip)
{
    if (++gzip->misses == MOST_MISSES)
        go_alone(gzip);
}

static bool is_arriving(struct gzip *gzip)
{
    return gzip->arrival && !gzip->arrival->complete(gzip->arrival, &gzip->size);
}

static bool may_send(const struct gzip *gzip, bool arriving)
{
    unsigned away = 0;
    if (gzip->base.consumed < gzip->alone_until || gzip->errand_count == TEAMS ||
        (gzip->errand_count > 0 && !gzip->frontier))
        return false;
    for (unsigned i = 0; i < gzip->errand_count; i++)
        away += !td_team_is_back(gzip->errands[i].team);
    return away < (gzip->paid && !(arriving && gzip->alone_while_arriving) ? gzip->most_away : 1);
}

/* How many compressed bytes each stretch of a team from here on gets; 0: too few. While more arrives, none
 * goes with less than it can take. */
static size_t reach_from(const struct gzip *gzip, size_t from, bool arriving)
{
    size_t end = gzip->size < LAST ? 0 : gzip->size - LAST, left = end < from ? 0 : end - from;
    size_t share = left / (arriving ? TD_STRETCHES : TD_STRETCHES * gzip->most_away);
    uint64_t reach = gzip->total ? MOST_MADE * gzip->base.consumed / gzip->total : 0;
    uint64_t most = gzip->paid ? MOST_REACH : FIRST_REACH;
    reach = reach < most ? reach : most;
    if (share < reach)
        reach = arriving ? 0 : share;
    return reach < LEAST_REACH ? 0 : (size_t)reach;
}

static bool find_block(const struct gzip *gzip, size_t from, uint64_t *start)
{
    return td_deflate_find(gzip->data, gzip->size, from, from + SEARCH, start);
}

/* Where the stretches of a team begin. Without a block to end at, the last one ends about there. */
static void plan(struct gzip *gzip, struct errand *errand, size_t reach)
{
    uint64_t *starts = errand->starts;
    bool found = true;
    starts[0] = gzip->frontier;
    while (found && errand->count < TD_STRETCHES) {
        size_t from = (size_t)(starts[errand->count] / 8) + reach;
        errand->count++;
        found = find_block(gzip, from, &starts[errand->count]);
        if (!found)
            starts[errand->count] = (uint64_t)from * 8;
    }
    gzip->frontier = found ? starts[errand->count] : 0;
}

static void send_team(struct gzip *gzip)
{
    bool arriving = is_arriving(gzip);
    if (gzip->errand_count == 0 && gzip->frontier / 8 < gzip->base.consumed)
        gzip->frontier = 0; /* nobody went there, and ISA-L has passed it */
    size_t from = (size_t)(gzip->frontier ? gzip->frontier / 8 : gzip->base.consumed);
    size_t reach = may_send(gzip, arriving) ? reach_from(gzip, from, arriving) : 0;
    if (reach == 0)
        return;
    if (!gzip->frontier && !find_block(gzip, from, &gzip->frontier)) {
        go_alone(gzip);
        return;
    }
    struct td_team **team = &gzip->teams[gzip->next_team];
    if (!*team)
        *team = td_team_open();
    struct errand errand = {.team = *team};
    plan(gzip, &errand, reach);
    if (*team && td_team_send(*team, gzip->data, gzip->size, errand.starts, errand.count)) {
        gzip->errands[gzip->errand_count++] = errand;
        gzip->next_team = (gzip->next_team + 1) % TEAMS;
    } else {
        go_alone(gzip);
    }
}

/* --- taking what they made ------------------------------------------------------------------------------ */

static void note_window(struct gzip *gzip, const uint8_t *end)
{
    size_t size = (size_t)(end - gzip->fresh), old = size < TD_DEFLATE_WINDOW ? TD_DEFLATE_WINDOW - size : 0;
    memmove(gzip->window, gzip->window + (TD_DEFLATE_WINDOW - old), old);
    memcpy(gzip->window + old, end - (TD_DEFLATE_WINDOW - old), TD_DEFLATE_WINDOW - old);
    gzip->fresh = end;
}

static uint64_t next_start(const struct gzip *gzip)
{
    return gzip->errands[0].starts[gzip->errands[0].taken];
}

/* Whatever of it was not taken is no use. */
static void forget_first(struct gzip *gzip)
{
    td_team_recall(gzip->errands[0].team);
    gzip->errand_count--;
    memmove(gzip->errands, gzip->errands + 1, gzip->errand_count * sizeof *gzip->errands);
}

/* The stream ended before them. */
static void forget_all(struct gzip *gzip)
{
    if (gzip->errand_count > 0)
        miss(gzip);
    while (gzip->errand_count > 0)
        forget_first(gzip);
    gzip->frontier = 0;
}

/* The next stretch, which begins where the stream has come to. False: it is no use. */
static bool take_stretch(struct gzip *gzip)
{
    struct errand *errand = &gzip->errands[0];
    struct td_stretches *stretches = td_team_return(errand->team);
    struct inflate_state *state = gzip->state;
    gzip->paid = td_stretches_pay(stretches);
    if (!gzip->paid)
        go_alone(gzip);
    note_window(gzip, state->next_out);
    gzip->made = td_stretches_finish(stretches, errand->taken++, gzip->window, &gzip->made_left, &gzip->at);
    state->crc = crc32_gzip_refl(state->crc, gzip->made, gzip->made_left);
    state->total_out += (uint32_t)gzip->made_left;
    gzip->base.consumed = gzip->at / 8;
    return gzip->made_left > 0;
}

/* Lets ISA-L go on from the block where the stream has come to. */
static void resume(struct gzip *gzip)
{
    struct inflate_state *state = gzip->state;
    uint32_t crc = state->crc, total = state->total_out;
    uint8_t *out = state->next_out;
    unsigned used = gzip->at % 8;
    note_window(gzip, out);
    isal_inflate_init(state);
    (void)isal_inflate_set_dict(state, gzip->window, sizeof gzip->window); /* fails in other states only */
    state->next_in = (uint8_t *)(uintptr_t)(gzip->data + gzip->at / 8);
    if (used > 0) {
        state->read_in = (uint64_t)*state->next_in++ >> used;
        state->read_in_length = (int32_t)(8 - used);
    }
    state->crc_flag = ISAL_GZIP;
    state->wrapper_flag = 1; /* the header was read long ago */
    state->crc = crc;
    state->total_out = total;
    state->next_out = out;
    gzip->base.consumed = (uint64_t)(state->next_in - gzip->data);
    gzip->between = false;
}

/* At a block: the stretch that begins with it, if there is one; else ISA-L is to go on. */
static void go_on(struct gzip *gzip)
{
    while (gzip->errand_count > 0 &&
           (gzip->errands[0].taken == gzip->errands[0].count || next_start(gzip) <= gzip->at)) {
        if (gzip->errands[0].taken == gzip->errands[0].count) {
            forget_first(gzip);
        } else if (next_start(gzip) < gzip->at) {
            gzip->errands[0].taken++;
            miss(gzip);
        } else if (take_stretch(gzip)) {
            gzip->misses = 0;
            return;
        } else {
            miss(gzip);
        }
    }
    resume(gzip);
}

/* Whether ISA-L has come to the beginning of a block at this bit, and 32 KiB have come out, which a stretch
 * takes for granted. What ISA-L has of a header is kept apart until the rest comes. */
static bool is_block_at(const struct gzip *gzip, uint64_t bit)
{
    const struct inflate_state *state = gzip->state;
    uint64_t taken = gzip->base.consumed - (uint64_t)state->tmp_in_size;
    return state->block_state == ISAL_BLOCK_HDR && taken * 8 - (uint64_t)state->read_in_length == bit &&
           state->total_out >= TD_DEFLATE_WINDOW;
}

/* ISA-L has taken all bytes before the next stretch. */
static void reach_gate(struct gzip *gzip)
{
    if (is_block_at(gzip, next_start(gzip))) {
        gzip->between = true;
        gzip->at = next_start(gzip);
    } else {
        miss(gzip);
        if (++gzip->errands[0].taken == gzip->errands[0].count)
            forget_first(gzip);
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
    size_t gate = gzip->errand_count ? (size_t)((next_start(gzip) + 7) / 8) : gzip->size;
    assert(gate >= decoder->consumed);
    state->avail_in = step_of(gate - decoder->consumed);
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
        send_team(gzip);
        if (gzip->made_left > 0) {
            hand_out(gzip, out_end);
            continue;
        }
        if (gzip->between) {
            go_on(gzip);
            continue;
        }
        TD_TRY(inflate_some(gzip, out_end, &moved, error));
        if (gzip->state->block_state == ISAL_BLOCK_FINISH) {
            forget_all(gzip);
            if (has_member(gzip))
                start_member(gzip);
            else
                decoder->ended = true;
        } else if (!moved && gzip->errand_count) {
            reach_gate(gzip);
        } else if (!moved && !grow(gzip)) {
            decoder->ended = decoder->cut = true; /* wants more than there is */
        }
    }
    note_window(gzip, gzip->state->next_out);
    *made = (size_t)(gzip->state->next_out - out);
    gzip->total += *made;
    return TDBG_OK;
}

static void gzip_free(struct td_decoder *decoder)
{
    struct gzip *gzip = (struct gzip *)decoder;
    for (int i = 0; i < TEAMS; i++)
        td_team_close(&gzip->teams[i]);
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
                          .most_away = threads == 1 ? 1 : TEAMS,
                          .alone_while_arriving = threads == 2};
    isal_inflate_init(state);
    start_member(gzip);
    state->next_in = (uint8_t *)(uintptr_t)data;
    return &gzip->base;
}
