/* shift.h: do two series of repeated measurements differ, and by how much?
 *
 * Times of steps have long tails and no bell shape, so ranks decide: the Mann-Whitney test (normal
 * approximation, corrected for ties) says whether one side tends to be larger, and the Hodges-Lehmann
 * estimate, the median of all differences b - a, says by how much, with a 95 % interval from the same ranks.
 */
#ifndef TD_ANALYSE_SHIFT_H
#define TD_ANALYSE_SHIFT_H

#include <stdbool.h>
#include <stddef.h>

/* Fewer on either side and nothing can be told. */
enum { TD_SHIFT_LEAST = 5 };

struct td_shift {
    size_t count_a, count_b;
    double median_a, median_b;
    double shift, low, high; /* of b beyond a; NaN without enough measurements */
    double p;                /* chance of ranks this uneven without a difference; 1 without enough */
};

/* Sorts both. False when memory ran out. */
bool td_shift_measure(struct td_shift *out, double *a, size_t count_a, double *b, size_t count_b);

#endif
