/* duet.h: two operands of one shape, read side by side, a block at a time, by any thread.
 *
 * Where both sides lie in memory as they are (dense, packed, native) nothing is copied. What must be gathered
 * or converted goes through buffers that stay in the cache. The types the blocks come in are fixed for the
 * whole duet: those of the tensors where the tier has a loop for the two, or where both are the same 64-bit
 * integers, which no double holds; else doubles, or pairs of doubles when a side is complex.
 */
#ifndef TD_KERNEL_DUET_H
#define TD_KERNEL_DUET_H

#include "base/job.h"
#include "base/pool.h"
#include "kernel/access.h"
#include "kernel/pair.h"
#include "kernel/tier.h"
#include "tensor/operand.h"

/* One side. */
struct td_voice {
    struct td_loader loader; /* of the only part; `tensor` NULL when there are several … */
    struct td_access access; /* … which are read through this */
    enum td_dtype dtype;     /* as blocks come: TD_F64, TD_C128, or the loader's type */
};

struct td_duet {
    const struct td_kernels *kernels;
    struct td_voice a, b;
    int64_t count;
};

/* Points into itself: must not be moved. */
TD_CHECK tdbg_status td_duet_init(struct td_duet *duet, const struct td_operand *a,
                                  const struct td_operand *b, struct tdbg_error *error);
void td_duet_release(struct td_duet *duet);

/* Visits every block of TD_BLOCK_LENGTH elements. Blocks of one chunk (TD_CHUNK_LENGTH elements) come in
 * order and on one thread, chunks in any order; `chunk` tells which. pool NULL: all on this thread. */
struct td_duet_visitor {
    void *context;
    void (*visit)(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count);
};

TD_CHECK tdbg_status td_duet_play(const struct td_duet *duet, struct td_pool *pool, struct td_job *job,
                                  const struct td_duet_visitor *visitor, struct tdbg_error *error);

/* One chunk, on this thread. */
TD_CHECK tdbg_status td_duet_play_chunk(const struct td_duet *duet, int64_t chunk,
                                        const struct td_duet_visitor *visitor, struct tdbg_error *error);

/* Visits the one block that begins at `start` once more, on this thread. */
TD_CHECK tdbg_status td_duet_play_block(const struct td_duet *duet, int64_t start,
                                        const struct td_duet_visitor *visitor, struct tdbg_error *error);

/* The elements of a block as doubles (complex: by modulus) and the sizes of their differences. */
void td_duet_differences(const struct td_duet *duet, const void *a, const void *b, int64_t count, double *x,
                         double *y, double *d);

/* The tier's loop that tells which rows need a closer look; NULL: there is none for these two types. */
static inline td_beyond_kernel *td_duet_beyond(const struct td_duet *duet)
{
    bool floats = duet->a.dtype <= TD_BF16 && duet->b.dtype <= TD_BF16;
    return floats ? duet->kernels->pairs->beyond[duet->a.dtype][duet->b.dtype] : NULL;
}

static inline int64_t td_duet_chunks(const struct td_duet *duet)
{
    return (duet->count + TD_CHUNK_LENGTH - 1) / TD_CHUNK_LENGTH;
}

#endif
