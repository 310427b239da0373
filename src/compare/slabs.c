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

/* The first values of all prints, each with its like: most slabs are told apart by them. */
struct heads {
    double *first, *second;
};

enum { BATCH = 16 };

/* Whether any of BATCH prints may be as near as `most`. The first loop is one that compilers make vectors of.
 */
static bool may_be_near(const struct heads *heads, int64_t at, const double *looked_for, double most)
{
    const double *first = heads->first + at, *second = heads->second + at;
    const double x = looked_for[0], y = looked_for[1];
    double distances[BATCH];
    bool near = false;
    for (int i = 0; i < BATCH; i++)
        distances[i] = (x - first[i]) * (x - first[i]) + (y - second[i]) * (y - second[i]);
    for (int i = 0; i < BATCH; i++)
        near |= !(distances[i] > most); /* what is not a number may */
    return near;
}

/* The one at the same place is tried first: it mostly is, and then all others are told apart by a few values.
 */
static int64_t find_nearest(const double *prints, const struct heads *heads, const double *looked_for,
                            int64_t n, int64_t k, const bool *taken)
{
    int64_t nearest = k;
    double best =
        taken[k] ? (double)INFINITY : distance(prints + k * TD_SLAB_PROBES, looked_for, (double)INFINITY);
    for (int64_t j = 0; j < n; j++) {
        if (j % BATCH == 0 && n - j >= BATCH && !may_be_near(heads, j, looked_for, best)) {
            j += BATCH - 1;
            continue;
        }
        if (taken[j] || j == k)
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
    double *space = calloc((size_t)n, 2 * sizeof *space);
    struct heads heads = {space, space + n};
    bool ready = taken && space;
    for (int64_t k = 0; ready && k < n; k++) {
        heads.first[k] = prints[k * TD_SLAB_PROBES];
        heads.second[k] = prints[k * TD_SLAB_PROBES + 1];
    }
    for (int64_t k = 0; ready && k < n; k++) {
        found[k] = find_nearest(prints, &heads, looked_for + k * TD_SLAB_PROBES, n, k, taken);
        taken[found[k]] = true;
    }
    free(space);
    free(taken);
    return ready;
}
