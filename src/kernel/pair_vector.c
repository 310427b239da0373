/* pair_vector.c: a block of pairs in vectors; compiled once per vector tier, as stats_vector.c is.
 *
 * A row of 16 lanes times eight sums is more than the registers hold, and a sum that lives in memory costs a
 * load and a store, one after the other, for each addition. So a block is cut into tiles that stay in L1, and
 * a tile is gone over column by column (a column: one vector of doubles), its sums in registers; each lane
 * still sees its elements in order. What is left (minimum, maximum, zeros, units in the last place) is looked
 * at in lanes as wide as the type, in loops of their own.
 *
 * The divisions alone take 0.35 ns a pair on a Zen 3 at 3.2 GHz, but they run beside the rest. All that adds,
 * compares or widens shares two of the four units there, so the sums of the sides are added on the other two.
 * One division for several pairs (times the others' divisors) is more work than it saves. What helps is to do
 * less: hence packed blocks (pack.h), in which a loop over all pairs is left with one side only.
 *
 * The loops take all values to be finite. If one is not, the sums of |d| show it (an infinity or NaN never
 * leaves a sum again), or the bits of a packed block; then the block is done over by the specification.
 */
#include "kernel/pack.h"
#include "kernel/pair_sums.h"
#include "kernel/tier.h"

#include <string.h>

#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_pairs_, tier)
#define TIER_KERNELS(tier) PASTE(td_kernels_, tier)

/* Rows of a tile: 1024 pairs, 16 KiB at most. Memory is asked for one tile ahead, in pairs. Of packed pairs
 * both sides take the place of one, so that less of L1 is in use. */
enum { TILE = TD_PACK_TILE, AHEAD = TD_PACK_AHEAD, PACKED_TILE = TILE / 2 };

/* Columns that the registers hold at once: AVX-512 has twice as many. And those that ask for one side's
 * memory.
 */
enum { AT_ONCE = TD_VECTOR_BYTES == 64 ? 2 : 1, SHARES = TD_ROW_DOUBLES / 2 };

/* What side b of packed pairs follows from takes the place of its sums. */
enum { MOVED = TD_SUM_B1, PRODUCT = TD_SUM_B2 };

/* Some rows of both sides: as they are in memory, and as doubles or floats. */
struct tile {
    const uint8_t *a, *b, *wide_a, *wide_b;
    int64_t rows;
    bool first;
};

/* Types whose distance is counted in 16 or 32 bits; that count tells how many differ as well. */
TD_INLINE bool has_ulps(enum td_dtype ta, enum td_dtype tb)
{
    return ta == tb && ta != TD_F64;
}

/* A tile as float32, or float64 where it is that. */
TD_INLINE const uint8_t *widen_tile(enum td_dtype dtype, const uint8_t *p, int64_t rows, float *space)
{
    if (dtype == TD_F64 || dtype == TD_F32)
        return p;
    for (int64_t at = 0; at < rows * TD_LANES; at += TD_LANES)
        td_stage(dtype, p + at * 2, space + at);
    return (const uint8_t *)space;
}

/* --- Adding up ------------------------------------------------------------------------------------------ */

/* All that a loop does not use should be in memory by now: the registers just suffice for what it does. */
#define IN_MEMORY(p) __asm__ volatile("" : "+r"(p) : : "memory")

/* What is added up of AT_ONCE columns. */
struct columns {
    td_vd sum[AT_ONCE][TD_COLUMN_SUMS], max_abs, max_rel;
    td_vi64 differing;
    const uint8_t *ahead[AT_ONCE]; /* memory to ask for */
};

TD_INLINE struct columns columns_take(const struct td_pair_sums *s, int c, bool first)
{
    struct columns k = {.max_abs = s->max_abs, .max_rel = s->max_rel, .differing = s->differing};
    for (int i = 0; i < AT_ONCE; i++)
        for (int n = 0; n < TD_COLUMN_SUMS; n++)
            k.sum[i][n] = first ? td_vd_all(0) : s->v[n].v[c + i];
    return k;
}

TD_INLINE void columns_put(struct td_pair_sums *s, int c, const struct columns *k)
{
    for (int i = 0; i < AT_ONCE; i++)
        for (int n = 0; n < TD_COLUMN_SUMS; n++)
            s->v[n].v[c + i] = k->sum[i][n];
    s->max_abs = k->max_abs;
    s->max_rel = k->max_rel;
    s->differing = k->differing;
}

