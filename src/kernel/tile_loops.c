/* tile_loops.c: rows of elements added up column by column; compiled once for every tier.
 *
 * Columns do not depend on each other, so the compiler makes vectors of any width out of these plain loops
 * and every tier rounds the same way. Comparisons with NaN are false: it passes by `high` and `low`, and is
 * noted apart.
 */
#include "kernel/element.h"
#include "kernel/tile.h"

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

DEFINE_ROWS(single, 4, td_f32_at(p + 4 * i))
DEFINE_ROWS(dual, 4, td_f32_at(q + 4 * i) - td_f32_at(p + 4 * i))
DEFINE_ROWS(single_wide, 8, td_f64_at(p + 8 * i))
DEFINE_ROWS(dual_wide, 8, td_f64_at(q + 8 * i) - td_f64_at(p + 8 * i))

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
    .single = single,
    .dual = dual,
    .single_wide = single_wide,
    .dual_wide = dual_wide,
    .halve = halve,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
};
