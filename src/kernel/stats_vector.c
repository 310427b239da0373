/* stats_vector.c: the statistics of one block in vectors; compiled once per vector tier.
 *
 * TD_TIER names the tier, TD_VECTOR_BYTES its registers. A block goes through in stages of 512 elements, each
 * seen by two short loops that fit the registers: one looks at the elements (minimum, maximum, zeros), the
 * other adds them up as doubles. Where all of it fits, one loop does both. All values are taken to be finite
 * at first: it is the common case, and if one is not, the sums of d and d^2 show it, because an infinity or
 * NaN never leaves a sum again. Then the block is done over with masks. Either way the bits are those of
 * stats_scalar.c.
 */
#include "kernel/look.h"
#include "kernel/tier.h"
#if TD_VECTOR_BYTES == 64
#include "kernel/shorts.h"
#endif

#include <string.h>

#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_kernels_, tier)
#define PAIR_TABLE(tier) PASTE(td_pairs_, tier)
#define SPREAD_TABLE(tier) PASTE(td_spreads_, tier)
#define TILE_TABLE(tier) PASTE(td_tiles_, tier)
#define STRING(a) #a
#define TIER_NAME(tier) STRING(tier)

/* Bytes ahead of the loop that are asked for: the CPU's own prefetching stops at the end of each page, and
 * these loops keep it too busy to run ahead. A third faster from memory where this was measured. */
enum { AHEAD = 8192 };

enum { STAGE = 512 };

/* How a block is gone over. All give the same bits where they apply. */
enum how {
    PLAIN,   /* all values are finite and the shift is zero */
    SHIFTED, /* all values are finite */
    MASKED   /* what is not finite is counted and left out */
};

/* --- Adding up ------------------------------------------------------------------------------------------ */

struct lanes {
    td_vd s1[TD_ROW_DOUBLES], s2[TD_ROW_DOUBLES];
};

/* Adds `count` elements, whole rows: doubles, or floats where `dtype` is a smaller type. The square of a
 * float is exact as a double: there product and sum may be one instruction that rounds once. Additions are
 * shared out between the units that add and those that multiply (td_vd_add_aside). */
TD_INLINE struct lanes add_rows(struct lanes sums, enum td_dtype dtype, const uint8_t *p, int64_t count,
                                double around, enum how how)
{
    td_vd shift = td_vd_all(around);
    for (int64_t at = 0; at < count; at += TD_LANES) {
        for (int i = 0; i < TD_ROW_DOUBLES; i++) {
            td_vd x = td_column_load(dtype, p, at, i), d = how == PLAIN ? x : x - shift;
            if (how == MASKED)
                d = (td_vd)((td_vi64)d & td_vd_finite(x));
            const bool aside = i % 2 == 0;
            sums.s1[i] = aside || how != PLAIN ? td_vd_add_aside(d, sums.s1[i]) : sums.s1[i] + d;
            if (how == PLAIN && dtype != TD_F64)
                sums.s2[i] = td_vd_exact_fma(d, d, sums.s2[i]);
            else
                sums.s2[i] = aside ? td_vd_add_aside(d * d, sums.s2[i]) : sums.s2[i] + d * d;
        }
    }
    return sums;
}

/* One row of floats, around zero. */
TD_INLINE void add_row(struct lanes *sums, const uint8_t *p)
{
    __builtin_prefetch(p + AHEAD);
    for (int i = 0; i < TD_ROW_DOUBLES; i++) {
        td_vd x = td_column_load(TD_F32, p, 0, i);
        sums->s1[i] = td_vd_add_aside(x, sums->s1[i]); /* those that add widen, too */
        sums->s2[i] = td_vd_exact_fma(x, x, sums->s2[i]);
    }
}

/* Floats as they lie in memory, all taken to be finite and around zero: there everything fits the registers
 * of a wide tier at once, and one loop keeps all units busy. A function of its own, or the compiler takes one
 * of several loops for rare and does not align it. */
static __attribute__((noinline)) void add_and_see(struct lanes *sums, struct td_seen_floats *seen,
                                                  const uint8_t *p, int64_t count)
{
    struct lanes added = *sums;
    struct td_seen_floats noted = *seen;
    for (int64_t at = 0; at < count; at += TD_LANES) {
        add_row(&added, p + at * 4);
        struct td_floats row = td_floats_load(TD_F32, p + at * 4);
        for (int i = 0; i < TD_ROW_FLOATS; i++)
            noted = td_see_floats(noted, row.v[i], false);
    }
    *sums = added;
    *seen = noted;
}

/* The same, where the bits are likely to tell all there is to see. */
static __attribute__((noinline)) void add_and_see_words(struct lanes *sums, struct td_seen_floats *seen,
                                                        const uint8_t *p, int64_t count)
{
    struct lanes added = *sums;
    struct td_seen_words noted = TD_SEEN_NO_WORDS;
    for (int64_t at = 0; at < count; at += TD_LANES) {
        add_row(&added, p + at * 4);
        for (int i = 0; i < TD_ROW_FLOATS; i++)
            noted = td_see_words(noted, ((const td_vu32_loose *)(p + at * 4))[i]);
    }
    *sums = added;
    *seen = td_words_floats(&noted, *seen, p, count);
}

/* The same for 16-bit types, two rows at a time; how many elements that are. The others have to go another
 * way. */
