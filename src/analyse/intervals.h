/* intervals.h: how much time is covered by intervals that may overlap, in bounded memory.
 *
 * Disjoint intervals in order; a new one swallows those it touches. When they become too many, neighbours
 * with the smallest gaps between them become one, which remembers how much of it is gaps. What lies over it
 * later fills them in proportion: the answer is exact up to TD_INTERVALS pieces, and beyond while threads do
 * not take turns within pieces that were joined.
 */
#ifndef TD_ANALYSE_INTERVALS_H
#define TD_ANALYSE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TD_INTERVALS = 16384 };

struct td_interval {
    int64_t begin, end;
    int64_t gaps; /* of its length */
};

struct td_intervals {
    struct td_interval *items; /* NULL until the first */
    size_t count;
};

/* False when memory ran out. */
bool td_intervals_add(struct td_intervals *set, int64_t begin, int64_t end);
int64_t td_intervals_covered(const struct td_intervals *set);

/* Of [begin, end). */
int64_t td_intervals_within(const struct td_intervals *set, int64_t begin, int64_t end);
void td_intervals_release(struct td_intervals *set);

#endif
