/* duet.c: see duet.h. */
#include "kernel/duet.h"

#include "kernel/convert.h"
#include "kernel/element.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct td_tensor *only_part(const struct td_operand *o)
{
    if (o->part_count > 1)
        return NULL;
    return td_tensor_is_dense(&o->parts[0]) ? &o->parts[0] : o->stored[0];
}

static tdbg_status voice_init(struct td_voice *v, const struct td_operand *o, struct tdbg_error *error)
{
    *v = (struct td_voice){.dtype = TD_F64};
    const struct td_tensor *part = only_part(o);
    if (!part)
        return td_access_init(&v->access, o, error);
    TD_TRY(td_loader_init(&v->loader, part, error));
    v->dtype = v->loader.dtype;
    return TDBG_OK;
}

static void voice_release(struct td_voice *v)
{
    td_loader_release(&v->loader);
    td_access_release(&v->access);
}

static bool is_complex(const struct td_voice *v)
{
    return v->dtype == TD_C64 || v->dtype == TD_C128;
}

static bool has_loop(const struct td_duet *d)
{
    return d->a.dtype <= TD_BF16 && d->b.dtype <= TD_BF16 && d->kernels->pairs->loop[d->a.dtype][d->b.dtype];
}

static bool same_long_integers(const struct td_duet *d)
{
    return d->a.dtype == d->b.dtype && (d->a.dtype == TD_I64 || d->a.dtype == TD_U64);
}

tdbg_status td_duet_init(struct td_duet *duet, const struct td_operand *a, const struct td_operand *b,
                         struct tdbg_error *error)
{
    *duet = (struct td_duet){.count = a->count};
    TD_TRY(td_kernels_select(&duet->kernels, error));
    TD_TRY(voice_init(&duet->a, a, error));
    tdbg_status status = voice_init(&duet->b, b, error);
    if (status != TDBG_OK) {
        voice_release(&duet->a);
        return status;
    }
    if (is_complex(&duet->a) || is_complex(&duet->b))
        duet->a.dtype = duet->b.dtype = TD_C128;
    else if (!has_loop(duet) && !same_long_integers(duet))
        duet->a.dtype = duet->b.dtype = TD_F64;
    return TDBG_OK;
}

void td_duet_release(struct td_duet *duet)
{
    voice_release(&duet->a);
    voice_release(&duet->b);
}

/* --- reading ------------------------------------------------------------------------------------------- */

static void widen_complex(enum td_dtype from, const void *elements, int64_t count, double *out)
{
    if (from == TD_C128) {
        memcpy(out, elements, (size_t)count * 16);
    } else if (from == TD_C64) {
        td_convert_f64(TD_F32, elements, 2 * count, out);
    } else {
        /* Real numbers: from the end, as each spreads over two places. */
        td_convert_f64(from, elements, count, out);
        for (int64_t i = count - 1; i >= 0; i--) {
            out[2 * i] = out[i];
            out[2 * i + 1] = 0;
        }
    }
}

/* Buffers of one voice on one thread: the elements as stored, and as the blocks want them. */
struct buffers {
    void *raw, *wide;
};

static tdbg_status read_block(const struct td_voice *v, int64_t start, int64_t count, struct buffers *space,
                              const uint8_t **out, struct tdbg_error *error)
{
    const uint8_t *elements;
    enum td_dtype dtype = v->loader.tensor ? v->loader.dtype : TD_F64;
    if (v->loader.direct) {
        elements = v->loader.direct + start * (int64_t)td_dtype_size(dtype);
    } else {
        if (v->loader.tensor)
            TD_TRY(td_loader_read(&v->loader, start, count, space->raw, error));
        else
            TD_TRY(td_access_run(&v->access, start, count, space->raw, error));
        elements = space->raw;
    }
    if (v->dtype == dtype) {
        *out = elements;
        return TDBG_OK;
    }
    if (v->dtype == TD_C128)
        widen_complex(dtype, elements, count, space->wide);
    else
        td_convert_f64(dtype, elements, count, space->wide);
    *out = space->wide;
    return TDBG_OK;
}

static bool buffers_init(struct buffers *space, const struct td_voice *v, int64_t count)
{
    enum td_dtype dtype = v->loader.tensor ? v->loader.dtype : TD_F64;
    size_t n = (size_t)(count < TD_BLOCK_LENGTH ? count : TD_BLOCK_LENGTH) * 16;
    *space = (struct buffers){0};
    if (!v->loader.direct)
        space->raw = malloc(n);
    if (v->dtype != dtype)
        space->wide = malloc(n);
    return (v->loader.direct || space->raw) && (v->dtype == dtype || space->wide);
}

static void buffers_release(struct buffers *space)
{
    free(space->raw);
    free(space->wide);
}

/* Exact until it becomes a double. */
static double integer_distance(enum td_dtype dtype, const uint8_t *a, const uint8_t *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    bool less = dtype == TD_I64 ? (int64_t)x < (int64_t)y : x < y;
    return (double)(less ? y - x : x - y);
}

