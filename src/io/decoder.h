/* decoder.h: compressed bytes in memory, turned into plain bytes a buffer at a time.
 *
 * Three libraries behind one call: ISA-L for gzip (by far the fastest), liblzma for xz (libarchive would let
 * a header claim 4 GiB of dictionary; liblzma takes a limit), libarchive for zstd and bzip2.
 *
 * A stream that stops too early is not an error here: all that could be unpacked comes out, then `ended` and
 * `cut` are set. A damaged stream is an error, and what came out before must not be trusted: a flipped bit
 * shows long after it has done its harm.
 */
#ifndef TD_IO_DECODER_H
#define TD_IO_DECODER_H

#include "base/status.h"

enum td_packing { TD_PACKING_NONE, TD_PACKING_GZIP, TD_PACKING_XZ, TD_PACKING_ZSTD, TD_PACKING_BZIP2 };

struct td_decoder {
    /* Fills up to `room` bytes; fewer only at the end. */
    TD_CHECK tdbg_status (*read)(struct td_decoder *decoder, uint8_t *out, size_t room, size_t *made,
                                 struct tdbg_error *error);
    void (*free)(struct td_decoder *decoder);
    uint64_t consumed; /* of the compressed bytes */
    bool ended, cut;
};

/* By the first bytes. */
enum td_packing td_packing_of(const uint8_t *data, size_t size);
const char *td_packing_name(enum td_packing packing);

/* The bytes are borrowed. */
TD_CHECK tdbg_status td_decoder_open(struct td_decoder **out, enum td_packing packing, const uint8_t *data,
                                     size_t size, struct tdbg_error *error);
void td_decoder_close(struct td_decoder **decoder);

/* Compressed bytes that still come, at a place where all of them will fit. `wait` comes back with how many
 * there are: more than `known`, unless these are all. `complete` does not wait. */
struct td_arrival {
    size_t (*wait)(struct td_arrival *arrival, size_t known);
    bool (*complete)(struct td_arrival *arrival, size_t *size);
};

/* One file each: gzip.c, xz.c, libarchive.c. `arrival` NULL: all bytes are there. */
struct td_decoder *td_decoder_gzip(const uint8_t *data, size_t size, struct td_arrival *arrival);
struct td_decoder *td_decoder_xz(const uint8_t *data, size_t size);
TD_CHECK tdbg_status td_decoder_libarchive(struct td_decoder **out, enum td_packing packing,
                                           const uint8_t *data, size_t size, struct tdbg_error *error);

#endif
