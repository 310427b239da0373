/* sweep.h: one pass over the elements of a tensor, in parallel, in bounded memory.
 *
 * A stream is what must be visited of a tensor: not the copies along expanded axes (each element counts
 * `repeats` times instead) and not the unnamed zeros of a sparse one (there are `zeros` of them). So a file
 * of a few bytes that poses as 2^48 elements is answered at once.
 *
 * td_sweep cuts the stream into chunks of TD_CHUNK_LENGTH elements, or where a visitor asks for it into
 * single blocks, and these into waves. In a wave, they are visited by any thread in any order, each with a
 * slot of its own; then `collect` sees the slots in order. That, and nothing else, is what keeps results
 * independent of the threads.
 */
#ifndef TD_KERNEL_SWEEP_H
#define TD_KERNEL_SWEEP_H

#include "base/job.h"
#include "base/pool.h"
#include "kernel/block.h"
#include "kernel/load.h"

/* Slots of a wave: with a pool, the most of them that are in the air before they are collected. */
enum { TD_SWEEP_SLOTS = 1024 };

struct td_stream {
    struct td_tensor tensor; /* without its expanded axes */
    struct td_loader loader;
    bool stored; /* sparse: the stored elements are streamed, not the dense tensor */
    int64_t count;
    enum td_dtype dtype;
    uint64_t repeats, zeros;
    uint64_t bytes; /* of the tensor, for progress */
};

/* The stream points into itself: it must not be moved. */
TD_CHECK tdbg_status td_stream_init(struct td_stream *stream, const struct td_tensor *tensor,
                                    struct tdbg_error *error);
void td_stream_release(struct td_stream *stream);

struct td_visitor {
    void *context;

    /* Some elements of a slot, a multiple of TD_BLOCK_LENGTH but for the last; the pieces of one slot come in
     * order, on one thread. */
    void (*visit)(void *context, uint64_t slot, const void *elements, int64_t count);

    /* Slots [0, slots) are complete. May be NULL. */
    void (*collect)(void *context, uint64_t slots);

    /* A slot is one block: what is left to share out is then enough for several threads in a tensor of a few
     * blocks, too. A wave begins with a chunk nevertheless. */
    bool by_block;
};

/* pool NULL: on the calling thread, with slot 0 only. */
TD_CHECK tdbg_status td_sweep(const struct td_stream *stream, struct td_pool *pool, struct td_job *job,
                              const struct td_visitor *visitor, struct tdbg_error *error);

#endif