/* Columns c.. of the row at element `at`. `aside`: the last of them is not divided by the divider. */
TD_INLINE void add_row(struct columns *k, const struct td_pair_sums *s, int c, enum td_dtype ta,
                       enum td_dtype tb, bool shifted, const struct tile *t, int64_t at, bool aside)
{
    for (int i = 0; i < AT_ONCE; i++) {
        td_vd x = td_column_load(ta, t->wide_a, at, c + i), y = td_column_load(tb, t->wide_b, at, c + i);
        __builtin_prefetch(k->ahead[i], 0, 2);
        k->ahead[i] += TD_LANES / SHARES * td_width((c + i) % 2 ? tb : ta);
        td_add_side(&k->sum[i][TD_SUM_A1], ta, x, s->shift_a, shifted, true);
        td_add_side(&k->sum[i][TD_SUM_B1], tb, y, s->shift_b, shifted, true);
        td_vd d = td_add_distances(k->sum[i], &k->max_abs, &k->max_rel, x, y, false,
                                   aside && i == AT_ONCE - 1 && ta != TD_F64);
        if (!has_ulps(ta, tb))
            k->differing += d != td_vd_all(0);
    }
}

/* AT_ONCE columns of a tile, from column c on. Meanwhile it asks for the next tile's memory, which the loop
 * would leave idle: every other column for the same side, each for its share of the tile, so that the demand
 * is even. One vector of four is divided aside: then the divider and all other units are busy for as long. */
TD_INLINE void add_columns(struct td_pair_sums *s, int c, enum td_dtype ta, enum td_dtype tb, bool shifted,
                           const struct tile *t)
{
    IN_MEMORY(s);
    const int64_t end = t->rows * TD_LANES;
    struct columns k = columns_take(s, c, t->first);
    for (int i = 0; i < AT_ONCE; i++) {
        const bool of_b = (c + i) % 2;
        k.ahead[i] = (of_b ? t->b : t->a) +
                     (AHEAD + (c + i) / 2 * (TILE * TD_LANES / SHARES)) * td_width(of_b ? tb : ta);
    }
    int64_t at = 0;
    for (; at + TD_LANES < end; at += 2 * TD_LANES) {
        add_row(&k, s, c, ta, tb, shifted, t, at, false);
        add_row(&k, s, c, ta, tb, shifted, t, at + TD_LANES, true);
    }
    if (at < end)
        add_row(&k, s, c, ta, tb, shifted, t, at, false);
    columns_put(s, c, &k);
}

/* The sums of a.b, to which `lanes` has what follows the rows. */
TD_INLINE void add_products(double lanes[TD_LANES], enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                            const uint8_t *b, int64_t rows)
{
    float space[2][TILE * TD_LANES];
    struct td_doubles sum = {{{0}}};
    for (int64_t row = 0; row < rows; row += TILE) {
        int64_t taken = rows - row < TILE ? rows - row : TILE;
        const uint8_t *p = widen_tile(ta, a + row * TD_LANES * td_width(ta), taken, space[0]);
        const uint8_t *q = widen_tile(tb, b + row * TD_LANES * td_width(tb), taken, space[1]);
        for (int64_t at = 0; at < taken * TD_LANES; at += TD_LANES)
            for (int c = 0; c < TD_ROW_DOUBLES; c++) {
                td_vd x = td_column_load(ta, p, at, c), y = td_column_load(tb, q, at, c);
                sum.v[c] = ta == TD_F64 ? sum.v[c] + x * y : td_vd_exact_fma(x, y, sum.v[c]);
            }
    }
    for (int i = 0; i < TD_LANES; i++)
        lanes[i] += ((const double *)sum.v)[i];
}

/* --- Looking -------------------------------------------------------------------------------------------- */

TD_INLINE void add_ulps_f64(struct td_pair_sums *s, const uint8_t *a, const uint8_t *b, int64_t rows)
{
    for (int64_t i = 0; i < rows * TD_ROW_DOUBLES; i++) {
        td_vi64 x = td_vi64_order((td_vi64)((const td_vd_loose *)a)[i]);
        td_vi64 y = td_vi64_order((td_vi64)((const td_vd_loose *)b)[i]);
        td_vu64 less = (td_vu64)(x < y), d = (td_vu64)x - (td_vu64)y;
        td_vi64 distance = (td_vi64)(((d ^ less) - less) ^ TD_SIGN_64), larger = distance > s->max_ulp_wide;
        s->max_ulp_wide = (distance & larger) | (s->max_ulp_wide & ~larger);
    }
}

