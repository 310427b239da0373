/* xz.c: xz through liblzma, with a limit on the memory a header may ask for. */
#include "io/decoder.h"

#include "base/limits.h"

#include <lzma.h>
#include <stdlib.h>

struct xz {
    struct td_decoder base;
    size_t size;
    lzma_stream stream;
};

static tdbg_status xz_fail(lzma_ret code, uint64_t at, struct tdbg_error *error)
{
    switch (code) {
    case LZMA_MEM_ERROR:
        return td_fail_nomem(error);
    case LZMA_MEMLIMIT_ERROR:
        return td_fail_at(error, TDBG_LIMIT, at, "xz: needs more than %u MiB of memory to unpack",
                          (unsigned)(TD_MAX_XZ_MEMORY >> 20));
    case LZMA_OPTIONS_ERROR:
        return td_fail_at(error, TDBG_UNSUPPORTED, at, "xz: uses options this liblzma does not know");
    default:
        return td_fail_at(error, TDBG_CORRUPT, at, "xz: the stream is damaged");
    }
}

static tdbg_status xz_read(struct td_decoder *decoder, uint8_t *out, size_t room, size_t *made,
                           struct tdbg_error *error)
{
    struct xz *xz = (struct xz *)decoder;
    xz->stream.next_out = out;
    xz->stream.avail_out = room;
    while (!decoder->ended && xz->stream.avail_out > 0) {
        lzma_ret code = lzma_code(&xz->stream, LZMA_FINISH);
        decoder->consumed = xz->size - xz->stream.avail_in;
        if (code == LZMA_STREAM_END)
            decoder->ended = true;
        else if (code == LZMA_BUF_ERROR && xz->stream.avail_in == 0)
            decoder->ended = decoder->cut = true;
        else if (code != LZMA_OK)
            return xz_fail(code, decoder->consumed, error);
    }
    *made = room - xz->stream.avail_out;
    return TDBG_OK;
}

static void xz_free(struct td_decoder *decoder)
{
    lzma_end(&((struct xz *)decoder)->stream);
    free(decoder);
}

struct td_decoder *td_decoder_xz(const uint8_t *data, size_t size)
{
    struct xz *xz = calloc(1, sizeof *xz);
    if (!xz)
        return NULL;
    xz->base = (struct td_decoder){.read = xz_read, .free = xz_free};
    xz->size = size;
    xz->stream = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&xz->stream, TD_MAX_XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
        free(xz);
        return NULL;
    }
    xz->stream.next_in = data;
    xz->stream.avail_in = size;
    return &xz->base;
}
