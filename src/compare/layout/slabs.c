/* slabs.c: see slabs.h. */
#include "compare/layout/slabs.h"

#include <math.h>
#include <stdlib.h>

struct td_slabs td_slabs_of(const struct td_shape *shape, int axis)
{
    struct td_slabs s = {1, shape->size[axis], 1};
    for (int i = 0; i < axis; i++)
        s.outer *= shape->size[i];
    for (int i = axis + 1; i < shape->ndim; i++)
        s.inner *= shape->size[i];
    return s;
}

/* The distance of two prints; beyond `most` only that it is larger. What is not a number is not near. */
static double distance(const double *x, const double *y, double most)
{
    double sum = 0;
    for (int p = 0; p < TD_SLAB_PROBES && sum <= most; p++)
        sum += (y[p] - x[p]) * (y[p] - x[p]);
    return isnan(sum) ? (double)INFINITY : sum;
}

/* A slab by the first value of its print. In their order, the nearest is not far. */
struct entry {
    double first;
    int64_t slab;
};

/* What is not a number comes last. */
static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (isnan(a->first) || isnan(b->first))
        return isnan(a->first) - isnan(b->first);
    return (a->first > b->first) - (a->first < b->first);
}

struct search {
    const double *prints, *looked_for;
    const bool *taken;
    int64_t nearest;
    double best;
};

static void try(struct search *s, int64_t j)
{
    if (s->taken[j])
        return;
    double d = distance(s->prints + j * TD_SLAB_PROBES, s->looked_for, s->best);
    if (d < s->best || (d == s->best && j < s->nearest) || s->taken[s->nearest]) {
        s->best = d;
        s->nearest = j;
    }
}

static bool may_be_nearer(const struct search *s, const struct entry *entry)
{
    double d = s->looked_for[0] - entry->first;
    return !(d * d > s->best); /* what is not a number may */
}

/* The one at the same place is tried first: it mostly is, and then few others come into question. */
static int64_t find_nearest(const double *prints, const struct entry *sorted, const double *looked_for,
                            int64_t n, int64_t k, const bool *taken)
{
    struct search s = {prints, looked_for, taken, k, (double)INFINITY};
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sorted[middle].first < looked_for[0])
            low = middle + 1;
        else
            high = middle;
    }
    try(&s, k);
    for (int64_t i = low; i < n && may_be_nearer(&s, &sorted[i]); i++)
        try(&s, sorted[i].slab);
    for (int64_t i = low; i > 0 && may_be_nearer(&s, &sorted[i - 1]); i--)
        try(&s, sorted[i - 1].slab);
    return s.nearest;
}

bool td_slabs_match(const double *prints, const double *looked_for, int64_t n, int64_t *found)
{
    bool *taken = calloc((size_t)n, sizeof *taken);
    struct entry *sorted = calloc((size_t)n, sizeof *sorted);
    bool ready = taken && sorted;
    if (ready) {
        for (int64_t k = 0; k < n; k++)
            sorted[k] = (struct entry){prints[k * TD_SLAB_PROBES], k};
        qsort(sorted, (size_t)n, sizeof *sorted, compare_entries);
    }
    for (int64_t k = 0; ready && k < n; k++) {
        found[k] = find_nearest(prints, sorted, looked_for + k * TD_SLAB_PROBES, n, k, taken);
        taken[found[k]] = true;
    }
    free(sorted);
    free(taken);
    return ready;
}
