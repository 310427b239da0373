/* shorts.h: 16-bit floats two rows at a time, for AVX-512: 32 are a vector.
 *
 * TD_BF16 become floats by a shift or a mask, 16 at once, if even and odd lanes are taken apart. Sums may be
 * kept like that until the end (td_shorts_settle):
 *
 *     lanes         0 1 2 3 ... 15 | 0 1 2 3 ... 15      two rows
 *     staged        0 2 4 ... 14 | 0 2 4 ... 14 | 1 3 5 ... 15 | 1 3 5 ... 15      columns 0 0 1 1
 */
#ifndef TD_KERNEL_SHORTS_H
#define TD_KERNEL_SHORTS_H

#include "kernel/look.h"

enum { TD_SHORTS = 2 * TD_LANES };

/* What struct td_seen_bits sees. */
struct td_seen_shorts {
    __m512i most, least, nearest;
};

#define TD_SEEN_NO_SHORTS \
    ((struct td_seen_shorts){_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_set1_epi16(-1)})

/* All but what is nearest to zero. */
TD_INLINE struct td_seen_shorts td_see_short_extremes(struct td_seen_shorts seen, __m512i bits)
{
    seen.most = _mm512_max_epi16(bits, seen.most);
    seen.least = _mm512_max_epu16(bits, seen.least);
    return seen;
}

TD_INLINE struct td_seen_shorts td_see_shorts(struct td_seen_shorts seen, __m512i bits)
{
    seen = td_see_short_extremes(seen, bits);
    seen.nearest = _mm512_min_epu16(_mm512_add_epi16(bits, bits), seen.nearest);
    return seen;
}

/* Both halves of what was seen, as one. */
TD_INLINE struct td_seen_bits td_shorts_bits(const struct td_seen_shorts *seen)
{
    const td_vi16 *most = (const td_vi16 *)&seen->most;
    const td_vu16 *least = (const td_vu16 *)&seen->least, *nearest = (const td_vu16 *)&seen->nearest;
    return (struct td_seen_bits){.most = td_vi16_max(most[0], most[1]),
                                 .least = td_vu16_max(least[0], least[1]),
                                 .nearest = td_vu16_min(nearest[0], nearest[1])};
}

/* td_vi16_order */
TD_INLINE __m512i td_shorts_order(__m512i bits)
{
    __m512i sign = _mm512_srai_epi16(bits, 15);
    return _mm512_sub_epi16(bits ^ (sign & _mm512_set1_epi16(INT16_MAX)), sign);
}

/* Two rows as floats; `bits` are those at `p`. */
TD_INLINE void td_shorts_stage(enum td_dtype dtype, const uint8_t *p, __m512i bits, float *to)
{
    if (dtype == TD_BF16) {
        _mm512_storeu_si512(to, _mm512_slli_epi32(bits, 16));
        _mm512_storeu_si512(to + TD_LANES, _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MIN >> 15)));
    } else {
        td_stage(dtype, p, to);
        td_stage(dtype, p + TD_LANES * 2, to + TD_LANES);
    }
}

/* Column c of row r of what was staged. */
TD_INLINE td_vd td_shorts_column(enum td_dtype dtype, const float *staged, int r, int c)
{
    const int at = dtype == TD_BF16 ? c * TD_LANES + r * TD_PER_DOUBLES : r * TD_LANES + c * TD_PER_DOUBLES;
    return td_vd_load_f32((const uint8_t *)(staged + at));
}

/* Puts the lanes of sums of such columns in order. */
TD_INLINE void td_shorts_settle(enum td_dtype dtype, td_vd sums[2])
{
    if (dtype != TD_BF16)
        return;
    const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), second = first + 4;
    td_vd even = sums[0], odd = sums[1];
    sums[0] = _mm512_permutex2var_pd(even, first, odd);
    sums[1] = _mm512_permutex2var_pd(even, second, odd);
}

#endif
