/* stats_vector.c: the statistics of one block in vectors; compiled once per vector tier.
 *
 * TD_TIER names the tier, TD_VECTOR_BYTES its registers. A block goes through in stages of 512 elements, each
 * seen by two short loops that fit the registers: one looks at the elements (minimum, maximum, zeros), the
 * other adds them up as doubles. All values are taken to be finite at first: it is the common case, and if
 * one is not, the sums of d and d^2 show it, because an infinity or NaN never leaves a sum again. Then the
 * block is done over with masks. Either way the bits are those of stats_scalar.c.
 */
#include "kernel/element.h"
#include "kernel/lanes.h"
#include "kernel/shift.h"
#include "kernel/tier.h"

#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_kernels_, tier)
#define PAIR_TABLE(tier) PASTE(td_pairs_, tier)
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

/* What the looking loops keep, by type. Counts run downwards: a comparison that holds is -1. */
struct seen_doubles {
    td_vd least, most;
    td_vi64 nan, inf, zeros;
};

struct seen_floats {
    td_vf least, most;
    td_vi32 nan, inf, zeros;
};

struct seen_keys {
    td_vi16 least, most, zeros;
};

/* --- Adding up ------------------------------------------------------------------------------------------ */

struct lanes {
    td_vd s1[TD_ROW_DOUBLES], s2[TD_ROW_DOUBLES];
};

/* Adds `count` elements, whole rows of TD_F32 or TD_F64. The square of a float is exact as a double: there
 * product and sum may be one instruction that rounds once. */
TD_INLINE struct lanes add_rows(struct lanes sums, enum td_dtype dtype, const uint8_t *p, int64_t count,
                                double around, enum how how)
{
    td_vd shift = td_vd_all(around);
    for (int64_t at = 0; at < count; at += TD_LANES) {
        struct td_doubles x = dtype == TD_F32 ? td_doubles_load_f32(p + at * 4) : td_doubles_load(p + at * 8);
        for (int i = 0; i < TD_ROW_DOUBLES; i++) {
            td_vd d = how == PLAIN ? x.v[i] : x.v[i] - shift;
            if (how == MASKED)
                d = (td_vd)((td_vi64)d & td_vd_finite(x.v[i]));
            sums.s1[i] += d;
            sums.s2[i] =
                how == PLAIN && dtype == TD_F32 ? td_vd_exact_fma(d, d, sums.s2[i]) : sums.s2[i] + d * d;
        }
    }
    return sums;
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

/* --- Looking -------------------------------------------------------------------------------------------- */

TD_INLINE struct seen_doubles look_at_doubles(struct seen_doubles seen, const uint8_t *p, int64_t count,
                                              enum how how)
{
    for (int64_t at = 0; at < count; at += TD_LANES) {
        struct td_doubles row = td_doubles_load(p + at * 8);
        __builtin_prefetch(p + at * 8 + AHEAD);
        __builtin_prefetch(p + at * 8 + AHEAD + 64);
        for (int i = 0; i < TD_ROW_DOUBLES; i++) {
            td_vd x = row.v[i], low = x, high = x;
            if (how == MASKED) {
                td_vi64 finite = td_vd_finite(x), nan = x != x;
                low = td_vd_select(finite, x, td_vd_all((double)INFINITY));
                high = td_vd_select(finite, x, td_vd_all(-(double)INFINITY));
                seen.nan += nan;
                seen.inf += ~finite ^ nan;
            }
            seen.least = td_vd_min(low, seen.least);
            seen.most = td_vd_max(high, seen.most);
            seen.zeros += x == td_vd_all(0);
        }
    }
    return seen;
}

TD_INLINE struct seen_floats look_at_floats(struct seen_floats seen, const uint8_t *p, int64_t count,
                                            enum how how)
{
    for (int64_t at = 0; at < count; at += TD_LANES) {
        struct td_floats row = td_floats_load(TD_F32, p + at * 4);
        __builtin_prefetch(p + at * 4 + AHEAD);
        for (int i = 0; i < TD_ROW_FLOATS; i++) {
            td_vf x = row.v[i], low = x, high = x;
            if (how == MASKED) {
                td_vi32 finite = td_vf_finite(x), nan = x != x;
                low = td_vf_select(finite, x, td_vf_all(INFINITY));
                high = td_vf_select(finite, x, td_vf_all(-INFINITY));
                seen.nan += nan;
                seen.inf += ~finite ^ nan;
            }
            seen.least = td_vf_min(low, seen.least);
            seen.most = td_vf_max(high, seen.most);
            seen.zeros += x == td_vf_all(0);
        }
    }
    return seen;
}

/* The 16-bit types are looked at as bits, sixteen at once, and put down as floats for add_rows. */
TD_INLINE struct seen_keys look_at_keys(struct seen_keys seen, enum td_dtype dtype, const uint8_t *p,
                                        int64_t count, float *stage)
{
    for (int64_t at = 0; at < count; at += TD_LANES) {
        const uint8_t *row = p + at * 2;
        __builtin_prefetch(row + AHEAD);
        for (int i = 0; i < TD_ROW_KEYS; i++) {
            td_vi16 signs, keys = td_keys_load(row + i * TD_VECTOR_BYTES, &signs);
            seen.least = td_vi16_min(keys, seen.least);
            seen.most = td_vi16_max(keys, seen.most);
            seen.zeros += keys == signs;
        }
        struct td_floats x = dtype == TD_BF16 ? td_floats_load_split(row) : td_floats_load(dtype, row);
        td_floats_store(&x, stage + at);
    }
    return seen;
}

/* --- What was seen, as scalars -------------------------------------------------------------------------- */

TD_INLINE void note_doubles(struct td_sums *s, const struct seen_doubles *seen)
{
    for (int i = 0; i < TD_PER_DOUBLES; i++) {
        s->min = seen->least[i] < s->min ? seen->least[i] : s->min;
        s->max = seen->most[i] > s->max ? seen->most[i] : s->max;
        s->nan -= (uint64_t)seen->nan[i];
        s->inf -= (uint64_t)seen->inf[i];
        s->zeros -= (uint64_t)seen->zeros[i];
    }
}

TD_INLINE void note_floats(struct td_sums *s, const struct seen_floats *seen)
{
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        s->min = (double)seen->least[i] < s->min ? (double)seen->least[i] : s->min;
        s->max = (double)seen->most[i] > s->max ? (double)seen->most[i] : s->max;
        s->nan -= (uint64_t)(int64_t)seen->nan[i];
        s->inf -= (uint64_t)(int64_t)seen->inf[i];
        s->zeros -= (uint64_t)(int64_t)seen->zeros[i];
    }
}

