/* pack_pairs.h: packing (pack.h) where a packed pair is 32 bits, a below b.
 *
 *     a  1 2  3 4  5 ...      packed  2  4  ...
 *     b  1 2' 3 4' 5 ...              2' 4' ...
 *
 * AVX2 moves eight pairs at once, by a table of all the ways in which eight pairs can differ. Which ones do
 * is found out beforehand, in another loop: from a comparison to the place in the table it takes longer than
 * the CPU looks ahead. Other tiers go pair by pair, but without a branch: whether the next one differs is
 * anybody's guess.
 */
#ifndef TD_KERNEL_PACK_PAIRS_H
#define TD_KERNEL_PACK_PAIRS_H

#if defined(__AVX2__) && TD_VECTOR_BYTES == 32

/* Which of the pairs differ: a bit for each, in the order of td_pack_turn. */
struct td_pack_plan {
    uint8_t eights[TD_PACK_PAIRS / 8];
};

/* The k-th of those of eight pairs whose bits are set in m. */
#define IS_KTH(m, k, i) \
    ((i) * (((m) >> (i)&1) && __builtin_popcount((unsigned)(m) & ((1u << (i)) - 1)) == (k)))
#define KTH(m, k)                                                                              \
    (IS_KTH(m, k, 1) + IS_KTH(m, k, 2) + IS_KTH(m, k, 3) + IS_KTH(m, k, 4) + IS_KTH(m, k, 5) + \
     IS_KTH(m, k, 6) + IS_KTH(m, k, 7))
#define ORDER(m)                                                                               \
    {                                                                                          \
        KTH(m, 0), KTH(m, 1), KTH(m, 2), KTH(m, 3), KTH(m, 4), KTH(m, 5), KTH(m, 6), KTH(m, 7) \
    }
#define ORDERS_4(m) ORDER(m), ORDER((m) + 1), ORDER((m) + 2), ORDER((m) + 3)
#define ORDERS_16(m) ORDERS_4(m), ORDERS_4((m) + 4), ORDERS_4((m) + 8), ORDERS_4((m) + 12)
#define ORDERS_64(m) ORDERS_16(m), ORDERS_16((m) + 16), ORDERS_16((m) + 32), ORDERS_16((m) + 48)

/* The numbers of eight pairs, those whose bits are set in the index first. */
static const uint8_t td_pack_orders[256][8] = {ORDERS_64(0), ORDERS_64(64), ORDERS_64(128), ORDERS_64(192)};

#undef IS_KTH
#undef KTH
#undef ORDER
#undef ORDERS_4
#undef ORDERS_16
#undef ORDERS_64

TD_INLINE __m256i td_pack_load(const uint8_t *p, int row)
{
    return _mm256_loadu_si256((const __m256i_u *)p + row);
}

TD_INLINE struct td_pack_plan td_pack_look(const uint8_t *a, const uint8_t *b)
{
    __m256i first = _mm256_cmpeq_epi16(td_pack_load(a, 0), td_pack_load(b, 0));
    __m256i second = _mm256_cmpeq_epi16(td_pack_load(a, 1), td_pack_load(b, 1));
    const __m256i quarters = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i same = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), quarters);
    uint32_t different = ~(uint32_t)_mm256_movemask_epi8(same);
    struct td_pack_plan plan;
    memcpy(&plan, &different, sizeof plan);
    return plan;
}

TD_INLINE uint32_t *td_pack_eight(uint32_t *to, __m256i pairs, uint8_t chosen)
{
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)td_pack_orders[chosen]));
    _mm256_storeu_si256((__m256i_u *)to, _mm256_permutevar8x32_epi32(pairs, order));
    return to + __builtin_popcount(chosen);
}

/* Packs rows; where the next pair goes. */
TD_INLINE uint32_t *td_pack_rows(uint32_t *to, const uint8_t *a, const uint8_t *b,
                                 const struct td_pack_plan *plan)
{
    for (int row = 0; row < TD_PACK_ROWS; row++) {
        __m256i x = td_pack_load(a, row), y = td_pack_load(b, row);
        to = td_pack_eight(to, _mm256_unpacklo_epi16(x, y), plan->eights[2 * row]);
        to = td_pack_eight(to, _mm256_unpackhi_epi16(x, y), plan->eights[2 * row + 1]);
    }
    return to;
}

#else

struct td_pack_plan {
    char none;
};

TD_INLINE struct td_pack_plan td_pack_look(const uint8_t *a, const uint8_t *b)
{
    (void)a, (void)b;
    return (struct td_pack_plan){0};
}

TD_INLINE uint32_t *td_pack_rows(uint32_t *to, const uint8_t *a, const uint8_t *b,
                                 const struct td_pack_plan *plan)
{
    (void)plan;
    for (int k = 0; k < TD_PACK_PAIRS; k++) {
        uint16_t x, y;
        memcpy(&x, a + 2 * td_pack_turn(k), 2);
        memcpy(&y, b + 2 * td_pack_turn(k), 2);
        *to = x | (uint32_t)y << 16;
        to += x != y;
    }
    return to;
}

#endif

/* Moving eight pairs where fewer differ, and filling up the last row, writes past the last one. Of side b,
 * bits nearest to zero are not looked for: it has no zero that side a does not have, or the packed pairs. */
struct td_packing {
    struct td_seen_bits seen_a, seen_b;
    struct td_pack_plan plans[TD_PACK_TILE / TD_PACK_ROWS];
    _Alignas(64) float wide[TD_PACK_TILE * TD_LANES]; /* side a, staged; later, packed pairs */
    int64_t count;
    uint32_t pairs[TD_BLOCK_LENGTH + TD_LANES];
};

