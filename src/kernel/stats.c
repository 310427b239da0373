/* stats.c: see stats.h; the arithmetic is in block.h, the pass itself in sweep.h.
 *
 * Types of one byte take a short cut: 256 counters say all there is to know, exactly, whatever the order.
 * Doubles may be so large or small that their squares leave the range of doubles: a second pass then takes
 * their spread over values scaled by a power of two.
 */
#include "kernel/stats.h"

#include "kernel/convert.h"
#include "kernel/sweep.h"
#include "kernel/tier.h"

#include <pthread.h>
#include <stdlib.h>

/* With what a tensor is gone over. */
struct means {
    const struct td_kernels *kernels;
    struct td_pool *pool;
    struct td_job *job;
    bool by_block; /* the pool gets single blocks, and not chunks */
};

/* --- Blocks -------------------------------------------------------------------------------------------- */

enum { BLOCKS = TD_CHUNK_LENGTH / TD_BLOCK_LENGTH };
_Static_assert(TD_SWEEP_SLOTS % BLOCKS == 0, "a wave of blocks is one of whole chunks");

struct pass {
    const struct td_kernels *kernels;
    enum td_dtype dtype;
    double scale; /* 1, or a power of two that the elements are multiplied by */
    struct td_partial *slots;
    uint64_t slots_of_chunk;
    struct td_partial total;
};

static struct td_partial block_partial(const struct pass *pass, const uint8_t *elements, int64_t count)
{
    if (pass->scale == 1 && pass->kernels->stats[pass->dtype])
        return pass->kernels->stats[pass->dtype](elements, count);
    double values[TD_BLOCK_LENGTH];
    td_convert_f64(pass->dtype, elements, count, values);
    for (int64_t i = 0; i < count && pass->scale != 1; i++)
        values[i] *= pass->scale;
    return pass->kernels->stats[TD_F64](values, count);
}

static void visit_blocks(void *context, uint64_t slot, const void *elements, int64_t count)
{
    struct pass *pass = context;
    int64_t size = (int64_t)td_dtype_size(pass->dtype);
    for (int64_t at = 0; at < count; at += TD_BLOCK_LENGTH) {
        int64_t taken = count - at < TD_BLOCK_LENGTH ? count - at : TD_BLOCK_LENGTH;
        struct td_partial block = block_partial(pass, (const uint8_t *)elements + at * size, taken);
        td_partial_merge(&pass->slots[slot], &block);
    }
}

/* Blocks become chunks first, also where each came in a slot of its own. */
static void collect_blocks(void *context, uint64_t slots)
{
    struct pass *pass = context;
    for (uint64_t i = 0; i < slots;) {
        struct td_partial chunk = TD_PARTIAL_EMPTY;
        for (uint64_t end = i + pass->slots_of_chunk; i < end && i < slots; i++) {
            td_partial_merge(&chunk, &pass->slots[i]);
            pass->slots[i] = TD_PARTIAL_EMPTY;
        }
        td_partial_merge(&pass->total, &chunk);
    }
}

/* As many slots as the stream can fill. */
static size_t slots_for(const struct td_stream *stream, const struct means *with)
{
    int64_t length = with->by_block ? TD_BLOCK_LENGTH : TD_CHUNK_LENGTH,
            most = with->pool ? TD_SWEEP_SLOTS : 1;
    int64_t wanted = stream->count / length + 1;
    return (size_t)(wanted < most ? wanted : most);
}

static tdbg_status pass_blocks(const struct td_stream *stream, const struct means *with, double scale,
                               struct td_partial *out, struct tdbg_error *error)
{
    struct pass pass = {.kernels = with->kernels,
                        .dtype = stream->dtype,
                        .scale = scale,
                        .slots_of_chunk = with->pool && with->by_block ? BLOCKS : 1,
                        .total = TD_PARTIAL_EMPTY};
    size_t slots = slots_for(stream, with);
    struct td_partial only = TD_PARTIAL_EMPTY;
    pass.slots = slots > 1 ? malloc(slots * sizeof *pass.slots) : &only;
    if (!pass.slots)
        return td_fail_nomem(error);
    for (size_t i = 0; i < slots; i++)
        pass.slots[i] = TD_PARTIAL_EMPTY;
    struct td_visitor visitor = {&pass, visit_blocks, collect_blocks, with->by_block};
    tdbg_status status = td_sweep(stream, with->pool, with->job, &visitor, error);
    if (slots > 1)
        free(pass.slots);
    if (status == TDBG_OK)
        *out = pass.total;
    return status;
}

/* Squares of values beyond 2^+-400 may leave the range of doubles when there are many of them. */
double td_spread_scale(double absmax)
{
    return absmax > 0x1p400 ? 0x1p-600 : absmax < 0x1p-400 && absmax > 0 ? 0x1p600 : 1;
}

void td_partial_complete(struct td_partial *p, const struct td_partial *scaled)
{
    p->mean = scaled->mean;
    p->rest = scaled->rest;
    p->m2 = scaled->m2;
}

/* --- Bytes --------------------------------------------------------------------------------------------- */

struct tally {
    pthread_mutex_t lock;
    uint64_t counts[256];
};

