/* spill.h: room on disk for what had to be unpacked, without a trace afterwards.
 *
 * Spilled bytes live in files that have no name (O_TMPFILE, or unlinked at once) in TMPDIR, /var/tmp or /tmp,
 * and are seen through mappings: the page cache holds them while there is room and the kernel may write them
 * out, so that unpacking takes disk, not memory. Descriptors are closed as soon as a file is mapped; a folder
 * of a thousand archives needs none.
 *
 *     small requests    carved from a segment, 64-byte aligned       td_spill_alloc
 *     streams           one file each, appended to, mapped at the end  td_spill_stream
 *
 * The budget is shared by a bundle and all bundles opened within it, so that archives within archives
 * cannot multiply it.
 */
#ifndef TD_IO_SPILL_H
#define TD_IO_SPILL_H

#include "base/status.h"

#include <stdatomic.h>

struct td_budget {
    _Atomic uint64_t used;
    uint64_t limit; /* TD_MAX_UNPACK, or TDBG_MAX_UNPACK from the environment */
};

struct td_spill {
    struct td_budget *budget;
    struct td_spill_segment *segments; /* newest first; requests are carved from the newest */
    size_t total;
};

void td_budget_init(struct td_budget *budget);

void td_spill_init(struct td_spill *spill, struct td_budget *budget);
void td_spill_release(struct td_spill *spill);

/* Writable, zeroed, 64-byte aligned, for the life of the spill. */
TD_CHECK tdbg_status td_spill_alloc(struct td_spill *spill, size_t size, void **out,
                                    struct tdbg_error *error);

/* A run of bytes whose length is not known beforehand. */
struct td_spill_stream {
    struct td_spill *spill;
    int fd; /* -1: not open */
    uint64_t size;
    char folder[256]; /* for the message when it is full */
};

TD_CHECK tdbg_status td_spill_stream_open(struct td_spill_stream *stream, struct td_spill *spill,
                                          struct tdbg_error *error);

/* Appends. Blocks of zeros become holes, so that a bomb of zeros costs no disk. */
TD_CHECK tdbg_status td_spill_stream_write(struct td_spill_stream *stream, const void *data, size_t size,
                                           struct tdbg_error *error);

/* Writes over zeros that were appended; several threads may at once. */
TD_CHECK tdbg_status td_spill_stream_put(struct td_spill_stream *stream, uint64_t at, const void *data,
                                         size_t size, struct tdbg_error *error);

/* Appends zeros up to `size`. */
TD_CHECK tdbg_status td_spill_stream_pad(struct td_spill_stream *stream, uint64_t size,
                                         struct tdbg_error *error);

/* Maps what was written, for the life of the spill, and closes the stream. */
TD_CHECK tdbg_status td_spill_stream_map(struct td_spill_stream *stream, const uint8_t **data, size_t *size,
                                         struct tdbg_error *error);

/* Throws away what was written, unless it was mapped. */
void td_spill_stream_close(struct td_spill_stream *stream);

/* Maps a whole file that was unpacked before, for the life of the spill. It counts like any other. */
TD_CHECK tdbg_status td_spill_adopt(struct td_spill *spill, const char *path, const uint8_t **data,
                                    size_t *size, struct tdbg_error *error);

/* A file without a name, open for reading and writing, and in which folder it is. */
TD_CHECK tdbg_status td_spill_nameless(int *out, char *folder, size_t room, struct tdbg_error *error);

#endif
