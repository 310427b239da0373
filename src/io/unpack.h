/* unpack.h: a compressed stream as a run of bytes in the spill. */
#ifndef TD_IO_UNPACK_H
#define TD_IO_UNPACK_H

#include "base/job.h"
#include "io/decoder.h"
#include "io/spill.h"

struct td_unpacked {
    const uint8_t *data;
    size_t size;
    bool cut; /* the stream stops too early; this is all there was */
};

/* Takes what comes out, in order, in the caller's thread; a failure of its ends the unpacking. */
struct td_sink {
    TD_CHECK tdbg_status (*take)(struct td_sink *sink, const uint8_t *data, size_t size, uint64_t consumed,
                                 struct tdbg_error *error); /* consumed: compressed bytes it was made from */
};

/* Unpacks all of it, decoding in a thread of its own. */
TD_CHECK tdbg_status td_unpack_into(struct td_sink *sink, struct td_decoder *decoder,
                                    struct tdbg_error *error);

/* Into the spill. Adds `size` to the job's total, and to `done` as it goes. */
TD_CHECK tdbg_status td_unpack(struct td_unpacked *out, const uint8_t *data, size_t size,
                               enum td_packing packing, struct td_spill *spill, struct td_job *job,
                               struct tdbg_error *error);

#endif
