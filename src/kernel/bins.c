/* bins.c: see bins.h. */
#include "kernel/bins.h"

#include "base/limits.h"
#include "kernel/element.h"

#include <stdlib.h>

static double round_edge(enum td_dtype dtype, double edge)
{
    if (dtype == TD_F32)
        return (double)(float)edge;
    if (dtype == TD_F16)
        return (double)td_f16_value(td_f16_round((float)edge));
    return edge;
}

tdbg_status td_bins_init(struct td_bins *out, enum td_dtype dtype, double low, double high, int count,
                         double *edges, struct tdbg_error *error)
{
    if (count < 1 || count > TD_MAX_BINS)
        return td_fail(error, TDBG_MISUSE, "%d bins: a number from 1 to %d is needed", count, TD_MAX_BINS);
    if (!isfinite(low) || !isfinite(high) || low > high)
        return td_fail(error, TDBG_MISUSE, "a histogram from %g to %g", low, high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    double range = high - low, step = range / count;
    for (int i = 0; i < count; i++) {
        double edge = i * step + low;
        if (!isfinite(range)) { /* the ends lie further apart than the largest double */
            double t = (double)i / count;
            edge = low * (1 - t) + high * t;
        }
        edges[i] = round_edge(dtype, edge);
    }
    edges[count] = round_edge(dtype, high);
    *out =
        (struct td_bins){.count = count, .low = low, .high = high, .per_unit = count / range, .edges = edges};
    return TDBG_OK;
}

tdbg_status td_tallies_init(struct td_tallies *t, int threads, size_t length, struct tdbg_error *error)
{
    struct td_tallies made = {.threads = threads, .length = length};
    made.counts = calloc((size_t)threads * length, sizeof *made.counts);
    made.taken = calloc((size_t)threads, sizeof *made.taken);
    if (!made.counts || !made.taken) {
        free(made.counts);
        free(made.taken);
        return td_fail_nomem(error);
    }
    *t = made;
    pthread_mutex_init(&t->lock, NULL);
    return TDBG_OK;
}

void td_tallies_release(struct td_tallies *t)
{
    pthread_mutex_destroy(&t->lock);
    free(t->counts);
    free(t->taken);
}

uint64_t *td_tallies_take(struct td_tallies *t)
{
    size_t at = 0;
    pthread_mutex_lock(&t->lock);
    while (t->taken[at])
        at++;
    t->taken[at] = true;
    pthread_mutex_unlock(&t->lock);
    return t->counts + at * t->length;
}

void td_tallies_return(struct td_tallies *t, const uint64_t *tally)
{
    pthread_mutex_lock(&t->lock);
    t->taken[(size_t)(tally - t->counts) / t->length] = false;
    pthread_mutex_unlock(&t->lock);
}

uint64_t td_tallies_sum(const struct td_tallies *t, size_t counter)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->threads; i++)
        sum += t->counts[(size_t)i * t->length + counter];
    return sum;
}
