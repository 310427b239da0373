/* block.h: the arithmetic of statistics: what a block of elements comes to, and how blocks add up.
 *
 * The order of every rounded operation is fixed here, which is what makes the answer the same bits on every
 * tier and thread count:
 *
 *     elements in row-major order   0 ........... 16383 | 16384 ....... 32767 | ...
 *     element i of a block          adds to lane i % 16
 *     lanes                         combine as a tree: 16 -> 8 -> 4 -> 2 -> 1
 *     blocks of a chunk (16)        merge in index order
 *     chunks                        merge in index order
 *
 * Within a block, sums run over d = x - shift. With s1 = sum d and s2 = sum d^2, mean = shift + s1/n and
 * M2 = s2 - s1^2/n. What the subtraction costs in precision is s2 / M2 = 1 + n (mean - shift)^2 / M2: without
 * a shift, 1e8 + noise would have no digit left. The shift is taken from a sample of k = 64 values, with mean
 * c and sum of squares around it M2k <= M2. The mean of k of the values is no further from the mean of all
 * than sqrt(M2 / k). So with shift = c the ratio is at most 1 + n/k = 257; and where c^2 <= M2k / k, that is
 * where the mean is no larger than the spread, mean^2 <= 2 c^2 + 2 M2/k <= 4 M2/k, the ratio with shift = 0
 * is at most 1 + 4n/k = 1025. Either way two or three digits of sixteen go, whatever the data. (Where values
 * are not finite the sample may be smaller.) Minimum, maximum and counts do not round: a tier may take them
 * in any order.
 */
#ifndef TD_KERNEL_BLOCK_H
#define TD_KERNEL_BLOCK_H

#include <math.h>
#include <stdint.h>

/* A block is short enough for two of float32 to stay in L2 while they are gone over, and long enough for what
 * a block costs by itself to be a few percent: with half as many elements, comparisons of bfloat16 take 5 %
 * longer. */
enum { TD_LANES = 16, TD_SHIFT_SAMPLE = 64, TD_BLOCK_LENGTH = 16384, TD_CHUNK_LENGTH = 16 * TD_BLOCK_LENGTH };

/* What some elements come to. min > max where none is finite. */
struct td_partial {
    uint64_t finite, nan, inf, zeros;
    double mean, rest; /* the mean is their sum: half a unit in the last place of 1e12 is more than the means
                          of two blocks of 1e12 + noise differ by */
    double m2;         /* the sum of squares around the mean */
    double min, max;
};

#define TD_PARTIAL_EMPTY ((struct td_partial){.min = (double)INFINITY, .max = -(double)INFINITY})

/* The lane sums of a block, before they become a partial. */
struct td_sums {
    double shift;
    double s1[TD_LANES], s2[TD_LANES];
    double min, max;
    uint64_t nan, inf, zeros;
};

static inline double td_lanes_combine(const double lanes[TD_LANES])
{
    double sum[TD_LANES / 2];
    for (int i = 0; i < TD_LANES / 2; i++)
        sum[i] = lanes[i] + lanes[i + TD_LANES / 2];
    for (int width = TD_LANES / 4; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            sum[i] += sum[i + width];
    return sum[0];
}

/* mean += step, keeping what the addition rounds off (Knuth's two-sum). */
static inline void td_mean_move(struct td_partial *p, double step)
{
    double total = p->mean + step, back = total - p->mean;
    p->rest += (p->mean - (total - back)) + (step - back);
    p->mean = total;
}

/* Adds one value to a lane; what is not finite is counted and left out. */
static inline __attribute__((always_inline)) void td_sums_add(struct td_sums *s, int64_t lane, double x)
{
    if (!isfinite(x)) {
        *(isnan(x) ? &s->nan : &s->inf) += 1;
        return;
    }
    double d = x - s->shift;
    s->s1[lane] += d;
    s->s2[lane] += d * d;
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
    s->zeros += x == 0 ? 1 : 0;
}

/* A block that holds one value only is that value: rounding of the shift must not give it a spread. */
static inline struct td_partial td_sums_finish(const struct td_sums *sums, int64_t count)
{
    double min = sums->min + 0.0, max = sums->max + 0.0; /* -0 becomes 0: which zero came first is chance */
    struct td_partial p = {.finite = (uint64_t)count - sums->nan - sums->inf,
                           .nan = sums->nan,
                           .inf = sums->inf,
                           .zeros = sums->zeros,
                           .mean = min,
                           .min = min,
                           .max = max};
    if (min < max) {
        double n = (double)p.finite, s1 = td_lanes_combine(sums->s1), s2 = td_lanes_combine(sums->s2);
        double m2 = s2 - s1 * (s1 / n);
        p.mean = sums->shift;
        td_mean_move(&p, s1 / n);
        p.m2 = m2 < 0 ? 0 : m2;
    }
    return p;
}

/* Adds the elements of `next`, which come after those of `p` (Chan, Golub and LeVeque's update). */
static inline void td_partial_merge(struct td_partial *p, const struct td_partial *next)
{
    p->nan += next->nan;
    p->inf += next->inf;
    if (next->finite == 0)
        return;
    if (p->finite == 0) {
        uint64_t nan = p->nan, inf = p->inf;
        *p = *next;
        p->nan = nan;
        p->inf = inf;
        return;
    }
    double before = (double)p->finite, share = (double)next->finite / (double)(p->finite + next->finite);
    double delta = (next->mean - p->mean) + (next->rest - p->rest);
    td_mean_move(p, delta * share);
    p->m2 += next->m2 + delta * delta * (before * share);
    p->finite += next->finite;
    p->zeros += next->zeros;
    p->min = next->min < p->min ? next->min : p->min;
    p->max = next->max > p->max ? next->max : p->max;
}

#endif
