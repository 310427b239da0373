/* compare.h: two operands of the same shape, element by element.
 *
 * td_measure is the one fused pass every pair pays for: all metrics from one read of both sides, whatever
 * their types and strides, in double precision. td_examine is the second look that only pairs worth a look
 * get: the elements beyond a tolerance, and the worst of all. Both give the same bits on every tier
 * and thread count (fixed blocks, fixed order of combination; see stats.h).
 *
 * Over the pairs in which both elements are finite, d = a - b:
 *
 *     max_abs  max |d|                      mse      mean d^2
 *     mean_abs mean |d|                     rel_l2   |d| / |a|        (norms; 0/0 is 0, x/0 is inf)
 *     max_rel  max |d| / (|a| + 1e-8)       cosine   a.b / (|a| |b|)  (two zero vectors: 1, one: 0)
 *     mean_rel mean of the same             snr_db   20 log10(|a| / |d|), inf when d is 0
 *
 * Complex elements: |d| is the modulus of the difference; a.b is the real part of the inner product.
 */
#ifndef TD_KERNEL_COMPARE_H
#define TD_KERNEL_COMPARE_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/operand.h"

struct td_metrics {
    uint64_t count;                                          /* elements */
    uint64_t paired;                                         /* both sides finite */
    uint64_t nan_a, nan_b, nan_both, inf_a, inf_b, inf_same; /* inf_same: both infinite with the same sign */
    uint64_t differing; /* elements whose values differ (NaN equals NaN, 0 equals -0) */
    double max_abs, mean_abs, max_rel, mean_rel, mse, rmse, cosine, rel_l2, snr_db;
    int64_t argmax; /* row-major index of max_abs (the first one), -1 when nothing is paired */
    double argmax_a, argmax_b;
    double max_ulp;         /* same plain float type on both sides: units in the last place; else NaN */
    struct tdbg_stats a, b; /* each side by itself */
    double dot, norm_d;     /* a.b and |d|, for whoever wants to go on from here */
};

TD_CHECK tdbg_status td_measure(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                                struct td_job *job, struct td_metrics *out, struct tdbg_error *error);

/* Places where neither side is finite and the two are not the same: NaN against an infinity, or infinities of
 * opposite signs. What is finite on no or one side is counted in both sums, so the places of two follow. */
static inline uint64_t td_metrics_mixed(const struct td_metrics *m)
{
    uint64_t either = m->count - m->paired, sum = m->nan_a + m->inf_a + m->nan_b + m->inf_b;
    return sum - either - m->nan_both - m->inf_same;
}

/* Places where a NaN or an infinity of one side is not on the other. */
static inline uint64_t td_metrics_lost(const struct td_metrics *m)
{
    return m->count - m->paired - m->nan_both - m->inf_same;
}

/* The same of values that were read already, on the calling thread. */
TD_CHECK tdbg_status td_measure_doubles(const double *a, const double *b, int64_t count,
                                        struct td_metrics *out, struct tdbg_error *error);

/* |a - b| <= atol + rtol * |a| is within. A NaN or infinity that the other side does not share is beyond. */
struct td_tolerance {
    double rtol, atol;
};

struct td_worst {
    int64_t index; /* row-major */
    double a, b;
    double difference; /* b - a; of complex numbers, and of integers that no double tells apart, its size */
};

struct td_examination {
    uint64_t beyond;
    int worst_count;
    struct td_worst *worst; /* largest |d| first, ties by index; one-sided NaN or Inf before all */
};

/* The worst elements are allocated from `arena`. */
TD_CHECK tdbg_status td_examine(const struct td_operand *a, const struct td_operand *b,
                                struct td_tolerance tolerance, int worst, struct td_pool *pool,
                                struct td_job *job, struct td_arena *arena, struct td_examination *out,
                                struct tdbg_error *error);

/* Axes longer than this together get no profile: nobody reads a million bars. */
#define TD_MAX_PROFILE (INT64_C(1) << 16)

/* Where the error sits: for every axis in turn, for each of its indices, the sum of d^2 over the finite pairs
 * with that index; and then, likewise, the sum of a^2. One array from `arena`, axis behind axis and behind
 * all errors all powers; NULL where there is nothing to tell or too much. */
TD_CHECK tdbg_status td_profile(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                                struct td_job *job, struct td_arena *arena, const double **out,
                                struct tdbg_error *error);

/* The same axis by axis, without those that have more than `most` indices: they get NULL. */
TD_CHECK tdbg_status td_profile_sides(const struct td_operand *a, const struct td_operand *b, int64_t most,
                                      struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                                      const double *errors[TD_MAX_DIMS], const double *powers[TD_MAX_DIMS],
                                      struct tdbg_error *error);

/* The errors alone. */
TD_CHECK tdbg_status td_profile_axes(const struct td_operand *a, const struct td_operand *b, int64_t most,
                                     struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                                     const double *axes[TD_MAX_DIMS], struct tdbg_error *error);

/* Elements [start, start + count) of the operand in row-major order, as doubles (complex: the modulus). */
TD_CHECK tdbg_status td_operand_load(const struct td_operand *operand, int64_t start, int64_t count,
                                     double *out, struct tdbg_error *error);

/* The elements at the given row-major indices, as doubles. */
TD_CHECK tdbg_status td_operand_gather(const struct td_operand *operand, const int64_t *indices, int count,
                                       double *out, struct tdbg_error *error);

#endif
