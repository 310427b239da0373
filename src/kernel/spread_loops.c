/* spread_loops.c: see spread.h; compiled once for every tier.
 *
 * The scalar tier is the specification: one pair after the other. The vector tiers take a row of sixteen
 * pairs at a time, column by column of vectors; 16-bit types are first put down as floats, a tile that stays
 * in L1. What a row leaves over is added by the specification. Memory is asked for ahead, because the CPU's
 * own prefetching stops at the end of each page.
 */
#include "kernel/spread.h"

#include "kernel/element.h"

#include <math.h>

#ifdef TD_VECTOR_BYTES
#include "kernel/lanes.h"
#endif

#ifndef TD_TIER
#define TD_TIER scalar
#endif
#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_spreads_, tier)

#define INLINE static inline __attribute__((always_inline))

enum { ERROR, POWER, SUMS };

INLINE int64_t width(enum td_dtype dtype)
{
    return dtype == TD_F64 ? 8 : dtype == TD_F32 ? 4 : 2;
}

INLINE double value(enum td_dtype dtype, const uint8_t *p)
{
    return dtype == TD_F64   ? td_f64_at(p)
           : dtype == TD_F32 ? td_f32_at(p)
           : dtype == TD_F16 ? td_f16_at(p)
                             : td_bf16_at(p);
}

INLINE double square(double x)
{
    return isfinite(x) ? x * x : 0;
}

/* Pairs [from, count): the specification. */
INLINE void add_pairs(double lanes[SUMS][TD_LANES], enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                      const uint8_t *b, int64_t from, int64_t count, double *error, double *power)
{
    for (int64_t i = from; i < count; i++) {
        double x = value(ta, a + i * width(ta)), y = value(tb, b + i * width(tb));
        double e = square(x - y), p = square(x);
        error[i] += e;
        power[i] += p;
        lanes[ERROR][i % TD_LANES] += e;
        lanes[POWER][i % TD_LANES] += p;
    }
}

#ifdef TD_VECTOR_BYTES

/* Rows: 4 KiB of floats on each side; and bytes ahead. */
enum { TILE = 64, AHEAD = 4096 };

INLINE const uint8_t *widen_rows(enum td_dtype dtype, const uint8_t *p, int64_t rows, float *space)
{
    if (dtype == TD_F64 || dtype == TD_F32)
        return p;
    for (int64_t at = 0; at < rows * TD_LANES; at += TD_LANES)
        td_stage(dtype, p + at * 2, space + at);
    return (const uint8_t *)space;
}

INLINE td_vd squares(td_vd x)
{
    return (td_vd)((td_vi64)(x * x) & td_vd_finite(x));
}

INLINE void add_to(double *at, td_vd x)
{
    *(td_vd_loose *)at += x;
}

INLINE void add_rows(double lanes[SUMS][TD_LANES], enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                     const uint8_t *b, int64_t rows, double *error, double *power)
{
    float space[2][TILE * TD_LANES];
    struct td_doubles sum[SUMS] = {{{{0}}}};
    for (int64_t row = 0; row < rows; row += TILE) {
        int64_t start = row * TD_LANES, end = (rows - row < TILE ? rows - row : TILE) * TD_LANES;
        const uint8_t *p = widen_rows(ta, a + start * width(ta), end / TD_LANES, space[0]);
        const uint8_t *q = widen_rows(tb, b + start * width(tb), end / TD_LANES, space[1]);
        for (int64_t at = 0; at < end; at += TD_LANES) {
            __builtin_prefetch(a + (start + at) * width(ta) + AHEAD);
            __builtin_prefetch(b + (start + at) * width(tb) + AHEAD);
            for (int c = 0; c < TD_ROW_DOUBLES; c++) {
                td_vd x = td_column_load(ta, p, at, c);
                td_vd e = squares(x - td_column_load(tb, q, at, c)), o = squares(x);
                add_to(error + start + at + c * TD_PER_DOUBLES, e);
                add_to(power + start + at + c * TD_PER_DOUBLES, o);
                sum[ERROR].v[c] += e;
                sum[POWER].v[c] += o;
            }
        }
    }
    for (int k = 0; k < SUMS; k++)
        for (int c = 0; c < TD_ROW_DOUBLES; c++)
            add_to(&lanes[k][c * TD_PER_DOUBLES], sum[k].v[c]);
}

#endif

INLINE struct td_spread spread(enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b,
                               int64_t count, double *error, double *power)
{
    double lanes[SUMS][TD_LANES] = {{0}};
    int64_t taken = 0;
#ifdef TD_VECTOR_BYTES
    add_rows(lanes, ta, a, tb, b, count / TD_LANES, error, power);
    taken = count / TD_LANES * TD_LANES;
#endif
    add_pairs(lanes, ta, a, tb, b, taken, count, error, power);
    return (struct td_spread){td_lanes_combine(lanes[ERROR]), td_lanes_combine(lanes[POWER])};
}

#define SPREAD(name, ta, tb)                                                                                \
    static struct td_spread name(const void *a, const void *b, int64_t count, double *error, double *power) \
    {                                                                                                       \
        return spread(ta, a, tb, b, count, error, power);                                                   \
    }

SPREAD(f64_f64, TD_F64, TD_F64)
SPREAD(f32_f32, TD_F32, TD_F32)
SPREAD(f32_f16, TD_F32, TD_F16)
SPREAD(f32_bf16, TD_F32, TD_BF16)
SPREAD(f16_f32, TD_F16, TD_F32)
SPREAD(f16_f16, TD_F16, TD_F16)
SPREAD(f16_bf16, TD_F16, TD_BF16)
SPREAD(bf16_f32, TD_BF16, TD_F32)
SPREAD(bf16_f16, TD_BF16, TD_F16)
SPREAD(bf16_bf16, TD_BF16, TD_BF16)

const struct td_spread_kernels TIER_TABLE(TD_TIER) = {
    .loop =
        {
            [TD_F64] = {[TD_F64] = f64_f64},
            [TD_F32] = {[TD_F32] = f32_f32, [TD_F16] = f32_f16, [TD_BF16] = f32_bf16},
            [TD_F16] = {[TD_F32] = f16_f32, [TD_F16] = f16_f16, [TD_BF16] = f16_bf16},
            [TD_BF16] = {[TD_F32] = bf16_f32, [TD_F16] = bf16_f16, [TD_BF16] = bf16_bf16},
        },
};
