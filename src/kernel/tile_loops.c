/* tile_loops.c: rows of elements added up column by column; compiled once for every tier.
 *
 * Columns do not depend on each other, so the compiler makes vectors of any width out of these plain loops
 * and every tier rounds the same way. Comparisons with NaN are false: it passes by `high` and `low`, and is
 * noted apart.
 */
#include "kernel/element.h"
#include "kernel/tile.h"

#ifndef TD_TIER
#define TD_TIER scalar
#endif
#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_tiles_, tier)

/* Mapped elements may lie at any address. */
typedef float loose_float __attribute__((aligned(1), may_alias));
typedef uint16_t loose_half __attribute__((aligned(1), may_alias));

#define ADD_ROWS(value)                                            \
    double *restrict sum = out->sum;                               \
    float *restrict high = out->high, *restrict low = out->low;    \
    uint32_t *restrict nan = out->nan;                             \
    for (int64_t r = 0; r < rows; r++, p += pitch_a, q += pitch_b) \
        for (int64_t i = 0; i < columns; i++) {                    \
            double x = (value);                                    \
            float rounded = (float)x;                              \
            sum[i] += x;                                           \
            high[i] = rounded > high[i] ? rounded : high[i];       \
            low[i] = rounded < low[i] ? rounded : low[i];          \
            nan[i] |= rounded != rounded;                          \
        }

static void single(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                   int64_t columns, const struct td_columns *out)
{
    const loose_float *p = a, *q = b;
    ADD_ROWS((double)p[i])
}

static void dual(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                 int64_t columns, const struct td_columns *out)
{
    const loose_float *p = a, *q = b;
    ADD_ROWS((double)q[i] - (double)p[i])
}

static void single_wide(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                        int64_t columns, const struct td_columns *out)
{
    const double *p = a, *q = b;
    ADD_ROWS(p[i])
}

static void dual_wide(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                      int64_t columns, const struct td_columns *out)
{
    const double *p = a, *q = b;
    ADD_ROWS(q[i] - p[i])
}

static void widen_f16(const void *from, int64_t count, float *out)
{
    const loose_half *p = from;
    for (int64_t i = 0; i < count; i++)
        out[i] = td_f16_value(p[i]);
}

static void widen_bf16(const void *from, int64_t count, float *out)
{
    const loose_half *p = from;
    for (int64_t i = 0; i < count; i++)
        out[i] = td_bf16_value(p[i]);
}

const struct td_tile_kernels TIER_TABLE(TD_TIER) = {
    .single = single,
    .dual = dual,
    .single_wide = single_wide,
    .dual_wide = dual_wide,
    .widen_f16 = widen_f16,
    .widen_bf16 = widen_bf16,
};
