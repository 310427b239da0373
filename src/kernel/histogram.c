/* histogram.c: counts in equal bins, as numpy counts.
 *
 * numpy computes the edges as doubles, rounds them to the type of the data, and lets a value's bin be decided
 * by comparison with the edges: bin i takes edge[i] <= x < edge[i + 1], the last one takes its upper edge as
 * well. A division only guesses the bin; the edges correct it. Counts are integers, so it does not matter
 * which thread counted what: each piece is counted into whichever tally is free.
 */
#include "kernel/stats.h"

#include "kernel/convert.h"
#include "kernel/element.h"
#include "kernel/sweep.h"

#include <pthread.h>
#include <stdlib.h>

struct tally {
    uint64_t *counts;
    bool taken;
};

struct histogram {
    enum td_dtype dtype;
    int bins;
    double low, high, per_unit; /* bins per unit of value */
    double *edges;              /* bins + 1; the caller's */
    pthread_mutex_t lock;       /* guards `taken` */
    struct tally *tallies;      /* one per thread */
    uint64_t *counts;           /* of all tallies, one after the other */
};

static double round_edge(enum td_dtype dtype, double edge)
{
    if (dtype == TD_F32)
        return (double)(float)edge;
    if (dtype == TD_F16)
        return (double)td_f16_value(td_f16_round((float)edge));
    return edge;
}

static void make_edges(struct histogram *h)
{
    double range = h->high - h->low, step = range / h->bins;
    for (int i = 0; i < h->bins; i++) {
        double edge = i * step + h->low;
        if (!isfinite(range)) { /* the ends lie further apart than the largest double */
            double t = (double)i / h->bins;
            edge = h->low * (1 - t) + h->high * t;
        }
        h->edges[i] = round_edge(h->dtype, edge);
    }
    h->edges[h->bins] = round_edge(h->dtype, h->high);
    h->per_unit = h->bins / range;
}

static void count_values(const struct histogram *h, const double *values, int64_t count, uint64_t *counts)
{
    for (int64_t i = 0; i < count; i++) {
        double x = values[i];
        if (!(x >= h->low && x <= h->high)) /* NaN, infinities, and what lies outside */
            continue;
        double guess = (x - h->low) * h->per_unit;
        int bin = guess < h->bins ? (int)guess : h->bins - 1;
        while (bin > 0 && x < h->edges[bin])
            bin--;
        while (bin < h->bins - 1 && x >= h->edges[bin + 1])
            bin++;
        counts[bin]++;
    }
}

static struct tally *take_tally(struct histogram *h)
{
    struct tally *tally = h->tallies;
    pthread_mutex_lock(&h->lock);
    while (tally->taken)
        tally++;
    tally->taken = true;
    pthread_mutex_unlock(&h->lock);
    return tally;
}

static void return_tally(struct histogram *h, struct tally *tally)
{
    pthread_mutex_lock(&h->lock);
    tally->taken = false;
    pthread_mutex_unlock(&h->lock);
}

static void visit(void *context, uint64_t slot, const void *elements, int64_t count)
{
    (void)slot;
    struct histogram *h = context;
    struct tally *tally = take_tally(h);
    int64_t size = (int64_t)td_dtype_size(h->dtype);
    for (int64_t at = 0; at < count; at += TD_BLOCK_LENGTH) {
        double values[TD_BLOCK_LENGTH];
        int64_t taken = count - at < TD_BLOCK_LENGTH ? count - at : TD_BLOCK_LENGTH;
        td_convert_f64(h->dtype, (const uint8_t *)elements + at * size, taken, values);
        count_values(h, values, taken, tally->counts);
    }
    return_tally(h, tally);
}

static tdbg_status fill(struct histogram *h, const struct td_stream *stream, struct td_pool *pool,
                        struct td_job *job, uint64_t *counts, struct tdbg_error *error)
{
    int threads = pool ? td_pool_threads(pool) : 1;
    size_t bins = (size_t)h->bins;
    h->counts = calloc((size_t)threads * bins, sizeof *h->counts);
    h->tallies = calloc((size_t)threads, sizeof *h->tallies);
    if (!h->counts || !h->tallies)
        return td_fail_nomem(error);
    for (int i = 0; i < threads; i++)
        h->tallies[i].counts = h->counts + (size_t)i * bins;
    make_edges(h);
    struct td_visitor visitor = {h, visit, NULL};
    TD_TRY(td_sweep(stream, pool, job, &visitor, error));

    double zero = 0;
    uint64_t *unnamed = calloc(bins, sizeof *unnamed);
    if (!unnamed)
        return td_fail_nomem(error);
    count_values(h, &zero, 1, unnamed);
    for (size_t bin = 0; bin < bins; bin++) {
        counts[bin] = unnamed[bin] * stream->zeros;
        for (int i = 0; i < threads; i++)
            counts[bin] += h->tallies[i].counts[bin] * stream->repeats;
    }
    free(unnamed);
    return TDBG_OK;
}

tdbg_status td_histogram(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job, double low,
                         double high, int bins, double *edges, uint64_t *counts, struct tdbg_error *error)
{
    if (bins < 1 || bins > TD_MAX_BINS)
        return td_fail(error, TDBG_MISUSE, "%d bins: a number from 1 to %d is needed", bins, TD_MAX_BINS);
    if (!isfinite(low) || !isfinite(high) || low > high)
        return td_fail(error, TDBG_MISUSE, "a histogram from %g to %g", low, high);
    struct td_stream stream;
    TD_TRY(td_stream_init(&stream, tensor, error));
    struct histogram h = {.dtype = stream.dtype, .bins = bins, .low = low, .high = high, .edges = edges};
    if (low == high) { /* as numpy does */
        h.low -= 0.5;
        h.high += 0.5;
    }
    pthread_mutex_init(&h.lock, NULL);
    tdbg_status status = fill(&h, &stream, pool, job, counts, error);
    pthread_mutex_destroy(&h.lock);
    free(h.counts);
    free(h.tallies);
    td_stream_release(&stream);
    return status;
}
