/* pair.h: the arithmetic of comparisons: what a block of element pairs comes to, and how blocks add up.
 *
 * The same plan as block.h: element i of a block adds to lane i % 16, the lanes combine as a tree, blocks and
 * chunks add up in index order. A pair of which one element is not finite adds to no sum; the elements after
 * it keep their lanes. Maxima and counts do not round: a tier may take them in any order.
 *
 * Two sums are not taken where they are known already:
 *
 * - a.b is half of a^2 + b^2 - d^2, whose terms there are. That keeps its digits unless most of a^2 + b^2
 *   cancels, so it counts where at least an eighth is left; else a.b is summed as it is (td_pair_product).
 * - Equal pairs add nothing to the sums of differences. 16-bit floats often round to the same value, so a
 *   whole block of them may be packed (td_pair_packs): of the pairs whose bits differ, taken in the order of
 *   td_pack_turn, number k adds to lane k % 16. Side b is then side a but for these pairs (td_pair_follow).
 *
 * A kernel answers for the statistics of both sides as well, because a vector tier that has the elements in
 * registers gets them for half of what loops of their own cost. They are those of block.h, to the bit, save
 * side b of a packed block.
 */
#ifndef TD_KERNEL_PAIR_H
#define TD_KERNEL_PAIR_H

#include "kernel/block.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <string.h>

/* What keeps a relative difference finite where a is zero. */
#define TD_REL_EPSILON 1e-8

/* Sums over |d|, |d| / (|a| + epsilon), d^2 and a b. */
enum td_pair_sum { TD_SUM_ABS, TD_SUM_REL, TD_SUM_SQUARE, TD_SUM_AB, TD_PAIR_SUMS };

/* The lane sums of a block. */
struct td_pair_lanes {
    double sum[TD_PAIR_SUMS][TD_LANES];
    double max_abs, max_rel, max_ulp; /* over the finite pairs; max_ulp only between equal float types */
    uint64_t unpaired;                /* one or both not finite */
    uint64_t differing;
    uint64_t nan_both, inf_same;
};

/* Pairs at the beginning of a block that tell whether it is packed. */
enum { TD_PACK_SAMPLE = 256 };

/* What some pairs come to. The squares of the sides are not summed where every pair is finite: the statistics
 * of a side know them (td_partial_squares). That is two of eight additions less. */
struct td_pair_partial {
    double sum[TD_PAIR_SUMS];
    double aa, bb; /* a^2 and b^2 over the finite pairs */
    double max_abs, max_rel, max_ulp;
    uint64_t count, unpaired, differing, nan_both, inf_same;
};

/* A block of pairs, and each side of it by itself. */
struct td_pair_block {
    struct td_partial a, b;       /* as the statistics of a tier have them */
    struct td_pair_partial pairs; /* without a^2 and b^2 */
};

/* At most TD_BLOCK_LENGTH pairs. */
typedef void td_pair_kernel(const void *a, const void *b, int64_t count, struct td_pair_block *out);

/* How many pairs have |a - b| > atol + rtol |a|, and whether any has a difference that is not at most `least`
 * (which is finite, so a pair of which one is not finite always has; the count is then of no use). */
struct td_beyond {
    uint64_t count;
    bool notable;
};

/* Whole rows: a multiple of TD_LANES. */
typedef struct td_beyond td_beyond_kernel(const void *a, const void *b, int64_t count, double rtol,
                                          double atol, double least);

/* One table per tier: loops for each pair of types that has them. Every other pair is converted to doubles.
 */
struct td_pair_kernels {
    td_pair_kernel *loop[TD_BF16 + 1][TD_BF16 + 1];
    td_beyond_kernel *beyond[TD_BF16 + 1][TD_BF16 + 1];
};

/* The pairs of a block alone, by the specification: for what vectors leave over. */
typedef void td_pair_lanes_kernel(const void *a, const void *b, int64_t count, struct td_pair_lanes *out);
extern td_pair_lanes_kernel *const td_pair_lanes_scalar[TD_BF16 + 1][TD_BF16 + 1];

extern const struct td_pair_kernels td_pairs_scalar, td_pairs_vector;
#if defined(__x86_64__)
extern const struct td_pair_kernels td_pairs_avx2, td_pairs_avx512;
#endif

/* Whether a block is gone over packed: at most half of its first pairs differ. */
static inline bool td_pair_packs(enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b,
                                 int64_t count)
{
    int differing = 0;
    if (ta != tb || (ta != TD_F16 && ta != TD_BF16) || count != TD_BLOCK_LENGTH)
        return false;
    for (int i = 0; i < TD_PACK_SAMPLE; i++) {
        uint16_t x, y;
        memcpy(&x, a + 2 * i, 2);
        memcpy(&y, b + 2 * i, 2);
        differing += x != y;
    }
    return differing <= TD_PACK_SAMPLE / 2;
}

/* The pair of a block whose turn is the k-th where it is packed: of each row the quarters 0 2 1 3, which is
 * how AVX2 interleaves two registers. */
static inline int64_t td_pack_turn(int64_t k)
{
    return (k & ~(int64_t)12) | (k & 4) << 1 | (k & 8) >> 1;
}

