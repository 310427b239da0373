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

/* Adds `size` to the job's total, and to `done` as it goes. */
TD_CHECK tdbg_status td_unpack(struct td_unpacked *out, const uint8_t *data, size_t size,
                               enum td_packing packing, struct td_spill *spill, struct td_job *job,
                               struct tdbg_error *error);

#endif
