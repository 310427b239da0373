/* libarchive.c: zstd and bzip2 through libarchive's filters.
 *
 * The filter is named, not guessed: left to itself libarchive would peel compression off compression. The
 * input is handed over in steps, so that progress can be told from how much it asked for.
 */
#include "io/archive_library.h"
#include "io/decoder.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 1 << 18 };

struct filtered {
    struct td_decoder base;
    enum td_packing packing;
    const uint8_t *data;
    size_t size;
    struct archive *archive;
    bool started;
    const uint8_t *block; /* what libarchive unpacked and nobody took yet */
    size_t block_size;
};

static la_ssize_t give(struct archive *archive, void *context, const void **out)
{
    (void)archive;
    struct filtered *f = context;
    size_t left = f->size - f->base.consumed;
    size_t step = left < STEP ? left : STEP;
    *out = f->data + f->base.consumed;
    f->base.consumed += step;
    return (la_ssize_t)step;
}

/* libarchive has one code for all that may be wrong; only its text tells a stream that stops. */
static tdbg_status stopped(struct filtered *f, struct tdbg_error *error)
{
    const char *text = td_la.error_string(f->archive);
    if (text && strcasestr(text, "truncated")) {
        f->base.ended = f->base.cut = true;
        return TDBG_OK;
    }
    return td_fail_at(error, TDBG_CORRUPT, f->base.consumed, "%s: the stream is damaged",
                      td_packing_name(f->packing));
}

static int start(struct filtered *f)
{
    struct archive *a = f->archive;
    td_la.read_support_format_raw(a);
    td_la.read_support_format_empty(a);
    int filter = f->packing == TD_PACKING_ZSTD ? ARCHIVE_FILTER_ZSTD : ARCHIVE_FILTER_BZIP2;
    int code = td_la.read_append_filter(a, filter);
    if (code == ARCHIVE_OK)
        code = td_la.read_open(a, f, NULL, give, NULL);
    /* A stream that fails before its first byte passes for an empty one; the error is the only trace of it.
     */
    if (code == ARCHIVE_OK && td_la.error_string(a))
        code = ARCHIVE_FATAL;
    struct archive_entry *entry;
    if (code == ARCHIVE_OK)
        code = td_la.read_next_header(a, &entry);
    f->started = true;
    return code;
}

static tdbg_status next_block(struct filtered *f, struct tdbg_error *error)
{
    const void *block;
    size_t size;
    la_int64_t offset;
    int code = f->started ? ARCHIVE_OK : start(f);
    if (code == ARCHIVE_OK)
        code = td_la.read_data_block(f->archive, &block, &size, &offset);
    if (code == ARCHIVE_EOF) {
        f->base.ended = true;
        return TDBG_OK;
    }
    if (code != ARCHIVE_OK)
        return stopped(f, error);
    f->block = block;
    f->block_size = size;
    return TDBG_OK;
}

static tdbg_status filtered_read(struct td_decoder *decoder, uint8_t *out, size_t room, size_t *made,
                                 struct tdbg_error *error)
{
    struct filtered *f = (struct filtered *)decoder;
    size_t at = 0;
    while (!decoder->ended && at < room) {
        if (f->block_size == 0) {
            TD_TRY(next_block(f, error));
            continue;
        }
        size_t count = f->block_size < room - at ? f->block_size : room - at;
        memcpy(out + at, f->block, count);
        at += count;
        f->block += count;
        f->block_size -= count;
    }
    *made = at;
    return TDBG_OK;
}

static void filtered_free(struct td_decoder *decoder)
{
    td_la.read_free(((struct filtered *)decoder)->archive);
    free(decoder);
}

tdbg_status td_decoder_libarchive(struct td_decoder **out, enum td_packing packing, const uint8_t *data,
                                  size_t size, struct tdbg_error *error)
{
    TD_TRY(td_archive_library_load(error));
    struct filtered *f = calloc(1, sizeof *f);
    struct archive *archive = td_la.read_new();
    if (!f || !archive) {
        free(f);
        td_la.read_free(archive);
        return td_fail_nomem(error);
    }
    f->base = (struct td_decoder){.read = filtered_read, .free = filtered_free};
    f->packing = packing;
    f->data = data;
    f->size = size;
    f->archive = archive;
    *out = &f->base;
    return TDBG_OK;
}
