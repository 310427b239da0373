/* slabs.h: a tensor as a stack of slabs along an axis (heads, experts, tokens), and recognising them by
 * value.
 *
 * A few values of every slab, taken at the same places, are its print. A slab is the one with the nearest
 * print: nearest rather than equal, because the two sides may be of different precision.
 */
#ifndef TD_COMPARE_LAYOUT_SLABS_H
#define TD_COMPARE_LAYOUT_SLABS_H

#include "tensor/view.h"

#include <stdbool.h>
#include <stdint.h>

/* 48 values tell thousands of slabs apart unless they are copies of each other, in which case either will do.
 */
enum { TD_SLAB_PROBES = 48 };

/* outer x size x inner. */
struct td_slabs {
    int64_t outer, size, inner;
};

struct td_slabs td_slabs_of(const struct td_shape *shape, int axis);

/* The element of slab k that is number p of its print; they are spread evenly over the slab. */
static inline int64_t td_slab_probe(const struct td_slabs *s, int64_t k, int p)
{
    int64_t within = s->outer * s->inner;
    int64_t at =
        within <= TD_SLAB_PROBES ? p % within : (int64_t)((double)p * (double)within / TD_SLAB_PROBES);
    return (at / s->inner * s->size + k) * s->inner + at % s->inner;
}

/* found[k]: which of `n` prints is the k-th of those that are looked for. Each is given once; of several as
 * near the first, because repeated heads are equal. False: no memory. */
bool td_slabs_match(const double *prints, const double *looked_for, int64_t n, int64_t *found);

#endif
