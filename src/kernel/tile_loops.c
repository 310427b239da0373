/* tile_loops.c: rows of elements added up column by column; compiled once for every tier.
 *
 * Columns do not depend on each other, so the compiler makes vectors of any width out of these plain loops
 * and every tier rounds the same way. Comparisons with NaN are false: it passes by `high` and `low`, and is
 * noted apart.
 *
 * What the plain loops add to is five times as large as what they read. So the vector tiers take float32
 * eight rows at a time, a few columns wide, and keep what those add to in registers meanwhile.
 */
#include "kernel/element.h"
#include "kernel/tile.h"

#include <math.h>
#include <string.h>

#ifdef TD_VECTOR_BYTES
#include "kernel/lanes.h"
#endif

#ifndef TD_TIER
#define TD_TIER scalar
#endif
#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_tiles_, tier)

/* Defines <name>, and <name>_row for one row; `value` is an expression of the element numbered `i`. The row
 * is a function of its own because only there gcc believes that nothing overlaps. */
#define DEFINE_ROWS(name, size, value)                                                               \
    static __attribute__((noinline)) void name##_row(                                                \
        const uint8_t *restrict p, const uint8_t *restrict q, int64_t columns, double *restrict sum, \
        float *restrict high, float *restrict low, uint32_t *restrict nan)                           \
    {                                                                                                \
        (void)q;                                                                                     \
        for (int64_t i = 0; i < columns; i++) {                                                      \
            double x = (value);                                                                      \
            float rounded = (float)x;                                                                \
            sum[i] += x;                                                                             \
            high[i] = rounded > high[i] ? rounded : high[i];                                         \
            low[i] = rounded < low[i] ? rounded : low[i];                                            \
            nan[i] |= rounded != rounded;                                                            \
        }                                                                                            \
    }                                                                                                \
    static void name(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,   \
                     int64_t columns, const struct td_columns *out)                                  \
    {                                                                                                \
        const uint8_t *p = a, *q = b;                                                                \
        for (int64_t r = 0; r < rows; r++, p += pitch_a * (size), q += pitch_b * (size))             \
            name##_row(p, q, columns, out->sum, out->high, out->low, out->nan);                      \
    }

DEFINE_ROWS(single_plain, 4, td_f32_at(p + 4 * i))
DEFINE_ROWS(dual_plain, 4, td_difference(td_f32_at(p + 4 * i), td_f32_at(q + 4 * i)))
DEFINE_ROWS(single_wide, 8, td_f64_at(p + 8 * i))
DEFINE_ROWS(dual_wide, 8, td_difference(td_f64_at(p + 8 * i), td_f64_at(q + 8 * i)))

/* --- float32 in registers ------------------------------------------------------------------------------- */

#ifdef TD_VECTOR_BYTES

enum { ROWS = 8, DUAL = 2 * TD_PER_DOUBLES };

/* `rows` rows of sixteen columns. */
TD_INLINE void single_block(const uint8_t *p, int64_t step, int64_t rows, double *sums, float *highs,
                            float *lows, uint32_t *nans)
{
    struct td_doubles sum = td_doubles_load((const uint8_t *)sums);
    struct td_floats high = td_floats_load(TD_F32, (const uint8_t *)highs);
    struct td_floats low = td_floats_load(TD_F32, (const uint8_t *)lows);
    td_vi32 nan[TD_ROW_FLOATS] = {{0}};
    for (int64_t r = 0; r < rows; r++, p += step)
        for (int i = 0; i < TD_ROW_FLOATS; i++) {
            const uint8_t *at = p + i * TD_VECTOR_BYTES;
            td_vf x = td_vf_load(TD_F32, at);
            sum.v[2 * i] += td_vd_load_f32(at);
            sum.v[2 * i + 1] += td_vd_load_f32(at + TD_VECTOR_BYTES / 2);
            high.v[i] = td_vf_max(x, high.v[i]);
            low.v[i] = td_vf_min(x, low.v[i]);
            nan[i] |= x != x;
        }
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        *(td_vd_loose *)(sums + i * TD_PER_DOUBLES) = sum.v[i];
    for (int i = 0; i < TD_ROW_FLOATS; i++) {
        *(td_vf_loose *)(highs + i * TD_PER_FLOATS) = high.v[i];
        *(td_vf_loose *)(lows + i * TD_PER_FLOATS) = low.v[i];
        *(td_vu32_loose *)(nans + i * TD_PER_FLOATS) |= (td_vu32)nan[i];
    }
}

/* `rows` rows of DUAL columns. A difference of floats is no smaller than the smallest float, or zero; so the
 * largest of those rounded to float32 is the largest, rounded. */
TD_INLINE void dual_block(const uint8_t *p, int64_t step_p, const uint8_t *q, int64_t step_q, int64_t rows,
                          double *sums, float *highs, float *lows, uint32_t *nans)
{
    td_vd sum[2], high[2], low[2];
    td_vi64 nan[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        sum[i] = *(const td_vd_loose *)(sums + i * TD_PER_DOUBLES);
        high[i] = td_vd_load_f32((const uint8_t *)(highs + i * TD_PER_DOUBLES));
        low[i] = td_vd_load_f32((const uint8_t *)(lows + i * TD_PER_DOUBLES));
    }
    for (int64_t r = 0; r < rows; r++, p += step_p, q += step_q)
        for (int i = 0; i < 2; i++) {
            int64_t at = i * (TD_VECTOR_BYTES / 2);
            td_vd a = td_vd_load_f32(p + at), b = td_vd_load_f32(q + at);
            td_vd x = (td_vd)((td_vi64)(b - a) & (a != b)); /* td_difference */
            sum[i] += x;
            high[i] = td_vd_max(x, high[i]);
            low[i] = td_vd_min(x, low[i]);
            nan[i] |= x != x;
        }
    for (int i = 0; i < 2; i++) {
        *(td_vd_loose *)(sums + i * TD_PER_DOUBLES) = sum[i];
        *(td_vf_half_loose *)(highs + i * TD_PER_DOUBLES) =
            __builtin_convertvector(high[i], td_vf_half_loose);
        *(td_vf_half_loose *)(lows + i * TD_PER_DOUBLES) = __builtin_convertvector(low[i], td_vf_half_loose);
        for (int k = 0; k < TD_PER_DOUBLES; k++)
            nans[i * TD_PER_DOUBLES + k] |= (uint32_t)nan[i][k];
    }
}