TD_INLINE void look_at_side(struct td_seen *seen, enum td_dtype dtype, const uint8_t *p, int64_t count)
{
    if (dtype == TD_F64)
        seen->doubles = td_look_at_doubles(seen->doubles, p, count, false, 0);
    else if (dtype == TD_F32)
        seen->floats = td_look_at_floats(seen->floats, p, count, false, 0);
    else
        seen->keys = td_look_at_keys(seen->keys, p, count);
}

/* Both sides of a 16-bit type: looks at them, which shares the keys with their distances, and stages them. A
 * loop that only stages would wait for its stores. */
TD_INLINE void look_and_stage(struct td_pair_sums *s, enum td_dtype dtype, struct tile *t,
                              float space[2][TILE * TD_LANES])
{
    struct td_seen_keys seen_a = s->a.keys, seen_b = s->b.keys;
    struct td_ulps_16 ulps = s->ulps.narrow;
    for (int64_t at = 0; at < t->rows * TD_LANES; at += TD_LANES) {
        const uint8_t *p = t->a + at * 2, *q = t->b + at * 2;
        for (int i = 0; i < TD_ROW_KEYS; i++) {
            td_vi16 x = td_vi16_order(((const td_vi16_loose *)p)[i]);
            td_vi16 y = td_vi16_order(((const td_vi16_loose *)q)[i]);
            seen_a = td_see_keys(seen_a, x);
            seen_b = td_see_keys(seen_b, y);
            ulps = td_ulps_see_16(ulps, x, y);
        }
        td_stage(dtype, p, space[0] + at);
        td_stage(dtype, q, space[1] + at);
    }
    s->a.keys = seen_a;
    s->b.keys = seen_b;
    s->ulps.narrow = ulps;
    s->ulps.seen += t->rows * TD_LANES;
}

/* How far float32 are apart, and, where `see`, both sides by their bits. */
TD_INLINE void look_at_words(struct td_pair_sums *s, const struct tile *t, bool see)
{
    struct td_seen_words seen_a = s->words_a, seen_b = s->words_b;
    struct td_ulps_32 near = {{0}, {0}};
    for (int64_t at = 0; at < t->rows * TD_LANES * 4; at += TD_VECTOR_BYTES) {
        td_vu32 x = *(const td_vu32_loose *)(t->a + at), y = *(const td_vu32_loose *)(t->b + at);
        if (see) {
            seen_a = td_see_words(seen_a, x);
            seen_b = td_see_words(seen_b, y);
        }
        near = td_ulps_see_near(near, x, y);
    }
    s->words_a = seen_a;
    s->words_b = seen_b;
    td_ulps_add_32(&s->ulps, &near, t->a, t->b, t->rows * TD_LANES);
}

/* Looks at all of a tile, and makes it doubles or floats. */
TD_INLINE void look(struct td_pair_sums *s, enum td_dtype ta, enum td_dtype tb, struct tile *t,
                    float space[2][TILE * TD_LANES])
{
    const int64_t count = t->rows * TD_LANES;
    IN_MEMORY(s);
    if (has_ulps(ta, tb) && td_width(ta) == 2) {
        look_and_stage(s, ta, t, space);
        t->wide_a = (const uint8_t *)space[0];
        t->wide_b = (const uint8_t *)space[1];
        return;
    }
    if (has_ulps(ta, tb) && s->by_words) {
        look_at_words(s, t, true);
    } else {
        look_at_side(&s->a, ta, t->a, count);
        look_at_side(&s->b, tb, t->b, count);
        if (has_ulps(ta, tb))
            look_at_words(s, t, false);
        else if (ta == TD_F64)
            add_ulps_f64(s, t->a, t->b, t->rows);
    }
    t->wide_a = widen_tile(ta, t->a, t->rows, space[0]);
    t->wide_b = widen_tile(tb, t->b, t->rows, space[1]);
}

/* --- Packed pairs --------------------------------------------------------------------------------------- */

