/* gzip.c: gzip through ISA-L.
 *
 *     1f 8b 08 flags mtime(4) xfl os | [extra] [name] [comment] [crc16] | deflate | crc32 size(4)
 *
 * A file may hold several of these one after another; what they unpack to is joined. ISA-L parses the header
 * and checks the trailer (CRC and length). What follows the last one is ignored, as gzip does.
 */
#include "io/decoder.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

struct gzip {
    struct td_decoder base;
    const uint8_t *data;
    size_t size;
    struct td_arrival *arrival; /* NULL: no more will come */
    struct inflate_state state;
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
    return td_packing_of(gzip->state.next_in, gzip->size - gzip->base.consumed) == TD_PACKING_GZIP;
}

static void start_member(struct gzip *gzip)
{
    isal_inflate_reset(&gzip->state);
    gzip->state.crc_flag = ISAL_GZIP;
}

static tdbg_status gzip_read(struct td_decoder *decoder, uint8_t *out, size_t room, size_t *made,
                             struct tdbg_error *error)
{
    struct gzip *gzip = (struct gzip *)decoder;
    struct inflate_state *state = &gzip->state;
    uint8_t *out_end = out + room;
    state->next_out = out;
    while (!decoder->ended && state->next_out < out_end) {
        const uint8_t *before = state->next_in, *out_before = state->next_out;
        state->avail_in = step_of(gzip->size - decoder->consumed);
        state->avail_out = step_of((uint64_t)(out_end - out_before));
        int code = isal_inflate(state);
        decoder->consumed = (uint64_t)(state->next_in - gzip->data);
        if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT)
            return td_fail_at(error, TDBG_CORRUPT, decoder->consumed, "gzip: %s",
                              code == ISAL_INCORRECT_CHECKSUM
                                  ? "the checksum is wrong: the content is damaged"
                                  : "the stream is damaged");
        if (state->block_state == ISAL_BLOCK_FINISH) {
            if (has_member(gzip))
                start_member(gzip);
            else
                decoder->ended = true;
        } else if (state->next_in == before && state->next_out == out_before && !grow(gzip)) {
            decoder->ended = decoder->cut = true; /* wants more than there is */
        }
    }
    *made = (size_t)(state->next_out - out);
    return TDBG_OK;
}

static void gzip_free(struct td_decoder *decoder)
{
    free(decoder);
}

struct td_decoder *td_decoder_gzip(const uint8_t *data, size_t size, struct td_arrival *arrival)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    if (!gzip)
        return NULL;
    gzip->base = (struct td_decoder){.read = gzip_read, .free = gzip_free};
    gzip->data = data;
    gzip->size = size;
    gzip->arrival = arrival;
    isal_inflate_init(&gzip->state);
    start_member(gzip);
    gzip->state.next_in = (uint8_t *)(uintptr_t)data;
    return &gzip->base;
}