static void visit_bytes(void *context, uint64_t slot, const void *elements, int64_t count)
{
    (void)slot;
    struct tally *tally = context;
    const uint8_t *p = elements;
    uint32_t counts[4][256] = {{0}}; /* four, so that a run of one value does not wait for itself */
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            counts[k][p[i + k]]++;
    for (; i < count; i++)
        counts[0][p[i]]++;
    pthread_mutex_lock(&tally->lock);
    for (int k = 0; k < 256; k++)
        tally->counts[k] += (uint64_t)counts[0][k] + counts[1][k] + counts[2][k] + counts[3][k];
    pthread_mutex_unlock(&tally->lock);
}

static struct td_partial tally_finish(const struct tally *tally, enum td_dtype dtype)
{
    uint8_t codes[256];
    double values[256], sum = 0;
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    td_convert_f64(dtype, codes, 256, values);
    struct td_partial p = TD_PARTIAL_EMPTY;
    for (int i = 0; i < 256; i++) {
        uint64_t n = tally->counts[i];
        double x = values[i] + 0.0; /* -0 is 0 */
        if (n == 0)
            continue;
        if (!isfinite(x)) {
            p.nan += isnan(x) ? n : 0;
            p.inf += isnan(x) ? 0 : n;
            continue;
        }
        p.finite += n;
        p.zeros += x == 0 ? n : 0;
        p.min = x < p.min ? x : p.min;
        p.max = x > p.max ? x : p.max;
        sum += (double)n * x;
    }
    if (p.finite == 0)
        return p;
    p.mean = p.min == p.max ? p.min : sum / (double)p.finite;
    for (int i = 0; i < 256; i++)
        if (tally->counts[i] && isfinite(values[i]))
            p.m2 += (double)tally->counts[i] * ((values[i] - p.mean) * (values[i] - p.mean));
    return p;
}

static tdbg_status pass_bytes(const struct td_stream *stream, const struct means *with,
                              struct td_partial *out, struct tdbg_error *error)
{
    struct tally tally = {0};
    pthread_mutex_init(&tally.lock, NULL);
    struct td_visitor visitor = {.context = &tally, .visit = visit_bytes};
    tdbg_status status = td_sweep(stream, with->pool, with->job, &visitor, error);
    pthread_mutex_destroy(&tally.lock);
    if (status == TDBG_OK)
        *out = tally_finish(&tally, stream->dtype);
    return status;
}

/* --- The answer ---------------------------------------------------------------------------------------- */

void td_partial_report(const struct td_partial *p, double scale, struct tdbg_stats *out)
{
    double n = (double)p->finite, mean = p->mean + p->rest;
    *out = (struct tdbg_stats){.count = p->finite + p->nan + p->inf,
                               .finite = p->finite,
                               .nan = p->nan,
                               .inf = p->inf,
                               .zeros = p->zeros};
    out->norm = hypot(sqrt(p->m2), sqrt(n) * mean) / scale;
    out->std = p->finite > 1 ? sqrt(p->m2 / (n - 1)) / scale : (double)NAN;
    out->mean = mean / scale;
    out->min = p->min;
    out->max = p->max;
    out->absmax = fmax(fabs(p->min), fabs(p->max));
    if (p->finite == 0) {
        out->norm = 0;
        out->mean = out->min = out->max = out->absmax = (double)NAN;
    }
}

static void finish(const struct td_stream *stream, struct td_partial p, double scale, struct tdbg_stats *out)
{
    p.finite *= stream->repeats;
    p.nan *= stream->repeats;
    p.inf *= stream->repeats;
    p.zeros *= stream->repeats;
    p.m2 *= (double)stream->repeats;
    struct td_partial unnamed = {.finite = stream->zeros, .zeros = stream->zeros};
    td_partial_merge(&p, &unnamed);

    td_partial_report(&p, scale, out);
}

static tdbg_status stream_stats(const struct td_stream *stream, const struct means *with,
                                struct tdbg_stats *out, struct tdbg_error *error)
{
    struct td_partial total;
    double scale = 1;
    if (td_dtype_size(stream->dtype) == 1) {
        TD_TRY(pass_bytes(stream, with, &total, error));
    } else {
        TD_TRY(pass_blocks(stream, with, 1, &total, error));
        if (total.finite > 0 && total.min < total.max)
            scale = td_spread_scale(fmax(fabs(total.min), fabs(total.max)));
    }
    if (scale != 1) {
        struct td_partial scaled;
        struct means again = *with;
        again.job = NULL; /* its progress has been told */
        TD_TRY(pass_blocks(stream, &again, scale, &scaled, error));
        td_partial_complete(&total, &scaled);
    }
    finish(stream, total, scale, out);
    return TDBG_OK;
}

static tdbg_status tensor_stats(const struct td_tensor *tensor, const struct means *with,
                                struct tdbg_stats *out, struct tdbg_error *error)
{
    struct td_stream stream;
    TD_TRY(td_stream_init(&stream, tensor, error));
    tdbg_status status = stream_stats(&stream, with, out, error);
    td_stream_release(&stream);
    return status;
}

tdbg_status td_stats(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                     struct tdbg_stats *out, struct tdbg_error *error)
{
    struct means with = {.pool = pool, .job = job};
    TD_TRY(td_kernels_select(&with.kernels, error));
    return tensor_stats(tensor, &with, out, error);
}

tdbg_status td_stats_with(const struct td_kernels *kernels, const struct td_tensor *tensor,
                          struct td_pool *pool, struct tdbg_stats *out, struct tdbg_error *error)
{
    struct means with = {.kernels = kernels, .pool = pool, .by_block = true};
    return tensor_stats(tensor, &with, out, error);
}