/* Columns c.. of a row of packed pairs. `exact`: side a is not shifted, and products are exact. */
TD_INLINE void add_packed_row(struct columns *k, const float *a, const float *b, double shift, bool exact,
                              bool aside)
{
    for (int i = 0; i < AT_ONCE; i++, a += TD_PER_DOUBLES, b += TD_PER_DOUBLES) {
        td_vd x = td_vd_load_f32((const uint8_t *)a), y = td_vd_load_f32((const uint8_t *)b), d = x - y;
        td_vd *sum = k->sum[i];
        td_add_distances(sum, &k->max_abs, &k->max_rel, x, y, exact, aside && i == AT_ONCE - 1);
        sum[MOVED] = td_vd_add_aside(d, sum[MOVED]);
        sum[PRODUCT] =
            exact ? td_vd_exact_fma(d, x, sum[PRODUCT]) : sum[PRODUCT] + d * (x - td_vd_all(shift));
    }
}

/* AT_ONCE columns of packed pairs, from column c on, as add_columns. */
TD_INLINE void add_packed_columns(struct td_pair_sums *s, int c, int64_t rows, const float *a, const float *b,
                                  bool exact, bool first)
{
    const int64_t end = rows * TD_LANES;
    struct columns k = columns_take(s, c, first);
    for (int i = 0; i < AT_ONCE; i++)
        for (int n = TD_SUM_A1; n <= TD_SUM_A2; n++)
            k.sum[i][n] = s->v[n].v[c + i]; /* there already */
    a += c * TD_PER_DOUBLES;
    b += c * TD_PER_DOUBLES;
    int64_t at = 0;
    for (; at + TD_LANES < end; at += 2 * TD_LANES) {
        add_packed_row(&k, a + at, b + at, s->shift_a, exact, false);
        add_packed_row(&k, a + at + TD_LANES, b + at + TD_LANES, s->shift_a, exact, true);
    }
    if (at < end)
        add_packed_row(&k, a + at, b + at, s->shift_a, exact, false);
    columns_put(s, c, &k);
}

/* All that was packed, of which no magnitude is above `largest`; the one nearest to zero. */
TD_INLINE uint16_t add_packed(struct td_pair_sums *s, enum td_dtype dtype, struct td_packing *k,
                              uint16_t largest)
{
    float *a = k->wide, *b = a + PACKED_TILE * TD_LANES;
    const int64_t rows = k->count / TD_LANES + 1;
    uint16_t nearest = UINT16_MAX;
    for (int64_t row = 0; row < rows; row += PACKED_TILE) {
        int64_t taken = rows - row < PACKED_TILE ? rows - row : PACKED_TILE;
        uint16_t near = td_pack_stage(k, row, taken, dtype, a, b, &s->ulps);
        bool exact = s->shift_a == 0 && td_pack_is_exact(dtype, near, largest);
        for (int c = 0; c < TD_ROW_DOUBLES; c += AT_ONCE)
            if (exact)
                add_packed_columns(s, c, taken, a, b, true, row == 0);
            else
                add_packed_columns(s, c, taken, a, b, false, row == 0);
        nearest = near < nearest ? near : nearest;
    }
    s->ulps.seen += td_pack_differing(k, nearest == 0);
    return nearest;
}

/* --- A block -------------------------------------------------------------------------------------------- */

TD_INLINE bool all_finite(const struct td_pair_sums *s)
{
    td_vd sum = {0};
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        sum += s->v[TD_SUM_ABS].v[i];
    td_vi64 finite = td_vd_finite(sum);
    int64_t count = 0;
    for (int i = 0; i < TD_PER_DOUBLES; i++)
        count -= finite[i];
    return count == TD_PER_DOUBLES;
}

TD_INLINE void scan(struct td_pair_sums *s, enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                    const uint8_t *b, int64_t rows, bool shifted)
{
    float space[2][TILE * TD_LANES];
    for (int64_t row = 0; row < rows; row += TILE) {
        struct tile t = {.a = a + row * TD_LANES * td_width(ta),
                         .b = b + row * TD_LANES * td_width(tb),
                         .rows = rows - row < TILE ? rows - row : TILE,
                         .first = row == 0};
        look(s, ta, tb, &t, space);
        for (int c = 0; c < TD_ROW_DOUBLES; c += AT_ONCE)
            add_columns(s, c, ta, tb, shifted, &t);
    }
}

