/* ulps.h: how many representable values lie between floats of one type, for whole vectors of their bits.
 *
 * The bits of a float, taken as sign and magnitude, count its place among all floats of its type
 * (td_float_order); the distance of two is at most all bits ones, so lanes as wide as the type hold it. Pairs
 * of different value are those at a distance, which counts them for free.
 *
 * Of float32, pairs are mostly close to each other. Between floats of one sign the bits as they are differ by
 * the distance; between floats of both signs they differ, in 32 bits, by 2^31 less the distance of the
 * magnitudes, which is more than 2^23 because no finite magnitude reaches 0x7f800000. So where nothing is
 * further apart than TD_ULPS_NEAR that difference is all there is to compute; else the same pairs are done
 * over.
 */
#ifndef TD_KERNEL_ULPS_H
#define TD_KERNEL_ULPS_H

#include "kernel/lanes.h"
#include "kernel/pair.h"

typedef uint64_t td_vu64 __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef int32_t td_vi32_loose __attribute__((vector_size(TD_VECTOR_BYTES), aligned(1), may_alias));

#define TD_SIGN_64 ((uint64_t)1 << 63)

enum { TD_ULPS_NEAR = 1 << 23 };

/* `same` counts downwards; a block has too few rows to overflow 16 bits. */
struct td_ulps_32 {
    td_vu32 max;
    td_vi32 same;
};

struct td_ulps_16 {
    td_vu16 max;
    td_vi16 same;
};

/* Lanes of 32 bits for float32 and for packed pairs, of 16 for the others. */
struct td_ulps {
    int64_t seen;
    struct td_ulps_32 wide;
    struct td_ulps_16 narrow;
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

TD_INLINE td_vi64 td_vi64_order(td_vi64 bits)
{
    td_vi64 negative = bits < 0;
    return ((td_vi64)(TD_SIGN_64 - (td_vu64)bits) & negative) | (bits & ~negative);
}

/* |x - y|, without the sign bit in the way. */
TD_INLINE td_vu32 td_vi32_distance(td_vi32 x, td_vi32 y)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vu32)_mm512_sub_epi32(_mm512_max_epi32((__m512i)x, (__m512i)y),
                                     _mm512_min_epi32((__m512i)x, (__m512i)y));
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_sub_epi32(_mm256_max_epi32((__m256i)x, (__m256i)y),
                                     _mm256_min_epi32((__m256i)x, (__m256i)y));
#else
    td_vu32 less = (td_vu32)(x < y), d = (td_vu32)x - (td_vu32)y;
    return (d ^ less) - less;
#endif
}

/* |x|; INT32_MIN is 2^31. */
TD_INLINE td_vu32 td_vi32_size(td_vi32 x)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vu32)_mm512_abs_epi32((__m512i)x);
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_abs_epi32((__m256i)x);
#else
    td_vu32 sign = (td_vu32)(x >> 31);
    return ((td_vu32)x ^ sign) - sign;
#endif
}

TD_INLINE td_vu16 td_vi16_distance(td_vi16 x, td_vi16 y)
{
    return (td_vu16)td_vi16_max(x, y) - (td_vu16)td_vi16_min(x, y);
}

/* One vector of pairs of a 16-bit type, as td_vi16_order has them. */
TD_INLINE struct td_ulps_16 td_ulps_see_16(struct td_ulps_16 u, td_vi16 x, td_vi16 y)
{
    u.max = td_vu16_max(td_vi16_distance(x, y), u.max);
    u.same += x == y;
    return u;
}

/* The distances of pairs of a 16-bit type, a pair in each lane of 32 bits. */
TD_INLINE td_vu32 td_ulps_of_pairs(td_vu32 pairs)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    const __m256i one_less_other = _mm256_set1_epi32((int32_t)0xffff0001);
    __m256i keys = (__m256i)td_vi16_order((td_vi16)pairs);
    return td_vi32_size((td_vi32)_mm256_madd_epi16(keys, one_less_other));
#else
    td_vi32 x = (td_vi32)(pairs << 16) >> 16, y = (td_vi32)pairs >> 16;
    td_vi32 sign_x = x >> 16, sign_y = y >> 16; /* as in td_vi16_order */
    return td_vi32_size(((x ^ (sign_x & INT16_MAX)) - sign_x) - ((y ^ (sign_y & INT16_MAX)) - sign_y));
#endif
}

/* The magnitudes of such pairs that are nearest to zero, so far: in each half of a lane. */
TD_INLINE td_vu32 td_pairs_nearest(td_vu32 pairs, td_vu32 nearest)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)td_vu16_min((td_vu16)(pairs & 0x7fff7fff), (td_vu16)nearest);
#else
    td_vu32 low = td_vu32_min(pairs & 0x7fff, nearest & 0xffff);
    return low | td_vu32_min(pairs & 0x7fff0000, nearest & 0xffff0000);
#endif
}

TD_INLINE bool td_vu32_any_beyond(td_vu32 x, uint32_t limit)
{
    td_vi32 beyond = (td_vi32)(x > limit);
    int32_t any = 0;
    for (int i = 0; i < TD_PER_FLOATS; i++)
        any |= beyond[i];
    return any != 0;
}

/* `count` pairs of float32 of any distance. */
TD_INLINE struct td_ulps_32 td_ulps_far(struct td_ulps_32 u, const uint8_t *a, const uint8_t *b,
                                        int64_t count)
{
    for (int64_t at = 0; at < count * 4; at += TD_VECTOR_BYTES) {
        td_vi32 x = td_vi32_order(*(const td_vi32_loose *)(a + at));
        td_vi32 y = td_vi32_order(*(const td_vi32_loose *)(b + at));
        u.max = td_vu32_max(td_vi32_distance(x, y), u.max);
        u.same += x == y;
    }
    return u;
}

/* One vector of pairs of float32 that are near to each other; what is seen tells whether they are. */
TD_INLINE struct td_ulps_32 td_ulps_see_near(struct td_ulps_32 u, td_vu32 x, td_vu32 y)
{
    td_vu32 d = x - y;
    u.max = td_vu32_max(td_vi32_size((td_vi32)d), u.max);
    u.same += (td_vi32)(d == 0);
    return u;
}

/* Adds what td_ulps_see_near saw of `count` pairs. */
TD_INLINE void td_ulps_add_32(struct td_ulps *u, const struct td_ulps_32 *near, const uint8_t *a,
                              const uint8_t *b, int64_t count)
{
    u->seen += count;
    if (td_vu32_any_beyond(near->max, TD_ULPS_NEAR)) {
        u->wide = td_ulps_far(u->wide, a, b, count);
    } else {
        u->wide.max = td_vu32_max(near->max, u->wide.max);
        u->wide.same += near->same;
    }
}

/* Puts the largest distance and the number of differing pairs into `out`. */
TD_INLINE void td_ulps_collect(const struct td_ulps *u, struct td_pair_lanes *out)
{
    uint32_t max = 0;
    int64_t same = 0;
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        max = u->wide.max[i] > max ? u->wide.max[i] : max;
        same -= u->wide.same[i];
    }
    for (int i = 0; i < TD_PER_KEYS; i++) {
        max = u->narrow.max[i] > max ? u->narrow.max[i] : max;
        same -= u->narrow.same[i];
    }
    out->max_ulp = (double)max > out->max_ulp ? (double)max : out->max_ulp;
    out->differing += (uint64_t)(u->seen - same);
}

#endif