/* Adds a finite pair of which the difference is known to the sums of differences: `size` is |a|. */
static inline void td_pair_add_distance(struct td_pair_lanes *s, int64_t lane, double size, double d)
{
    double rel = d / (size + TD_REL_EPSILON);
    s->sum[TD_SUM_ABS][lane] += d;
    s->sum[TD_SUM_REL][lane] += rel;
    s->sum[TD_SUM_SQUARE][lane] += d * d;
    s->max_abs = d > s->max_abs ? d : s->max_abs;
    s->max_rel = rel > s->max_rel ? rel : s->max_rel;
}

/* Adds pair i of a block: the specification. Its difference goes to `lane`; `ulp` is the distance in units in
 * the last place, or 0. */
static inline void td_pair_add(struct td_pair_lanes *s, int64_t i, int64_t lane, double a, double b,
                               double ulp)
{
    bool finite = isfinite(a) && isfinite(b);
    if (!finite) {
        bool both_nan = isnan(a) && isnan(b);
        s->unpaired++;
        s->nan_both += both_nan;
        s->inf_same += isinf(a) && a == b;
        s->differing += !both_nan && a != b;
        return;
    }
    s->differing += a != b;
    s->sum[TD_SUM_AB][i % TD_LANES] += a * b;
    td_pair_add_distance(s, lane, fabs(a), fabs(a - b));
    s->max_ulp = ulp > s->max_ulp ? ulp : s->max_ulp;
}

/* Looks at one pair for td_beyond: the specification. */
static inline void td_beyond_add(struct td_beyond *s, double a, double b, double rtol, double atol,
                                 double least)
{
    double d = fabs(a - b);
    s->count += d > atol + rtol * fabs(a);
    s->notable |= !(d <= least);
}

static inline struct td_pair_partial td_pair_finish(const struct td_pair_lanes *s, int64_t count)
{
    struct td_pair_partial p = {.max_abs = s->max_abs,
                                .max_rel = s->max_rel,
                                .max_ulp = s->max_ulp,
                                .count = (uint64_t)count,
                                .unpaired = s->unpaired,
                                .differing = s->differing,
                                .nan_both = s->nan_both,
                                .inf_same = s->inf_same};
    for (int i = 0; i < TD_PAIR_SUMS; i++)
        p.sum[i] = td_lanes_combine(s->sum[i]);
    return p;
}

/* Adds the pairs of `next`, which come after those of `p`. */
static inline void td_pair_merge(struct td_pair_partial *p, const struct td_pair_partial *next)
{
    for (int i = 0; i < TD_PAIR_SUMS; i++)
        p->sum[i] += next->sum[i];
    p->aa += next->aa;
    p->bb += next->bb;
    p->max_abs = next->max_abs > p->max_abs ? next->max_abs : p->max_abs;
    p->max_rel = next->max_rel > p->max_rel ? next->max_rel : p->max_rel;
    p->max_ulp = next->max_ulp > p->max_ulp ? next->max_ulp : p->max_ulp;
    p->count += next->count;
    p->unpaired += next->unpaired;
    p->differing += next->differing;
    p->nan_both += next->nan_both;
    p->inf_same += next->inf_same;
}

/* The sum of the squares of all finite elements. */
static inline double td_partial_squares(const struct td_partial *p)
{
    double mean = p->mean + p->rest;
    return p->finite ? p->m2 + (double)p->finite * (mean * mean) : 0;
}

/* a.b of a block of finite pairs, from the sums of squares; false where too little of them is left. */
static inline bool td_pair_product(struct td_pair_block *block)
{
    double squares = td_partial_squares(&block->a) + td_partial_squares(&block->b);
    double product = (squares - block->pairs.sum[TD_SUM_SQUARE]) / 2;
    if (block->pairs.unpaired > 0 || !(product >= squares / 8))
        return false;
    block->pairs.sum[TD_SUM_AB] = product;
    return true;
}

/* How side b of a packed block differs from side a, which is summed around `shift` (block.h): sums over d and
 * d (a - shift). */
enum td_pair_move { TD_MOVE_SUM, TD_MOVE_PRODUCT, TD_PAIR_MOVES };

static inline void td_pair_move(double lanes[TD_PAIR_MOVES][TD_LANES], int64_t lane, double a, double b,
                                double shift)
{
    double d = a - b;
    lanes[TD_MOVE_SUM][lane] += d;
    lanes[TD_MOVE_PRODUCT][lane] += d * (a - shift);
}

/* The mean and spread of side b, of which all else is there, from side a and the differences: (b - m)^2 is
 * (a - m)^2 - 2 d (a - m) + d^2. False where next to nothing of the spread of a is left, and so of its
 * digits.
 */
static inline bool td_pair_follow(struct td_partial *b, const struct td_partial *a, double shift,
                                  double lanes[TD_PAIR_MOVES][TD_LANES], double squares)
{
    double sum = td_lanes_combine(lanes[TD_MOVE_SUM]), step = sum / (double)a->finite;
    double product = td_lanes_combine(lanes[TD_MOVE_PRODUCT]) - ((a->mean - shift) + a->rest) * sum;
    double m2 = a->m2 - 2 * product + squares - sum * step;
    if (!(m2 >= a->m2 / 64))
        return false;
    b->mean = b->min;
    b->rest = b->m2 = 0;
    if (b->min < b->max) {
        b->mean = a->mean;
        b->rest = a->rest;
        td_mean_move(b, -step);
        b->m2 = m2;
    }
    return true;
}

/* Floats of one type by their bits: neighbours are one apart, both zeros are 0. `bits` are sign-extended. */
static inline int64_t td_float_order(int64_t bits, int64_t sign)
{
    return bits < 0 ? sign - bits : bits;
}

#endif
