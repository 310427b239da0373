/* shift.h: the value a block's sums are taken around; see block.h.
 *
 * The mean of the finite elements among the first 64, or among the first group of 64 that has any. Added up
 * in a fixed order: lane by lane, four rows as a tree, then the lanes.
 */
#ifndef TD_KERNEL_SHIFT_H
#define TD_KERNEL_SHIFT_H

#include "kernel/block.h"

static inline __attribute__((always_inline)) double td_shift(const uint8_t *p, int64_t count, int64_t size,
                                                             double (*value)(const uint8_t *))
{
    for (int64_t group = 0; group < count; group += TD_SHIFT_SAMPLE) {
        double sample[TD_SHIFT_SAMPLE] = {0}, lanes[TD_LANES];
        int64_t finite = 0, left = count - group < TD_SHIFT_SAMPLE ? count - group : TD_SHIFT_SAMPLE;
        for (int64_t i = 0; i < left; i++) {
            double x = value(p + (group + i) * size);
            sample[i] = isfinite(x) ? x : 0;
            finite += isfinite(x) != 0;
        }
        for (int i = 0; i < TD_LANES; i++)
            lanes[i] =
                (sample[i] + sample[i + TD_LANES]) + (sample[i + 2 * TD_LANES] + sample[i + 3 * TD_LANES]);
        if (finite > 0)
            return td_lanes_combine(lanes) / (double)finite;
    }
    return 0;
}

#endif