TD_INLINE void note_keys(struct td_sums *s, const struct seen_keys *seen, enum td_dtype dtype)
{
    int16_t min = INT16_MAX, max = INT16_MIN;
    for (int i = 0; i < TD_PER_KEYS; i++) {
        min = seen->least[i] < min ? seen->least[i] : min;
        max = seen->most[i] > max ? seen->most[i] : max;
        s->zeros -= (uint64_t)(int64_t)seen->zeros[i];
    }
    if (min > max)
        return; /* nothing was seen */
    uint16_t low = td_key_bits(min), high = td_key_bits(max);
    s->min = (double)(dtype == TD_F16 ? td_f16_value(low) : td_bf16_value(low));
    s->max = (double)(dtype == TD_F16 ? td_f16_value(high) : td_bf16_value(high));
}

/* --- A block -------------------------------------------------------------------------------------------- */

/* The rows of a block, in order; false when they turn out not to be what `how` takes them for. */
TD_INLINE bool scan(struct td_sums *s, enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size,
                    enum how how)
{
    struct lanes sums = {0};
    struct seen_doubles doubles = {td_vd_all((double)INFINITY), td_vd_all(-(double)INFINITY), {0}, {0}, {0}};
    struct seen_floats floats = {td_vf_all(INFINITY), td_vf_all(-INFINITY), {0}, {0}, {0}};
    struct seen_keys keys = {(td_vi16){0} + INT16_MAX, (td_vi16){0} + INT16_MIN, {0}};
    const bool by_keys = size == 2 && how != MASKED, split = by_keys && dtype == TD_BF16;
    for (int64_t at = 0; at < count; at += STAGE) {
        float stage[STAGE];
        const uint8_t *elements = p + at * size;
        int64_t length = count - at < STAGE ? count - at : STAGE;
        if (by_keys)
            keys = look_at_keys(keys, dtype, elements, length, stage);
        for (int64_t i = 0; i < length && size == 2 && !by_keys; i += TD_LANES) {
            struct td_floats row = td_floats_load(dtype, elements + i * 2);
            td_floats_store(&row, stage + i);
        }
        const uint8_t *wide = size == 2 ? (const uint8_t *)stage : elements;
        if (size == 8)
            doubles = look_at_doubles(doubles, wide, length, how);
        else if (!by_keys)
            floats = look_at_floats(floats, wide, length, how);
        sums = add_rows(sums, size == 8 ? TD_F64 : TD_F32, wide, length, s->shift, how);
    }
    if (how != MASKED && !all_finite(&sums))
        return false;
    memcpy(s->s1, sums.s1, sizeof s->s1);
    memcpy(s->s2, sums.s2, sizeof s->s2);
    if (split) {
        td_lanes_join(s->s1);
        td_lanes_join(s->s2);
    }
    note_doubles(s, &doubles);
    note_floats(s, &floats);
    note_keys(s, &keys, dtype);
    return true;
}