/* One side of what was summed, and its elements behind the last whole row. */
TD_INLINE struct td_partial finish_side(const struct td_doubles sums[2], double shift,
                                        const struct td_seen *seen, enum td_dtype dtype, const uint8_t *p,
                                        int64_t count)
{
    struct td_sums s;
    s.shift = shift;
    s.min = (double)INFINITY;
    s.max = -(double)INFINITY;
    s.nan = s.inf = s.zeros = 0;
    memcpy(s.s1, sums[0].v, sizeof s.s1);
    memcpy(s.s2, sums[1].v, sizeof s.s2);
    td_seen_note(&s, seen, dtype);
    for (int64_t i = count / TD_LANES * TD_LANES; i < count; i++)
        td_sums_add(&s, i % TD_LANES, td_float_reader(dtype)(p + i * td_width(dtype)));
    return td_sums_finish(&s, count);
}

TD_INLINE void collect(const struct td_pair_sums *s, struct td_pair_lanes *out)
{
    for (int k = 0; k < TD_SUM_AB; k++)
        memcpy(out->sum[k], s->v[k].v, sizeof out->sum[k]);
    memset(out->sum[TD_SUM_AB], 0, sizeof out->sum[TD_SUM_AB]);
    out->max_abs = out->max_rel = out->max_ulp = 0;
    out->unpaired = out->differing = out->nan_both = out->inf_same = 0;
    for (int i = 0; i < TD_PER_DOUBLES; i++) {
        out->max_abs = s->max_abs[i] > out->max_abs ? s->max_abs[i] : out->max_abs;
        out->max_rel = s->max_rel[i] > out->max_rel ? s->max_rel[i] : out->max_rel;
        double ulp = (double)((uint64_t)s->max_ulp_wide[i] ^ TD_SIGN_64);
        out->max_ulp = ulp > out->max_ulp ? ulp : out->max_ulp;
        out->differing += (uint64_t)-s->differing[i];
    }
    td_ulps_collect(&s->ulps, out);
}

/* Adds the pairs behind the last whole row: lane i of them is lane i of the block. */
static void add_tail(struct td_pair_lanes *out, const struct td_pair_lanes *tail)
{
    for (int k = 0; k < TD_PAIR_SUMS; k++)
        for (int i = 0; i < TD_LANES; i++)
            out->sum[k][i] += tail->sum[k][i];
    out->max_abs = tail->max_abs > out->max_abs ? tail->max_abs : out->max_abs;
    out->max_rel = tail->max_rel > out->max_rel ? tail->max_rel : out->max_rel;
    out->max_ulp = tail->max_ulp > out->max_ulp ? tail->max_ulp : out->max_ulp;
    out->unpaired += tail->unpaired;
    out->differing += tail->differing;
    out->nan_both += tail->nan_both;
    out->inf_same += tail->inf_same;
}

TD_INLINE void begin(struct td_pair_sums *s, enum td_dtype ta, enum td_dtype tb)
{
    s->max_abs = s->max_rel = td_vd_all(0);
    s->max_ulp_wide = (td_vi64){0} + INT64_MIN;
    s->differing = (td_vi64){0};
    s->ulps.seen = 0;
    s->ulps.wide = (struct td_ulps_32){{0}, {0}};
    s->ulps.narrow = (struct td_ulps_16){{0}, {0}};
    td_seen_begin(&s->a, ta);
    td_seen_begin(&s->b, tb);
    s->words_a = s->words_b = TD_SEEN_NO_WORDS;
    s->by_words = false;
}

