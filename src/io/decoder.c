/* decoder.c: which decoder; see decoder.h. */
#include "io/decoder.h"

#include <string.h>

static const struct packing {
    const char *name;
    const char *magic;
    size_t length;
} packings[] = {
    [TD_PACKING_GZIP] = {"gzip", "\x1f\x8b\x08", 3},
    [TD_PACKING_XZ] = {"xz",
                       "\xfd"
                       "7zXZ\0",
                       6},
    [TD_PACKING_ZSTD] = {"zstd", "\x28\xb5\x2f\xfd", 4},
    [TD_PACKING_BZIP2] = {"bzip2", "BZh", 3},
};

enum td_packing td_packing_of(const uint8_t *data, size_t size)
{
    for (enum td_packing p = TD_PACKING_GZIP; p <= TD_PACKING_BZIP2; p++) {
        if (size < packings[p].length || memcmp(data, packings[p].magic, packings[p].length) != 0)
            continue;
        /* Three letters are a weak magic: a level and the mark of a block, or of the end, must follow. */
        if (p == TD_PACKING_BZIP2 &&
            (size < 10 || data[3] < '1' || data[3] > '9' ||
             (memcmp(data + 4, "1AY&SY", 6) != 0 && memcmp(data + 4, "\x17\x72\x45\x38\x50\x90", 6) != 0)))
            continue;
        return p;
    }
    return TD_PACKING_NONE;
}

const char *td_packing_name(enum td_packing packing)
{
    return packings[packing].name;
}

tdbg_status td_decoder_open(struct td_decoder **out, enum td_packing packing, const uint8_t *data,
                            size_t size, struct tdbg_error *error)
{
    if (packing != TD_PACKING_GZIP && packing != TD_PACKING_XZ)
        return td_decoder_libarchive(out, packing, data, size, error);
    *out = packing == TD_PACKING_GZIP ? td_decoder_gzip(data, size, NULL) : td_decoder_xz(data, size);
    return *out ? TDBG_OK : td_fail_nomem(error);
}

void td_decoder_close(struct td_decoder **decoder)
{
    if (*decoder)
        (*decoder)->free(*decoder);
    *decoder = NULL;
}
