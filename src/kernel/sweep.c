/* sweep.c: see sweep.h. */
#include "kernel/sweep.h"

#include "kernel/sparse.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

/* What must be gathered or converted goes through a buffer of this size per thread: within L2, and whole
 * blocks of any type. */
enum { GATHER_BYTES = 256 * 1024 };
_Static_assert(GATHER_BYTES % (16 * TD_BLOCK_LENGTH) == 0, "a piece that is gathered ends with a block");

/* --- Streams ------------------------------------------------------------------------------------------- */

/* Takes the expanded axes out of a dense tensor and returns how often each element occurs. The axis of
 * per-channel scales stays: its elements differ although their integers are the same. */
static uint64_t drop_expanded(struct td_tensor *tensor)
{
    uint64_t repeats = 1;
    for (int i = 0; i < tensor->shape.ndim; i++) {
        int64_t size = tensor->view.shape.size[i];
        bool scaled = tensor->affine && tensor->affine->axis == i;
        if (size < 2 || tensor->view.strides[i] != 0 || scaled)
            continue;
        repeats *= (uint64_t)size;
        tensor->view.shape.size[i] = tensor->shape.size[i] = 1;
        tensor->view.count /= size;
    }
    tensor->count = tensor->view.count;
    return repeats;
}

static void make_dense(struct td_tensor *tensor, const struct td_view *view)
{
    tensor->view = *view;
    tensor->shape = view->shape;
    tensor->count = view->count;
    tensor->sparse = NULL;
}

static tdbg_status stream_sparse(struct td_stream *stream, const struct td_tensor *tensor,
                                 struct tdbg_error *error)
{
    TD_TRY(td_loader_init(&stream->loader, &stream->tensor, error));
    int64_t stored = td_sparse_stored(stream->loader.order);
    stream->zeros = (uint64_t)(tensor->count - stored);
    stream->stored = !td_sparse_is_distinct(stream->loader.order);
    if (!stream->stored) { /* nothing to add up: the values are a dense tensor like any other */
        make_dense(&stream->tensor, &tensor->sparse->values);
        td_loader_release(&stream->loader);
    }
    stream->count = stored;
    return TDBG_OK;
}

tdbg_status td_stream_init(struct td_stream *stream, const struct td_tensor *tensor, struct tdbg_error *error)
{
    *stream = (struct td_stream){.tensor = *tensor, .repeats = 1, .bytes = tensor->bytes};
    stream->dtype = td_value_dtype(tensor);
    if (tensor->sparse)
        TD_TRY(stream_sparse(stream, tensor, error));
    if (stream->stored)
        return TDBG_OK;
    if (stream->tensor.count > 0 && td_dtype_facts(tensor->dtype)->kind != TD_BLOCK)
        stream->repeats = drop_expanded(&stream->tensor);
    stream->count = stream->tensor.count;
    if (stream->count > TD_MAX_OVERLAPPING && td_view_overlaps(&stream->tensor.view))
        return td_fail(error, TDBG_LIMIT, "a view of %" PRId64 " elements that overlap", stream->count);
    return td_loader_init(&stream->loader, &stream->tensor, error);
}

void td_stream_release(struct td_stream *stream)
{
    td_loader_release(&stream->loader);
}

/* --- Sweeps -------------------------------------------------------------------------------------------- */

struct sweep {
    const struct td_stream *stream;
    const struct td_visitor *visitor;
    struct td_job *job;
    int64_t length; /* elements of a slot */
    int64_t first;  /* of slot 0, in slots */

    pthread_mutex_t lock; /* guards what follows */
    uint64_t failed_slot; /* of the lowest that failed, so that the message does not depend on chance */
    struct tdbg_error error;
};

static void sweep_fail(struct sweep *s, uint64_t slot, const struct tdbg_error *error)
{
    pthread_mutex_lock(&s->lock);
    if (slot < s->failed_slot) {
        s->failed_slot = slot;
        s->error = *error;
    }
    pthread_mutex_unlock(&s->lock);
}

static tdbg_status visit_gathered(struct sweep *s, uint64_t slot, int64_t start, int64_t count,
                                  struct tdbg_error *error)
{
    const struct td_stream *stream = s->stream;
    int64_t size = (int64_t)td_dtype_size(stream->dtype), room = GATHER_BYTES / size;
    room = room < count ? room : count;
    void *buffer = malloc((size_t)(room * size));
    if (!buffer)
        return td_fail_nomem(error);
    tdbg_status status = TDBG_OK;
    while (count > 0 && status == TDBG_OK) {
        int64_t taken = count < room ? count : room;
        status = stream->stored ? td_sparse_read_stored(stream->loader.order, start, taken, buffer, error)
                                : td_loader_read(&stream->loader, start, taken, buffer, error);
        if (status == TDBG_OK)
            s->visitor->visit(s->visitor->context, slot, buffer, taken);
        start += taken;
        count -= taken;
    }
    free(buffer);
    return status;
}

/* Progress in bytes of the tensor as it is stored: the share of element `at`. */
static uint64_t bytes_until(const struct td_stream *stream, int64_t at)
{
    return (uint64_t)((double)stream->bytes * ((double)at / (double)stream->count));
}

static void sweep_slot(void *context, uint64_t slot)
{
    struct sweep *s = context;
    const struct td_stream *stream = s->stream;
    if (td_job_cancelled(s->job))
        return;
    int64_t start = (s->first + (int64_t)slot) * s->length;
    int64_t count = stream->count - start < s->length ? stream->count - start : s->length;
    if (stream->loader.direct) {
        const uint8_t *elements = stream->loader.direct + start * (int64_t)td_dtype_size(stream->dtype);
        s->visitor->visit(s->visitor->context, slot, elements, count);
    } else {
        struct tdbg_error error;
        if (visit_gathered(s, slot, start, count, &error) != TDBG_OK)
            sweep_fail(s, slot, &error);
    }
    td_job_advance(s->job, bytes_until(stream, start + count) - bytes_until(stream, start));
}

static tdbg_status sweep_waves(struct sweep *s, struct td_pool *pool, struct tdbg_error *error)
{
    int64_t total = (s->stream->count + s->length - 1) / s->length, wave = pool ? TD_SWEEP_SLOTS : 1;
    for (s->first = 0; s->first < total; s->first += wave) {
        uint64_t slots = (uint64_t)(total - s->first < wave ? total - s->first : wave);
        if (pool)
            td_pool_run(pool, slots, sweep_slot, s);
        else
            sweep_slot(s, 0);
        if (td_job_cancelled(s->job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        if (s->failed_slot != UINT64_MAX) {
            if (error)
                *error = s->error;
            return s->error.status;
        }
        if (s->visitor->collect)
            s->visitor->collect(s->visitor->context, slots);
    }
    return TDBG_OK;
}

tdbg_status td_sweep(const struct td_stream *stream, struct td_pool *pool, struct td_job *job,
                     const struct td_visitor *visitor, struct tdbg_error *error)
{
    struct sweep s = {.stream = stream, .visitor = visitor, .job = job, .failed_slot = UINT64_MAX};
    s.length = pool && visitor->by_block ? TD_BLOCK_LENGTH : TD_CHUNK_LENGTH;
    pthread_mutex_init(&s.lock, NULL);
    tdbg_status status = sweep_waves(&s, pool, error);
    pthread_mutex_destroy(&s.lock);
    return status;
}