/* A whole block of a 16-bit type; false where something is not finite. */
TD_INLINE bool packed_block(struct td_pair_sums *s, enum td_dtype dtype, const uint8_t *a, const uint8_t *b,
                            struct td_pair_block *out)
{
    struct td_packing k; /* most of it is written before it is read, so it is not worth clearing */
    td_pack_begin(&k);
    s->shift_a = td_vector_shift(dtype, a, TD_BLOCK_LENGTH, 2);
    s->v[TD_SUM_A1] = s->v[TD_SUM_A2] = (struct td_doubles){{{0}}};
    for (const uint8_t *p = a, *q = b; p < a + TD_BLOCK_LENGTH * 2;
         p += TILE * TD_LANES * 2, q += TILE * TD_LANES * 2) {
        if (s->shift_a == 0)
            td_pack_tile(&k, &s->v[TD_SUM_A1], dtype, p, q, 0, false);
        else
            td_pack_tile(&k, &s->v[TD_SUM_A1], dtype, p, q, s->shift_a, true);
    }
    td_pack_end(&k, &s->v[TD_SUM_A1], dtype);
    const uint16_t infinity = dtype == TD_F16 ? 0x7c00 : 0x7f80;
    uint16_t largest_a = td_bits_largest(&k.seen_a), largest_b = td_bits_largest(&k.seen_b);
    uint16_t largest = largest_a > largest_b ? largest_a : largest_b;
    if (largest >= infinity)
        return false;
    k.seen_b.nearest = td_vu16_min(k.seen_a.nearest, (td_vu16){0} + add_packed(s, dtype, &k, largest));
    s->a.keys = td_bits_keys(&k.seen_a, s->a.keys, a, TD_BLOCK_LENGTH);
    s->b.keys = td_bits_keys(&k.seen_b, s->b.keys, b, TD_BLOCK_LENGTH);
    out->a = finish_side(&s->v[TD_SUM_A1], s->shift_a, &s->a, dtype, a, TD_BLOCK_LENGTH);
    return true;
}

/* Side b of a packed block of which all else is known. */
TD_INLINE void follow(struct td_pair_sums *s, enum td_dtype dtype, const uint8_t *b,
                      struct td_pair_block *out)
{
    double moves[TD_PAIR_MOVES][TD_LANES];
    memcpy(moves[TD_MOVE_SUM], s->v[TD_SUM_B1].v, sizeof moves[TD_MOVE_SUM]);
    memcpy(moves[TD_MOVE_PRODUCT], s->v[TD_SUM_B2].v, sizeof moves[TD_MOVE_PRODUCT]);
    out->b = finish_side(&s->v[TD_SUM_B1], 0, &s->b, dtype, b, TD_BLOCK_LENGTH);
    if (!td_pair_follow(&out->b, &out->a, s->shift_a, moves, out->pairs.sum[TD_SUM_SQUARE]))
        out->b = TIER_KERNELS(TD_TIER).stats[dtype](b, TD_BLOCK_LENGTH);
}

/* The rows of any block, and what each side of it comes to; false where something in them is not finite. */
TD_INLINE bool plain_block(struct td_pair_sums *s, enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                           const uint8_t *b, int64_t count, struct td_pair_block *out)
{
    int64_t rows = count / TD_LANES;
    if (ta == TD_F32 && tb == TD_F32 && rows > 0)
        s->by_words = td_row_has_both_signs(a) && td_row_has_both_signs(b);
    s->shift_a = td_vector_shift(ta, a, count, td_width(ta));
    s->shift_b = td_vector_shift(tb, b, count, td_width(tb));
    if (s->shift_a == 0 && s->shift_b == 0)
        scan(s, ta, a, tb, b, rows, false);
    else
        scan(s, ta, a, tb, b, rows, true);
    if (rows == 0 || !all_finite(s))
        return false;
    if (s->by_words) {
        s->a.floats = td_words_floats(&s->words_a, s->a.floats, a, rows * TD_LANES);
        s->b.floats = td_words_floats(&s->words_b, s->b.floats, b, rows * TD_LANES);
    }
    out->a = finish_side(&s->v[TD_SUM_A1], s->shift_a, &s->a, ta, a, count);
    out->b = finish_side(&s->v[TD_SUM_B1], s->shift_b, &s->b, tb, b, count);
    return true;
}

TD_INLINE void block(enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b, int64_t count,
                     bool packs, struct td_pair_block *out)
{
    int64_t rows = count / TD_LANES, taken = rows * TD_LANES;
    td_pair_lanes_kernel *exact = td_pair_lanes_scalar[ta][tb];
    struct td_pair_lanes lanes;
    struct td_pair_sums s; /* not all of it is ever used, so it is not worth clearing */
    begin(&s, ta, tb);
    if (!(packs ? packed_block(&s, ta, a, b, out) : plain_block(&s, ta, a, tb, b, count, out))) {
        out->a = TIER_KERNELS(TD_TIER).stats[ta](a, count);
        out->b = TIER_KERNELS(TD_TIER).stats[tb](b, count);
        exact(a, b, count, &lanes);
        out->pairs = td_pair_finish(&lanes, count);
        td_pair_product(out);
        return;
    }
    collect(&s, &lanes);
    if (taken < count) {
        struct td_pair_lanes tail;
        exact(a + taken * td_width(ta), b + taken * td_width(tb), count - taken, &tail);
        add_tail(&lanes, &tail);
    }
    out->pairs = td_pair_finish(&lanes, count);
    if (packs)
        follow(&s, ta, b, out);
    if (!td_pair_product(out)) {
        add_products(lanes.sum[TD_SUM_AB], ta, a, tb, b, rows);
        out->pairs.sum[TD_SUM_AB] = td_lanes_combine(lanes.sum[TD_SUM_AB]);
    }
}

