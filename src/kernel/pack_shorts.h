/* pack_shorts.h: packing (pack.h) where both sides are packed by themselves, for AVX-512 with VBMI2.
 *
 *     a  1 2  3 4  5 ...      packed  2  4  ...
 *     b  1 2' 3 4' 5 ...      packed  2' 4' ...
 *
 * The CPU has an instruction that moves those of 32 to the front which are chosen. One loop does all: there
 * are registers enough, and two units for all of it, so what counts is how few instructions there are.
 */
#ifndef TD_KERNEL_PACK_SHORTS_H
#define TD_KERNEL_PACK_SHORTS_H

#include "kernel/shorts.h"

/* 32 are written where the next one goes, and beyond the last row 64 are filled up. Of side b, bits
 * nearest to zero are not looked for: it has no zero that side a does not have, or the packed pairs. */
struct td_packing {
    struct td_seen_bits seen_a, seen_b; /* set by td_pack_end */
    struct td_seen_shorts look_a, look_b;
    _Alignas(64) float wide[TD_PACK_TILE * TD_LANES]; /* some of side a, staged; later, packed pairs */
    int64_t count;
    uint16_t a[TD_BLOCK_LENGTH + 64], b[TD_BLOCK_LENGTH + 64];
};

TD_INLINE void td_pack_begin(struct td_packing *k)
{
    k->look_a = k->look_b = TD_SEEN_NO_SHORTS;
    k->count = 0;
}

TD_INLINE void td_pack_tile(struct td_packing *k, struct td_doubles sums[2], enum td_dtype dtype,
                            const uint8_t *a, const uint8_t *b, double shift, bool shifted)
{
    struct td_seen_shorts look_a = k->look_a, look_b = k->look_b;
    int64_t count = k->count;
    td_vd added[2][2];
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 2; i++)
            added[c][i] = sums[i].v[c];
    for (int64_t at = 0; at < TD_PACK_TILE * TD_LANES; at += TD_PACK_PAIRS) {
        __m512i x = _mm512_loadu_si512(a + at * 2), y = _mm512_loadu_si512(b + at * 2);
        __builtin_prefetch(a + (at + TD_PACK_AHEAD) * 2, 0, 2);
        __builtin_prefetch(b + (at + TD_PACK_AHEAD) * 2, 0, 2);
        look_a = td_see_shorts(look_a, x);
        look_b = td_see_short_extremes(look_b, y);

        __m512i turn_x = _mm512_permutex_epi64(x, 0xd8), turn_y = _mm512_permutex_epi64(y, 0xd8);
        __mmask32 different = _mm512_cmpneq_epi16_mask(turn_x, turn_y);
        _mm512_storeu_si512(k->a + count, _mm512_maskz_compress_epi16(different, turn_x));
        _mm512_storeu_si512(k->b + count, _mm512_maskz_compress_epi16(different, turn_y));
        count += __builtin_popcount(different);

        float *wide = k->wide + at % (4 * TD_PACK_PAIRS);
        td_shorts_stage(dtype, a + at * 2, x, wide);
        for (int r = 0; r < TD_PACK_ROWS; r++)
            for (int c = 0; c < 2; c++)
                td_add_side(added[c], dtype, td_shorts_column(dtype, wide, r, c), shift, shifted, false);
    }
    k->look_a = look_a;
    k->look_b = look_b;
    k->count = count;
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 2; i++)
            sums[i].v[c] = added[c][i];
}

TD_INLINE void td_pack_end(struct td_packing *k, struct td_doubles sums[2], enum td_dtype dtype)
{
    k->seen_a = td_shorts_bits(&k->look_a);
    k->seen_b = td_shorts_bits(&k->look_b);
    const __m512i some = _mm512_set1_epi16(k->count ? (int16_t)k->a[0] : 1);
    for (int i = 0; i < 64; i += 32) {
        _mm512_storeu_si512(k->a + k->count + i, some);
        _mm512_storeu_si512(k->b + k->count + i, some);
    }
    for (int i = 0; i < 2; i++)
        td_shorts_settle(dtype, sums[i].v);
}

TD_INLINE uint16_t td_pack_stage(const struct td_packing *k, int64_t row, int64_t rows, enum td_dtype dtype,
                                 float *a, float *b, struct td_ulps *ulps)
{
    const uint16_t *p = k->a + row * TD_LANES, *q = k->b + row * TD_LANES;
    __m512i max = _mm512_setzero_si512(), nearest = _mm512_set1_epi16(-1);
    for (int64_t at = 0; at < rows * TD_LANES; at += TD_PACK_PAIRS) {
        __m512i x = _mm512_loadu_si512(p + at), y = _mm512_loadu_si512(q + at);
        __m512i key_x = td_shorts_order(x), key_y = td_shorts_order(y);
        __m512i less = _mm512_min_epi16(key_x, key_y), more = _mm512_max_epi16(key_x, key_y);
        max = _mm512_max_epu16(_mm512_sub_epi16(more, less), max);
        nearest = _mm512_min_epu16(_mm512_add_epi16(x, x), nearest);
        nearest = _mm512_min_epu16(_mm512_add_epi16(y, y), nearest);
    }
    for (int64_t at = 0; at < rows * TD_LANES; at += TD_LANES) {
        td_stage(dtype, (const uint8_t *)(p + at), a + at);
        td_stage(dtype, (const uint8_t *)(q + at), b + at);
    }
    const td_vu16 *far = (const td_vu16 *)&max, *near = (const td_vu16 *)&nearest;
    ulps->narrow.max = td_vu16_max(ulps->narrow.max, td_vu16_max(far[0], far[1]));
    return td_vu16_least(td_vu16_min(near[0], near[1])) >> 1;
}

TD_INLINE int64_t td_pack_differing(const struct td_packing *k, bool zeros)
{
    int64_t same = 0;
    for (int64_t i = 0; i < k->count && zeros; i++)
        same += ((k->a[i] | k->b[i]) & INT16_MAX) == 0;
    return k->count - same;
}

#endif