static void single_fast(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                        int64_t columns, const struct td_columns *out)
{
    int64_t whole = columns / TD_LANES * TD_LANES;
    const uint8_t *p = a;
    for (int64_t r = 0; r < rows; r += ROWS, p += ROWS * pitch_a * 4)
        for (int64_t c = 0; c < whole; c += TD_LANES) {
            double *sum = out->sum + c;
            if (rows - r >= ROWS)
                single_block(p + 4 * c, pitch_a * 4, ROWS, sum, out->high + c, out->low + c, out->nan + c);
            else
                single_block(p + 4 * c, pitch_a * 4, rows - r, sum, out->high + c, out->low + c,
                             out->nan + c);
        }
    const struct td_columns rest = {out->sum + whole, out->high + whole, out->low + whole, out->nan + whole};
    if (whole < columns)
        single_plain((const uint8_t *)a + 4 * whole, pitch_a, b, pitch_b, rows, columns - whole, &rest);
}

static void dual_fast(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                      int64_t columns, const struct td_columns *out)
{
    int64_t whole = columns / DUAL * DUAL;
    const uint8_t *p = a, *q = b;
    for (int64_t r = 0; r < rows; r += ROWS, p += ROWS * pitch_a * 4, q += ROWS * pitch_b * 4)
        for (int64_t c = 0; c < whole; c += DUAL) {
            int64_t n = rows - r < ROWS ? rows - r : ROWS;
            dual_block(p + 4 * c, pitch_a * 4, q + 4 * c, pitch_b * 4, n, out->sum + c, out->high + c,
                       out->low + c, out->nan + c);
        }
    const struct td_columns rest = {out->sum + whole, out->high + whole, out->low + whole, out->nan + whole};
    if (whole < columns)
        dual_plain((const uint8_t *)a + 4 * whole, pitch_a, (const uint8_t *)b + 4 * whole, pitch_b, rows,
                   columns - whole, &rest);
}

#else
#define single_fast single_plain
#define dual_fast dual_plain
#endif

/* No element yet. */
static void clear(const struct td_columns *columns, int64_t count)
{
    double *restrict sum = columns->sum;
    float *restrict high = columns->high, *restrict low = columns->low;
    for (int64_t i = 0; i < count; i++)
        sum[i] = 0;
    for (int64_t i = 0; i < count; i++)
        high[i] = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        low[i] = INFINITY;
    memset(columns->nan, 0, (size_t)count * sizeof *columns->nan);
}

/* Pairs of neighbours become one; a last one without a neighbour stays. */
static void halve(const struct td_columns *from, int64_t columns, const struct td_columns *to)
{
    const double *restrict sum = from->sum;
    const float *restrict high = from->high, *restrict low = from->low;
    const uint32_t *restrict nan = from->nan;
    double *restrict sum_to = to->sum;
    float *restrict high_to = to->high, *restrict low_to = to->low;
    uint32_t *restrict nan_to = to->nan;
    int64_t pairs = columns / 2;
    for (int64_t i = 0; i < pairs; i++)
        sum_to[i] = sum[2 * i] + sum[2 * i + 1];
    for (int64_t i = 0; i < pairs; i++)
        high_to[i] = high[2 * i] > high[2 * i + 1] ? high[2 * i] : high[2 * i + 1];
    for (int64_t i = 0; i < pairs; i++)
        low_to[i] = low[2 * i] < low[2 * i + 1] ? low[2 * i] : low[2 * i + 1];
    for (int64_t i = 0; i < pairs; i++)
        nan_to[i] = nan[2 * i] | nan[2 * i + 1];
    if (columns % 2) {
        sum_to[pairs] = sum[columns - 1];
        high_to[pairs] = high[columns - 1];
        low_to[pairs] = low[columns - 1];
        nan_to[pairs] = nan[columns - 1];
    }
}

/* Whole vectors first, where the tier has any: no compiler finds F16C behind td_f16_value. */
static inline __attribute__((always_inline)) void widen(enum td_dtype dtype, const uint8_t *p, int64_t count,
                                                        float *out)
{
    int64_t i = 0;
#ifdef TD_VECTOR_BYTES
    for (; i + TD_PER_FLOATS <= count; i += TD_PER_FLOATS)
        *(td_vf_loose *)(out + i) = td_vf_load(dtype, p + 2 * i);
#endif
    for (; i < count; i++)
        out[i] = (float)(dtype == TD_F16 ? td_f16_at(p + 2 * i) : td_bf16_at(p + 2 * i));
}

static void widen_f16(const void *from, int64_t count, float *out)
{
    widen(TD_F16, from, count, out);
}

static void widen_bf16(const void *from, int64_t count, float *out)
{
    widen(TD_BF16, from, count, out);
}

const struct td_tile_kernels TIER_TABLE(TD_TIER) = {
    .clear = clear,
    .single = single_fast,
    .dual = dual_fast,
    .single_wide = single_wide,
    .dual_wide = dual_wide,
    .halve = halve,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
};
