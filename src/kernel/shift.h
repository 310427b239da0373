/* shift.h: the value a block's sums are taken around; see block.h.
 *
 * The mean of the finite elements among the first 64, or among the first group of 64 that has any; but zero,
 * which saves a subtraction per element, where that mean is no larger than their spread. Added up in a fixed
 * order: lane by lane, four rows as a tree, then the lanes.
 */
#ifndef TD_KERNEL_SHIFT_H
#define TD_KERNEL_SHIFT_H

#include "kernel/block.h"

/* From the sum and the sum of squares of `count` values. */
static inline double td_shift_choose(double sum, double squares, double count)
{
    double mean = sum / count;
    return 2 * sum * mean <= squares ? 0 : mean;
}

static inline __attribute__((always_inline)) double td_shift(const uint8_t *p, int64_t count, int64_t size,
                                                             double (*value)(const uint8_t *))
{
    for (int64_t group = 0; group < count; group += TD_SHIFT_SAMPLE) {
        double x[TD_SHIFT_SAMPLE] = {0}, sums[TD_LANES], squares[TD_LANES];
        int64_t finite = 0, left = count - group < TD_SHIFT_SAMPLE ? count - group : TD_SHIFT_SAMPLE;
        for (int64_t i = 0; i < left; i++) {
            double e = value(p + (group + i) * size);
            x[i] = isfinite(e) ? e : 0;
            finite += isfinite(e) ? 1 : 0;
        }
        for (int i = 0; i < TD_LANES; i++) {
            const double *row = x + i;
            sums[i] = (row[0] + row[TD_LANES]) + (row[2 * TD_LANES] + row[3 * TD_LANES]);
            squares[i] = (row[0] * row[0] + row[TD_LANES] * row[TD_LANES]) +
                         (row[2 * TD_LANES] * row[2 * TD_LANES] + row[3 * TD_LANES] * row[3 * TD_LANES]);
        }
        if (finite > 0)
            return td_shift_choose(td_lanes_combine(sums), td_lanes_combine(squares), (double)finite);
    }
    return 0;
}

#endif