TD_INLINE struct td_doubles load_row(enum td_dtype dtype, const uint8_t *p)
{
    if (dtype == TD_F64)
        return td_doubles_load(p);
    struct td_floats row = td_floats_load(dtype, p);
    return td_floats_widen(&row);
}

/* td_shift for the common case: 64 finite values. Any other shows as a sum that is not finite. */
TD_INLINE double block_shift(enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size,
                             double (*value)(const uint8_t *))
{
    if (count >= TD_SHIFT_SAMPLE) {
        struct td_doubles row[4];
        td_vd sums[TD_ROW_DOUBLES], squares[TD_ROW_DOUBLES];
        for (int k = 0; k < 4; k++)
            row[k] = load_row(dtype, p + k * TD_LANES * size);
        for (int i = 0; i < TD_ROW_DOUBLES; i++) {
            td_vd a = row[0].v[i], b = row[1].v[i], c = row[2].v[i], d = row[3].v[i];
            sums[i] = (a + b) + (c + d);
            squares[i] = (a * a + b * b) + (c * c + d * d);
        }
        double sum = td_lanes_combine((const double *)sums),
               square = td_lanes_combine((const double *)squares);
        if (isfinite(sum))
            return td_shift_choose(sum, square, TD_SHIFT_SAMPLE);
    }
    return td_shift(p, count, size, value);
}

TD_INLINE struct td_partial block_stats(enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size,
                                        double (*value)(const uint8_t *))
{
    struct td_sums s; /* scan fills in s1 and s2 */
    s.shift = block_shift(dtype, p, count, size, value);
    s.min = (double)INFINITY;
    s.max = -(double)INFINITY;
    s.nan = s.inf = s.zeros = 0;
    int64_t rows = count / TD_LANES * TD_LANES;
    bool done =
        s.shift == 0 ? scan(&s, dtype, p, rows, size, PLAIN) : scan(&s, dtype, p, rows, size, SHIFTED);
    if (!done)
        scan(&s, dtype, p, rows, size, MASKED);
    for (int64_t i = rows; i < count; i++)
        td_sums_add(&s, i % TD_LANES, value(p + i * size));
    return td_sums_finish(&s, count);
}

static struct td_partial stats_f64(const void *elements, int64_t count)
{
    return block_stats(TD_F64, elements, count, 8, td_f64_at);
}

static struct td_partial stats_f32(const void *elements, int64_t count)
{
    return block_stats(TD_F32, elements, count, 4, td_f32_at);
}

static struct td_partial stats_f16(const void *elements, int64_t count)
{
    return block_stats(TD_F16, elements, count, 2, td_f16_at);
}

static struct td_partial stats_bf16(const void *elements, int64_t count)
{
    return block_stats(TD_BF16, elements, count, 2, td_bf16_at);
}

const struct td_kernels TIER_TABLE(TD_TIER) = {
    .name = TIER_NAME(TD_TIER),
    .stats = {[TD_F64] = stats_f64, [TD_F32] = stats_f32, [TD_F16] = stats_f16, [TD_BF16] = stats_bf16},
    .pairs = &PAIR_TABLE(TD_TIER),
    .tiles = &TILE_TABLE(TD_TIER),
};
