/* pack.h: the pairs of a block of 16-bit floats whose bits differ, one behind the other (see pair.h).
 *
 *     a  1 2  3 4  5 ...      packed  2  4  ...
 *     b  1 2' 3 4' 5 ...              2' 4' ...
 *
 * AVX2 moves eight elements at once, by a table of all the ways in which eight pairs can differ. Other tiers
 * go pair by pair, but without a branch: whether the next one differs is anybody's guess.
 */
#ifndef TD_KERNEL_PACK_H
#define TD_KERNEL_PACK_H

#include "kernel/lanes.h"

#include <string.h>

/* Moving eight elements where fewer differ, and filling up the last row, writes past the last one. */
struct td_packed {
    int64_t count;
    uint16_t a[TD_BLOCK_LENGTH + TD_LANES], b[TD_BLOCK_LENGTH + TD_LANES];
};

#if defined(__AVX2__) && TD_VECTOR_BYTES == 32

/* A byte of the k-th of those of eight elements whose bits are set in m; 0x80, which clears, behind the last.
 */
#define IS_KTH(m, k, i) \
    ((i) * (((m) >> (i)&1) && __builtin_popcount((unsigned)(m) & ((1u << (i)) - 1)) == (k)))
#define KTH(m, k)                                                                              \
    (IS_KTH(m, k, 1) + IS_KTH(m, k, 2) + IS_KTH(m, k, 3) + IS_KTH(m, k, 4) + IS_KTH(m, k, 5) + \
     IS_KTH(m, k, 6) + IS_KTH(m, k, 7))
#define BYTE(m, k, byte) (__builtin_popcount(m) > (k) ? 2 * KTH(m, k) + (byte) : 0x80)
#define BYTES(m, k) BYTE(m, k, 0), BYTE(m, k, 1)
#define CLEAR 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80
#define ORDER(m)                                                                                    \
    {                                                                                               \
        CLEAR, CLEAR, BYTES(m, 0), BYTES(m, 1), BYTES(m, 2), BYTES(m, 3), BYTES(m, 4), BYTES(m, 5), \
            BYTES(m, 6), BYTES(m, 7)                                                                \
    }
#define ORDERS_4(m) ORDER(m), ORDER((m) + 1), ORDER((m) + 2), ORDER((m) + 3)
#define ORDERS_16(m) ORDERS_4(m), ORDERS_4((m) + 4), ORDERS_4((m) + 8), ORDERS_4((m) + 12)
#define ORDERS_64(m) ORDERS_16(m), ORDERS_16((m) + 16), ORDERS_16((m) + 32), ORDERS_16((m) + 48)

/* The bytes of eight elements, so that those whose bits are set in the index come first, behind as many that
 * clear: read from further up, the order begins later. */
static const uint8_t td_pack_orders[256][32] = {ORDERS_64(0), ORDERS_64(64), ORDERS_64(128), ORDERS_64(192)};

#undef IS_KTH
#undef KTH
#undef BYTE
#undef BYTES
#undef CLEAR
#undef ORDER
#undef ORDERS_4
#undef ORDERS_16
#undef ORDERS_64

TD_INLINE __m128i td_pack_order(unsigned chosen, unsigned first)
{
    return _mm_loadu_si128((const __m128i_u *)(td_pack_orders[chosen] + 16 - 2 * first));
}

TD_INLINE void td_pack_store(uint16_t *to, __m256i elements)
{
    __m128i both = _mm256_castsi256_si128(elements) | _mm256_extracti128_si256(elements, 1);
    _mm_storeu_si128((__m128i_u *)to, both);
}

/* Packs a row behind the first `count` pairs; how many there are then. As a rule all that differ fit half a
 * register: stores at any address are what takes time here. */
TD_INLINE int64_t td_pack_row(struct td_packed *packed, int64_t count, const uint8_t *a, const uint8_t *b)
{
    __m256i x = _mm256_loadu_si256((const __m256i_u *)a), y = _mm256_loadu_si256((const __m256i_u *)b);
    __m256i same = _mm256_cmpeq_epi16(x, y);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(same), _mm256_extracti128_si256(same, 1));
    unsigned different = ~(unsigned)_mm_movemask_epi8(bytes), low = different & 255,
             high = different >> 8 & 255;
    unsigned first = (unsigned)__builtin_popcount(low), all = first + (unsigned)__builtin_popcount(high);
    __m256i order = _mm256_set_m128i(td_pack_order(high, first), td_pack_order(low, 0));
    td_pack_store(packed->a + count, _mm256_shuffle_epi8(x, order));
    td_pack_store(packed->b + count, _mm256_shuffle_epi8(y, order));
    if (__builtin_expect(all > 8, 0)) {
        order = _mm256_set_m128i(td_pack_order(high, 0), _mm_set1_epi8(-1));
        td_pack_store(packed->a + count + first, _mm256_shuffle_epi8(x, order));
        td_pack_store(packed->b + count + first, _mm256_shuffle_epi8(y, order));
    }
    return count + all;
}

#else

TD_INLINE int64_t td_pack_row(struct td_packed *packed, int64_t count, const uint8_t *a, const uint8_t *b)
{
    for (int i = 0; i < TD_LANES; i++) {
        memcpy(packed->a + count, a + 2 * i, 2);
        memcpy(packed->b + count, b + 2 * i, 2);
        count += packed->a[count] != packed->b[count];
    }
    return count;
}

#endif
#endif
