/* histogram.c: counts of a tensor's values in equal bins; see stats.h, and bins.h for what a bin takes. */
#include "kernel/bins.h"
#include "kernel/convert.h"
#include "kernel/stats.h"
#include "kernel/sweep.h"

enum { STEP = 1024 }; /* elements made doubles at a time */

struct histogram {
    enum td_dtype dtype;
    struct td_bins bins;
    struct td_tallies tallies;
};

static void visit(void *context, uint64_t slot, const void *elements, int64_t count)
{
    (void)slot;
    struct histogram *h = context;
    uint64_t *tally = td_tallies_take(&h->tallies);
    int64_t size = (int64_t)td_dtype_size(h->dtype);
    for (int64_t at = 0; at < count; at += STEP) {
        double values[STEP];
        int64_t taken = count - at < STEP ? count - at : STEP;
        td_convert_f64(h->dtype, (const uint8_t *)elements + at * size, taken, values);
        for (int64_t i = 0; i < taken; i++) {
            int bin = td_bins_find(&h->bins, values[i]);
            if (bin >= 0)
                tally[bin]++;
        }
    }
    td_tallies_return(&h->tallies, tally);
}

static tdbg_status fill(struct histogram *h, const struct td_stream *stream, struct td_pool *pool,
                        struct td_job *job, uint64_t *counts, struct tdbg_error *error)
{
    struct td_visitor visitor = {.context = h, .visit = visit};
    TD_TRY(td_sweep(stream, pool, job, &visitor, error));
    for (int bin = 0; bin < h->bins.count; bin++)
        counts[bin] = td_tallies_sum(&h->tallies, (size_t)bin) * stream->repeats;
    int zero = td_bins_find(&h->bins, 0);
    if (zero >= 0)
        counts[zero] += stream->zeros;
    return TDBG_OK;
}

tdbg_status td_histogram(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job, double low,
                         double high, int bins, double *edges, uint64_t *counts, struct tdbg_error *error)
{
    struct td_stream stream;
    struct histogram h = {.dtype = td_value_dtype(tensor)};
    TD_TRY(td_bins_init(&h.bins, h.dtype, low, high, bins, edges, error));
    TD_TRY(td_stream_init(&stream, tensor, error));
    tdbg_status status = td_tallies_init(&h.tallies, pool ? td_pool_threads(pool) : 1, (size_t)bins, error);
    if (status == TDBG_OK) {
        status = fill(&h, &stream, pool, job, counts, error);
        td_tallies_release(&h.tallies);
    }
    td_stream_release(&stream);
    return status;
}