TD_INLINE int64_t add_and_see_shorts(struct lanes *sums, struct td_seen_bits *seen, enum td_dtype dtype,
                                     const uint8_t *p, int64_t count)
{
#if TD_VECTOR_BYTES == 64
    _Alignas(64) float staged[4 * TD_SHORTS];
    struct lanes added = *sums;
    struct td_seen_shorts noted = TD_SEEN_NO_SHORTS;
    int64_t at = 0;
    for (; at + TD_SHORTS <= count; at += TD_SHORTS) {
        __m512i bits = _mm512_loadu_si512(p + at * 2);
        __builtin_prefetch(p + at * 2 + AHEAD);
        noted = td_see_shorts(noted, bits);
        float *place = staged + at % (4 * TD_SHORTS);
        td_shorts_stage(dtype, p + at * 2, bits, place);
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < TD_ROW_DOUBLES; c++) {
                td_vd x = td_shorts_column(dtype, place, r, c);
                added.s1[c] += x;
                added.s2[c] = td_vd_exact_fma(x, x, added.s2[c]);
            }
    }
    td_shorts_settle(dtype, added.s1);
    td_shorts_settle(dtype, added.s2);
    *sums = added;
    *seen = td_shorts_bits(&noted);
    return at;
#else
    (void)sums, (void)seen, (void)dtype, (void)p, (void)count;
    return 0;
#endif
}

TD_INLINE bool all_finite(const struct lanes *sums)
{
    td_vd total = {0};
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        total += sums->s1[i] + sums->s2[i];
    td_vi64 finite = td_vd_finite(total);
    int64_t count = 0;
    for (int i = 0; i < TD_PER_DOUBLES; i++)
        count -= finite[i];
    return count == TD_PER_DOUBLES;
}

/* --- A block -------------------------------------------------------------------------------------------- */

/* The rows of a block, in order; false when they turn out not to be what `how` takes them for. */
TD_INLINE bool scan(struct td_sums *s, enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size,
                    enum how how)
{
    struct lanes sums = {0};
    const enum td_dtype seen_as = size == 2 && how == MASKED ? TD_F32 : dtype;
    struct td_seen seen;
    struct td_seen_bits bits = TD_SEEN_NO_BITS;
    td_seen_begin(&seen, seen_as);
    const bool at_once = TD_VECTOR_BYTES >= 32 && dtype == TD_F32 && how == PLAIN;
    if (at_once && count > 0 && td_row_has_both_signs(p))
        add_and_see_words(&sums, &seen.floats, p, count);
    else if (at_once)
        add_and_see(&sums, &seen.floats, p, count);
    const int64_t taken = size == 2 && how == PLAIN ? add_and_see_shorts(&sums, &bits, dtype, p, count) : 0;
    for (int64_t at = taken; at < count && !at_once; at += STAGE) {
        float stage[STAGE];
        const uint8_t *elements = p + at * size;
        int64_t length = count - at < STAGE ? count - at : STAGE;
        for (int64_t i = 0; i < length && size == 2; i += TD_LANES) {
            __builtin_prefetch(elements + i * 2 + AHEAD);
            td_stage(dtype, elements + i * 2, stage + i);
        }
        const uint8_t *wide = size == 2 ? (const uint8_t *)stage : elements;
        if (seen_as == TD_F64)
            seen.doubles = td_look_at_doubles(seen.doubles, wide, length, how == MASKED, AHEAD);
        else if (seen_as == TD_F32)
            seen.floats = td_look_at_floats(seen.floats, wide, length, how == MASKED, size == 4 ? AHEAD : 0);
        else
            bits = td_look_at_bits(bits, elements, length);
        sums = add_rows(sums, dtype, wide, length, s->shift, how);
    }
    if (how != MASKED && !all_finite(&sums))
        return false;
    if (seen_as != TD_F64 && seen_as != TD_F32)
        seen.keys = td_bits_keys(&bits, seen.keys, p, count);
    memcpy(s->s1, sums.s1, sizeof s->s1);
    memcpy(s->s2, sums.s2, sizeof s->s2);
    td_seen_note(s, &seen, seen_as);
    return true;
}

TD_INLINE struct td_partial block_stats(enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size)
{
    struct td_sums s; /* scan fills in s1 and s2 */
    s.shift = td_vector_shift(dtype, p, count, size);
    s.min = (double)INFINITY;
    s.max = -(double)INFINITY;
    s.nan = s.inf = s.zeros = 0;
    int64_t rows = count / TD_LANES * TD_LANES;
    bool done =
        s.shift == 0 ? scan(&s, dtype, p, rows, size, PLAIN) : scan(&s, dtype, p, rows, size, SHIFTED);
    if (!done)
        scan(&s, dtype, p, rows, size, MASKED);
    for (int64_t i = rows; i < count; i++)
        td_sums_add(&s, i % TD_LANES, td_float_reader(dtype)(p + i * size));
    return td_sums_finish(&s, count);
}

static struct td_partial stats_f64(const void *elements, int64_t count)
{
    return block_stats(TD_F64, elements, count, 8);
}

static struct td_partial stats_f32(const void *elements, int64_t count)
{
    return block_stats(TD_F32, elements, count, 4);
}

static struct td_partial stats_f16(const void *elements, int64_t count)
{
    return block_stats(TD_F16, elements, count, 2);
}

static struct td_partial stats_bf16(const void *elements, int64_t count)
{
    return block_stats(TD_BF16, elements, count, 2);
}

const struct td_kernels TIER_TABLE(TD_TIER) = {
    .name = TIER_NAME(TD_TIER),
    .stats = {[TD_F64] = stats_f64, [TD_F32] = stats_f32, [TD_F16] = stats_f16, [TD_BF16] = stats_bf16},
    .pairs = &PAIR_TABLE(TD_TIER),
    .spreads = &SPREAD_TABLE(TD_TIER),
    .tiles = &TILE_TABLE(TD_TIER),
};