TD_INLINE struct td_beyond beyond(enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b,
                                  int64_t count, double rtol, double atol, double least)
{
    float space[2][TILE * TD_LANES];
    td_vi64 beyond = {0}, usual = (td_vi64){0} - 1; /* counted downwards; -1 where all are at most `least` */
    for (int64_t row = 0; row < count / TD_LANES; row += TILE) {
        int64_t taken = count / TD_LANES - row < TILE ? count / TD_LANES - row : TILE;
        const uint8_t *p = widen_tile(ta, a + row * TD_LANES * td_width(ta), taken, space[0]);
        const uint8_t *q = widen_tile(tb, b + row * TD_LANES * td_width(tb), taken, space[1]);
        for (int64_t at = 0; at < taken * TD_LANES; at += TD_LANES)
            for (int c = 0; c < TD_ROW_DOUBLES; c++) {
                td_vd x = td_column_load(ta, p, at, c), d = td_vd_absolute(x - td_column_load(tb, q, at, c));
                beyond += d > td_vd_all(atol) + td_vd_all(rtol) * td_vd_absolute(x);
                usual &= d <= td_vd_all(least);
            }
    }
    struct td_beyond found = {0};
    for (int i = 0; i < TD_PER_DOUBLES; i++) {
        found.count += (uint64_t)-beyond[i];
        found.notable |= !usual[i];
    }
    return found;
}

#define PAIR(name, ta, tb)                                                                          \
    static void name(const void *a, const void *b, int64_t count, struct td_pair_block *out)        \
    {                                                                                               \
        block(ta, a, tb, b, count, td_pair_packs(ta, a, tb, b, count), out);                        \
    }                                                                                               \
    static struct td_beyond beyond_##name(const void *a, const void *b, int64_t count, double rtol, \
                                          double atol, double least)                                \
    {                                                                                               \
        return beyond(ta, a, tb, b, count, rtol, atol, least);                                      \
    }

PAIR(f64_f64, TD_F64, TD_F64)
PAIR(f32_f32, TD_F32, TD_F32)
PAIR(f32_f16, TD_F32, TD_F16)
PAIR(f32_bf16, TD_F32, TD_BF16)
PAIR(f16_f32, TD_F16, TD_F32)
PAIR(f16_f16, TD_F16, TD_F16)
PAIR(f16_bf16, TD_F16, TD_BF16)
PAIR(bf16_f32, TD_BF16, TD_F32)
PAIR(bf16_f16, TD_BF16, TD_F16)
PAIR(bf16_bf16, TD_BF16, TD_BF16)

const struct td_pair_kernels TIER_TABLE(TD_TIER) = {
    .loop =
        {
            [TD_F64] = {[TD_F64] = f64_f64},
            [TD_F32] = {[TD_F32] = f32_f32, [TD_F16] = f32_f16, [TD_BF16] = f32_bf16},
            [TD_F16] = {[TD_F32] = f16_f32, [TD_F16] = f16_f16, [TD_BF16] = f16_bf16},
            [TD_BF16] = {[TD_F32] = bf16_f32, [TD_F16] = bf16_f16, [TD_BF16] = bf16_bf16},
        },
    .beyond =
        {
            [TD_F64] = {[TD_F64] = beyond_f64_f64},
            [TD_F32] = {[TD_F32] = beyond_f32_f32, [TD_F16] = beyond_f32_f16, [TD_BF16] = beyond_f32_bf16},
            [TD_F16] = {[TD_F32] = beyond_f16_f32, [TD_F16] = beyond_f16_f16, [TD_BF16] = beyond_f16_bf16},
            [TD_BF16] =
                {[TD_F32] = beyond_bf16_f32, [TD_F16] = beyond_bf16_f16, [TD_BF16] = beyond_bf16_bf16},
        },
};
