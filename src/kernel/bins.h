/* bins.h: equal bins over a range, as numpy has them, and counters that threads fill side by side.
 *
 * numpy computes the edges as doubles, rounds them to the type of the data, and lets a value's bin be decided
 * by comparison with the edges: bin i takes edge[i] <= x < edge[i + 1], the last one takes its upper edge as
 * well. A division only guesses the bin; the edges correct it. Counts are integers, so it does not matter
 * which thread counted what: each piece is counted into whichever tally is free.
 */
#ifndef TD_KERNEL_BINS_H
#define TD_KERNEL_BINS_H

#include "base/status.h"
#include "tensor/dtype.h"

#include <pthread.h>

struct td_bins {
    int count;
    double low, high, per_unit; /* bins per unit of value */
    double *edges;              /* count + 1; the caller's */
};

/* Fills `edges`, rounded to `dtype`. low = high: half a unit to either side, as numpy does. */
TD_CHECK tdbg_status td_bins_init(struct td_bins *bins, enum td_dtype dtype, double low, double high,
                                  int count, double *edges, struct tdbg_error *error);

/* -1: NaN, infinities, and what lies outside. */
static inline int td_bins_find(const struct td_bins *b, double x)
{
    if (!(x >= b->low && x <= b->high))
        return -1;
    double guess = (x - b->low) * b->per_unit;
    int bin = guess < b->count ? (int)guess : b->count - 1;
    while (bin > 0 && x < b->edges[bin])
        bin--;
    while (bin < b->count - 1 && x >= b->edges[bin + 1])
        bin++;
    return bin;
}

struct td_tallies {
    pthread_mutex_t lock; /* guards `taken` */
    int threads;
    size_t length;    /* counters of one tally */
    uint64_t *counts; /* of all tallies, one after the other */
    bool *taken;
};

TD_CHECK tdbg_status td_tallies_init(struct td_tallies *t, int threads, size_t length,
                                     struct tdbg_error *error);
void td_tallies_release(struct td_tallies *t);

/* The counters of a tally nobody else has; there is one for each thread. */
uint64_t *td_tallies_take(struct td_tallies *t);
void td_tallies_return(struct td_tallies *t, const uint64_t *tally);

uint64_t td_tallies_sum(const struct td_tallies *t, size_t counter);

#endif
