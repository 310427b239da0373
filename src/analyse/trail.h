/* trail.h: a series of any length in bounded memory, for drawing.
 *
 * Points are buckets of `stride` values. When all are used, neighbours merge and the stride doubles, so what
 * is kept depends on the values alone and not on how they arrived. No extreme is lost: a bucket has the
 * least, the greatest and the last of its values. NaN shows as `last` only.
 */
#ifndef TD_ANALYSE_TRAIL_H
#define TD_ANALYSE_TRAIL_H

#include <stddef.h>
#include <stdint.h>

enum { TD_TRAIL_POINTS = 256 };

struct td_trail_point {
    int64_t step; /* of the first value */
    double low, high, last;
};

struct td_trail {
    struct td_trail_point points[TD_TRAIL_POINTS];
    size_t count, most;      /* an even number of them, TD_TRAIL_POINTS at most */
    uint64_t stride, filled; /* values per bucket; of the last one so far */
};

void td_trail_init(struct td_trail *trail, size_t most);
void td_trail_add(struct td_trail *trail, int64_t step, double value);

#endif