TD_INLINE void td_pack_begin(struct td_packing *k)
{
    k->seen_a = k->seen_b = TD_SEEN_NO_BITS;
    k->count = 0;
}

/* All that is to be known of a tile before it is packed. */
TD_INLINE void td_pack_plan_tile(struct td_packing *k, enum td_dtype dtype, const uint8_t *a,
                                 const uint8_t *b)
{
    struct td_seen_bits seen_a = k->seen_a, seen_b = k->seen_b;
    for (int64_t at = 0; at < TD_PACK_TILE * TD_LANES; at += TD_PACK_PAIRS) {
        const td_vi16_loose *x = (const td_vi16_loose *)(a + at * 2),
                            *y = (const td_vi16_loose *)(b + at * 2);
        for (int i = 0; i < TD_PACK_ROWS * TD_ROW_KEYS; i++) {
            seen_a = td_see_bits(seen_a, x[i]);
            seen_b = td_see_extremes(seen_b, y[i]);
        }
        k->plans[at / TD_PACK_PAIRS] = td_pack_look(a + at * 2, b + at * 2);
        for (int64_t row = at; row < at + TD_PACK_PAIRS; row += TD_LANES)
            td_stage(dtype, a + row * 2, k->wide + row);
    }
    k->seen_a = seen_a;
    k->seen_b = seen_b;
}

/* Packing and adding are one loop, as the one waits for the other's additions otherwise. Every other column
 * adds aside, so that all units are in use. */
TD_INLINE void td_pack_tile(struct td_packing *k, struct td_doubles sums[2], enum td_dtype dtype,
                            const uint8_t *a, const uint8_t *b, double shift, bool shifted)
{
    td_pack_plan_tile(k, dtype, a, b);
    const uint8_t *wide = (const uint8_t *)k->wide;
    uint32_t *to = k->pairs + k->count;
    td_vd added[TD_ROW_DOUBLES][2];
    for (int c = 0; c < TD_ROW_DOUBLES; c++)
        for (int i = 0; i < 2; i++)
            added[c][i] = sums[i].v[c];
    for (int64_t at = 0; at < TD_PACK_TILE * TD_LANES; at += TD_PACK_PAIRS) {
        __builtin_prefetch(a + (at + TD_PACK_AHEAD) * 2, 0, 2);
        __builtin_prefetch(b + (at + TD_PACK_AHEAD) * 2, 0, 2);
        to = td_pack_rows(to, a + at * 2, b + at * 2, &k->plans[at / TD_PACK_PAIRS]);
        for (int64_t row = at; row < at + TD_PACK_PAIRS; row += TD_LANES)
            for (int c = 0; c < TD_ROW_DOUBLES; c++)
                td_add_side(added[c], dtype, td_column_load(dtype, wide, row, c), shift, shifted, c % 2 == 0);
    }
    k->count = to - k->pairs;
    for (int c = 0; c < TD_ROW_DOUBLES; c++)
        for (int i = 0; i < 2; i++)
            sums[i].v[c] = added[c][i];
}

TD_INLINE void td_pack_end(struct td_packing *k, struct td_doubles sums[2], enum td_dtype dtype)
{
    (void)sums, (void)dtype;
    const uint32_t some = k->count ? k->pairs[0] & UINT16_MAX : 1;
    for (int i = 0; i < TD_LANES; i++)
        k->pairs[k->count + i] = some | some << 16;
}

/* A row of packed pairs as floats. */
TD_INLINE void td_unpack(enum td_dtype dtype, const uint32_t *pairs, float *a, float *b)
{
    if (dtype == TD_BF16) {
        for (int i = 0; i < TD_ROW_FLOATS; i++) {
            td_vu32 both = ((const td_vu32_loose *)pairs)[i];
            ((td_vf_loose *)a)[i] = (td_vf)(both << 16);
            ((td_vf_loose *)b)[i] = (td_vf)(both & 0xffff0000);
        }
        return;
    }
    uint16_t x[TD_LANES], y[TD_LANES];
    for (int i = 0; i < TD_LANES; i++) {
        x[i] = (uint16_t)pairs[i];
        y[i] = (uint16_t)(pairs[i] >> 16);
    }
    td_stage(dtype, (const uint8_t *)x, a);
    td_stage(dtype, (const uint8_t *)y, b);
}

TD_INLINE uint16_t td_pack_stage(const struct td_packing *k, int64_t row, int64_t rows, enum td_dtype dtype,
                                 float *a, float *b, struct td_ulps *ulps)
{
    const uint32_t *pairs = k->pairs + row * TD_LANES;
    td_vu32 max = ulps->wide.max, nearest = (td_vu32){0} + UINT32_MAX;
    for (int64_t at = 0; at < rows * TD_LANES; at += TD_LANES) {
        for (int i = 0; i < TD_ROW_FLOATS; i++) {
            td_vu32 both = ((const td_vu32_loose *)(pairs + at))[i];
            max = td_vu32_max(td_ulps_of_pairs(both), max);
            nearest = td_pairs_nearest(both, nearest);
        }
        td_unpack(dtype, pairs + at, a + at, b + at);
    }
    ulps->wide.max = max;
    uint32_t least = UINT16_MAX;
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        uint32_t low = nearest[i] & UINT16_MAX, high = nearest[i] >> 16;
        least = low < least ? low : least;
        least = high < least ? high : least;
    }
    return (uint16_t)least;
}

TD_INLINE int64_t td_pack_differing(const struct td_packing *k, bool zeros)
{
    int64_t same = 0;
    for (int64_t i = 0; i < k->count && zeros; i++)
        same += (k->pairs[i] & 0x7fff7fff) == 0;
    return k->count - same;
}

#endif
