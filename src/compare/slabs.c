/* slabs.c: see slabs.h. */
#include "compare/slabs.h"

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

/* The one at the same place is tried first: it mostly is, and then all others are told apart by a few values,
 * nearly all of them by their first. */
static int64_t find_nearest(const double *prints, const double *firsts, const double *looked_for, int64_t n,
                            int64_t k, const bool *taken)
{
    int64_t nearest = k;
    double best =
        taken[k] ? (double)INFINITY : distance(prints + k * TD_SLAB_PROBES, looked_for, (double)INFINITY);
    for (int64_t j = 0; j < n; j++) {
        double first = looked_for[0] - firsts[j];
        if (first * first > best || taken[j] || j == k)
            continue;
        double d = distance(prints + j * TD_SLAB_PROBES, looked_for, best);
        if (d < best || (d == best && j < nearest) || taken[nearest]) {
            best = d;
            nearest = j;
        }
    }
    return nearest;
}

bool td_slabs_match(const double *prints, const double *looked_for, int64_t n, int64_t *found)
{
    bool *taken = calloc((size_t)n, sizeof *taken);
    double *firsts = calloc((size_t)n, sizeof *firsts); /* one behind the other */
    bool ready = taken && firsts;
    for (int64_t k = 0; ready && k < n; k++)
        firsts[k] = prints[k * TD_SLAB_PROBES];
    for (int64_t k = 0; ready && k < n; k++) {
        found[k] = find_nearest(prints, firsts, looked_for + k * TD_SLAB_PROBES, n, k, taken);
        taken[found[k]] = true;
    }
    free(firsts);
    free(taken);
    return ready;
}
