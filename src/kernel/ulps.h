/* ulps.h: how many representable values lie between floats of one type, for whole vectors of their bits.
 *
 * The bits of a float, taken as sign and magnitude, count its place among all floats of its type
 * (td_float_order); the distance of two is at most all bits ones, so lanes as wide as the type hold it. Pairs
 * of different value are those at a distance, which counts them for free.
 */
#ifndef TD_KERNEL_ULPS_H
#define TD_KERNEL_ULPS_H

#include "kernel/lanes.h"
#include "kernel/pair.h"

typedef uint16_t td_vu16 __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef int32_t td_vi32_loose __attribute__((vector_size(TD_VECTOR_BYTES), aligned(1), may_alias));

/* Lanes of 32 bits for float32, of 16 for the others. `same` counts downwards; a block has too few rows to
 * overflow 16 bits. */
struct td_ulps {
    int64_t seen;
    td_vu32 max_32;
    td_vi32 same_32;
    td_vu16 max_16;
    td_vi16 same_16;
};

TD_INLINE td_vi32 td_vi32_order(td_vi32 bits)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vi32)_mm256_sign_epi32((__m256i)(bits & INT32_MAX), (__m256i)bits);
#else
    td_vi32 sign = bits >> 31; /* 0 or -1; the magnitude is complemented and 1 added where negative */
    return (bits ^ (sign & INT32_MAX)) - sign;
#endif
}

TD_INLINE td_vi16 td_vi16_order(td_vi16 bits)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vi16)_mm256_sign_epi16((__m256i)(bits & INT16_MAX), (__m256i)bits);
#else
    td_vi16 sign = bits >> 15;
    return (bits ^ (sign & INT16_MAX)) - sign;
#endif
}

/* |x - y|, without the sign bit in the way. */
TD_INLINE td_vu32 td_vi32_distance(td_vi32 x, td_vi32 y)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_sub_epi32(_mm256_max_epi32((__m256i)x, (__m256i)y),
                                     _mm256_min_epi32((__m256i)x, (__m256i)y));
#else
    td_vu32 less = (td_vu32)(x < y), d = (td_vu32)x - (td_vu32)y;
    return (d ^ less) - less;
#endif
}

TD_INLINE td_vu16 td_vi16_distance(td_vi16 x, td_vi16 y)
{
    return (td_vu16)td_vi16_max(x, y) - (td_vu16)td_vi16_min(x, y);
}

TD_INLINE td_vu32 td_vu32_max(td_vu32 a, td_vu32 b)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_max_epu32((__m256i)a, (__m256i)b);
#else
    td_vu32 larger = (td_vu32)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

TD_INLINE td_vu16 td_vu16_max(td_vu16 a, td_vu16 b)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu16)_mm256_max_epu16((__m256i)a, (__m256i)b);
#else
    td_vu16 larger = (td_vu16)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

/* `count` pairs, a multiple of TD_LANES; dtype is a constant: TD_F32, TD_F16 or TD_BF16. */
TD_INLINE void td_ulps_add(struct td_ulps *u, enum td_dtype dtype, const uint8_t *a, const uint8_t *b,
                           int64_t count)
{
    u->seen += count;
    if (dtype == TD_F32) {
        td_vu32 max = u->max_32;
        td_vi32 same = u->same_32;
        for (int64_t at = 0; at < count * 4; at += TD_VECTOR_BYTES) {
            td_vi32 x = td_vi32_order(*(const td_vi32_loose *)(a + at));
            td_vi32 y = td_vi32_order(*(const td_vi32_loose *)(b + at));
            max = td_vu32_max(td_vi32_distance(x, y), max);
            same += x == y;
        }
        u->max_32 = max;
        u->same_32 = same;
    } else {
        td_vu16 max = u->max_16;
        td_vi16 same = u->same_16;
        for (int64_t at = 0; at < count * 2; at += TD_VECTOR_BYTES) {
            td_vi16 x = td_vi16_order(*(const td_vi16_loose *)(a + at));
            td_vi16 y = td_vi16_order(*(const td_vi16_loose *)(b + at));
            max = td_vu16_max(td_vi16_distance(x, y), max);
            same += x == y;
        }
        u->max_16 = max;
        u->same_16 = same;
    }
}

/* Puts the largest distance and the number of differing pairs into `out`. */
TD_INLINE void td_ulps_collect(const struct td_ulps *u, struct td_pair_lanes *out)
{
    uint32_t max = 0;
    int64_t same = 0;
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        max = u->max_32[i] > max ? u->max_32[i] : max;
        same -= u->same_32[i];
    }
    for (int i = 0; i < 2 * TD_PER_FLOATS; i++) {
        max = u->max_16[i] > max ? u->max_16[i] : max;
        same -= u->same_16[i];
    }
    out->max_ulp = (double)max > out->max_ulp ? (double)max : out->max_ulp;
    out->differing += (uint64_t)(u->seen - same);
}

#endif