void td_duet_differences(const struct td_duet *duet, const void *a, const void *b, int64_t count, double *x,
                         double *y, double *d)
{
    const enum td_dtype dtype = duet->a.dtype;
    const uint8_t *p = a, *q = b;
    td_convert_f64(dtype, a, count, x);
    td_convert_f64(duet->b.dtype, b, count, y);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TD_I64 || dtype == TD_U64)
            d[i] = integer_distance(dtype, p + 8 * i, q + 8 * i);
        else if (dtype == TD_C128)
            d[i] = hypot(td_f64_at(p + 16 * i) - td_f64_at(q + 16 * i),
                         td_f64_at(p + 16 * i + 8) - td_f64_at(q + 16 * i + 8));
        else
            d[i] = fabs(x[i] - y[i]);
    }
}

/* --- playing ------------------------------------------------------------------------------------------- */

struct play {
    const struct td_duet *duet;
    const struct td_duet_visitor *visitor;
    struct td_job *job;
    pthread_mutex_t lock;
    int64_t failed_chunk; /* the lowest that failed; INT64_MAX: none */
    struct tdbg_error error;
};

static tdbg_status play_block(const struct play *p, int64_t chunk, int64_t start, int64_t count,
                              struct buffers space[2], struct tdbg_error *error)
{
    const uint8_t *a, *b;
    TD_TRY(read_block(&p->duet->a, start, count, &space[0], &a, error));
    TD_TRY(read_block(&p->duet->b, start, count, &space[1], &b, error));
    p->visitor->visit(p->visitor->context, chunk, start, a, b, count);
    return TDBG_OK;
}

static tdbg_status play_blocks(const struct play *p, int64_t chunk, int64_t start, int64_t end,
                               struct tdbg_error *error)
{
    const struct td_duet *d = p->duet;
    struct buffers space[2] = {{0}};
    tdbg_status status = TDBG_OK;
    if (!buffers_init(&space[0], &d->a, end - start) || !buffers_init(&space[1], &d->b, end - start))
        status = td_fail_nomem(error);
    for (int64_t at = start; at < end && status == TDBG_OK; at += TD_BLOCK_LENGTH) {
        int64_t count = end - at < TD_BLOCK_LENGTH ? end - at : TD_BLOCK_LENGTH;
        status = play_block(p, chunk, at, count, space, error);
    }
    buffers_release(&space[0]);
    buffers_release(&space[1]);
    return status;
}

static void play_chunk(void *context, uint64_t index)
{
    struct play *p = context;
    struct tdbg_error error;
    int64_t chunk = (int64_t)index, start = chunk * TD_CHUNK_LENGTH, end = start + TD_CHUNK_LENGTH;
    if (td_job_cancelled(p->job))
        return;
    if (play_blocks(p, chunk, start, end < p->duet->count ? end : p->duet->count, &error) != TDBG_OK) {
        pthread_mutex_lock(&p->lock);
        if (chunk < p->failed_chunk) {
            p->failed_chunk = chunk;
            p->error = error;
        }
        pthread_mutex_unlock(&p->lock);
    }
    td_job_advance(p->job, TD_CHUNK_LENGTH);
}

tdbg_status td_duet_play(const struct td_duet *duet, struct td_pool *pool, struct td_job *job,
                         const struct td_duet_visitor *visitor, struct tdbg_error *error)
{
    struct play p = {.duet = duet, .visitor = visitor, .job = job, .failed_chunk = INT64_MAX};
    uint64_t chunks = (uint64_t)td_duet_chunks(duet);
    pthread_mutex_init(&p.lock, NULL);
    if (pool)
        td_pool_run(pool, chunks, play_chunk, &p);
    for (uint64_t i = 0; i < chunks && !pool; i++)
        play_chunk(&p, i);
    pthread_mutex_destroy(&p.lock);
    if (td_job_cancelled(job))
        return td_fail(error, TDBG_CANCELLED, "stopped");
    if (p.failed_chunk != INT64_MAX) {
        if (error)
            *error = p.error;
        return p.error.status;
    }
    return TDBG_OK;
}

tdbg_status td_duet_play_chunk(const struct td_duet *duet, int64_t chunk,
                               const struct td_duet_visitor *visitor, struct tdbg_error *error)
{
    struct play p = {.duet = duet, .visitor = visitor};
    int64_t start = chunk * TD_CHUNK_LENGTH, end = start + TD_CHUNK_LENGTH;
    return play_blocks(&p, chunk, start, end < duet->count ? end : duet->count, error);
}

tdbg_status td_duet_play_block(const struct td_duet *duet, int64_t start,
                               const struct td_duet_visitor *visitor, struct tdbg_error *error)
{
    struct play p = {.duet = duet, .visitor = visitor};
    int64_t end = start + TD_BLOCK_LENGTH;
    return play_blocks(&p, start / TD_CHUNK_LENGTH, start, end < duet->count ? end : duet->count, error);
}
