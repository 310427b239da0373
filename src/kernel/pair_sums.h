/* pair_sums.h: what the loops of a vector tier add pairs up in, and how one vector of pairs is added.
 *
 * Sums live in registers while a loop runs, and here in between: a row of vectors for each, as lanes of
 * pair.h. All that does not round (maxima, counts, what is seen) has one vector for all columns.
 */
#ifndef TD_KERNEL_PAIR_SUMS_H
#define TD_KERNEL_PAIR_SUMS_H

#include "kernel/look.h"
#include "kernel/pair.h"
#include "kernel/quotient.h"
#include "kernel/ulps.h"

/* The sums of a column: those of the differences, then d and d^2 of each side around its shift. */
enum { TD_SUM_A1 = TD_SUM_AB, TD_SUM_A2, TD_SUM_B1, TD_SUM_B2, TD_COLUMN_SUMS };

struct td_pair_sums {
    struct td_doubles v[TD_COLUMN_SUMS]; /* set by the first tile */
    td_vd max_abs, max_rel;
    td_vi64 max_ulp_wide; /* with the sign flipped, so that a signed comparison orders unsigned numbers */
    td_vi64 differing;    /* counted downwards */
    struct td_ulps ulps;
    struct td_seen a, b;
    bool by_words; /* whether float32 are looked at by their bits; what is seen then ends up in a and b */
    struct td_seen_words words_a, words_b;
    double shift_a, shift_b;
};

TD_INLINE td_vd td_vd_absolute(td_vd x)
{
    return (td_vd)((td_vi64)x & INT64_MAX);
}

TD_INLINE int64_t td_width(enum td_dtype dtype)
{
    return dtype == TD_F64 ? 8 : dtype == TD_F32 ? 4 : 2;
}

/* d and d^2 of one side. The square of what is not shifted is exact where the type is not float64. */
TD_INLINE void td_add_side(td_vd sum[2], enum td_dtype dtype, td_vd x, double shift, bool shifted, bool aside)
{
    td_vd d = shifted ? x - td_vd_all(shift) : x;
    sum[0] = aside ? td_vd_add_aside(d, sum[0]) : sum[0] + d;
    sum[1] = shifted || dtype == TD_F64 ? sum[1] + d * d : td_vd_exact_fma(d, d, sum[1]);
}

/* The difference of a vector of pairs, added to the sums of a column; |d|. `exact`: d^2 is. `aside`: it is
 * not the divider that divides. */
TD_INLINE td_vd td_add_distances(td_vd sum[TD_SUM_AB], td_vd *max_abs, td_vd *max_rel, td_vd x, td_vd y,
                                 bool exact, bool aside)
{
    td_vd d = td_vd_absolute(x - y), size = td_vd_absolute(x) + td_vd_all(TD_REL_EPSILON);
    sum[TD_SUM_ABS] += d;
    sum[TD_SUM_SQUARE] = exact ? td_vd_exact_fma(d, d, sum[TD_SUM_SQUARE]) : sum[TD_SUM_SQUARE] + d * d;
    *max_abs = td_vd_max(d, *max_abs);
    td_vd rel = aside ? td_vd_quotient_aside(d, size) : d / size;
    sum[TD_SUM_REL] += rel;
    *max_rel = td_vd_max(rel, *max_rel);
    return d;
}

#endif
