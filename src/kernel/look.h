/* look.h: what the vector tiers see of elements besides their sums: the least, the most, how many are zero.
 *
 * None of it rounds, so it is taken in lanes as wide as the type and in any order: doubles, floats, or the
 * bits of 16-bit types as integers ("keys", td_vi16_order), sixteen at once. Cheaper still are bits as they
 * are, where there are floats of both signs and no zero. The loops take all values to be finite; only where
 * `masked` do they count what is not and leave it out. td_seen_note turns what was seen into the scalars of
 * block.h.
 */
#ifndef TD_KERNEL_LOOK_H
#define TD_KERNEL_LOOK_H

#include "kernel/element.h"
#include "kernel/lanes.h"
#include "kernel/shift.h"

#include <stdbool.h>

/* By type. Counts run downwards: a comparison that holds is -1. */
struct td_seen_doubles {
    td_vd least, most;
    td_vi64 nan, inf, zeros;
};

struct td_seen_floats {
    td_vf least, most;
    td_vi32 nan, inf, zeros;
};

struct td_seen_keys {
    td_vi16 least, most, zeros;
};

/* Only one of them is in use, by the type as which the elements are looked at. */
struct td_seen {
    struct td_seen_doubles doubles;
    struct td_seen_floats floats;
    struct td_seen_keys keys;
};

/* Nothing yet. One member after the other: clearing all of it by the byte takes as long as 100 elements. */
TD_INLINE void td_seen_begin(struct td_seen *seen, enum td_dtype dtype)
{
    if (dtype == TD_F64) {
        seen->doubles.least = td_vd_all((double)INFINITY);
        seen->doubles.most = td_vd_all(-(double)INFINITY);
        seen->doubles.nan = seen->doubles.inf = seen->doubles.zeros = (td_vi64){0};
    } else if (dtype == TD_F32) {
        seen->floats.least = td_vf_all(INFINITY);
        seen->floats.most = td_vf_all(-INFINITY);
        seen->floats.nan = seen->floats.inf = seen->floats.zeros = (td_vi32){0};
    } else {
        seen->keys.least = (td_vi16){0} + INT16_MAX;
        seen->keys.most = (td_vi16){0} + INT16_MIN;
        seen->keys.zeros = (td_vi16){0};
    }
}

TD_INLINE struct td_seen_doubles td_see_doubles(struct td_seen_doubles seen, td_vd x, bool masked)
{
    td_vd low = x, high = x;
    if (masked) {
        td_vi64 finite = td_vd_finite(x), nan = x != x;
        low = td_vd_select(finite, x, td_vd_all((double)INFINITY));
        high = td_vd_select(finite, x, td_vd_all(-(double)INFINITY));
        seen.nan += nan;
        seen.inf += ~finite ^ nan;
    }
    seen.least = td_vd_min(low, seen.least);
    seen.most = td_vd_max(high, seen.most);
    seen.zeros += x == td_vd_all(0);
    return seen;
}

TD_INLINE struct td_seen_floats td_see_floats(struct td_seen_floats seen, td_vf x, bool masked)
{
    td_vf low = x, high = x;
    if (masked) {
        td_vi32 finite = td_vf_finite(x), nan = x != x;
        low = td_vf_select(finite, x, td_vf_all(INFINITY));
        high = td_vf_select(finite, x, td_vf_all(-INFINITY));
        seen.nan += nan;
        seen.inf += ~finite ^ nan;
    }
    seen.least = td_vf_min(low, seen.least);
    seen.most = td_vf_max(high, seen.most);
    seen.zeros += x == td_vf_all(0);
    return seen;
}

TD_INLINE struct td_seen_keys td_see_keys(struct td_seen_keys seen, td_vi16 keys)
{
    seen.least = td_vi16_min(keys, seen.least);
    seen.most = td_vi16_max(keys, seen.most);
    seen.zeros += keys == 0;
    return seen;
}

/* `count` elements, whole rows. `ahead`: how far ahead memory is asked for, in bytes; 0: not at all. */
TD_INLINE struct td_seen_doubles td_look_at_doubles(struct td_seen_doubles seen, const uint8_t *p,
                                                    int64_t count, bool masked, int ahead)
{
    for (int64_t at = 0; at < count * 8; at += TD_LANES * 8) {
        struct td_doubles row = td_doubles_load(p + at);
        for (int line = 0; line < TD_LANES * 8 && ahead; line += 64)
            __builtin_prefetch(p + at + ahead + line);
        for (int i = 0; i < TD_ROW_DOUBLES; i++)
            seen = td_see_doubles(seen, row.v[i], masked);
    }
    return seen;
}

TD_INLINE struct td_seen_floats td_look_at_floats(struct td_seen_floats seen, const uint8_t *p, int64_t count,
                                                  bool masked, int ahead)
{
    for (int64_t at = 0; at < count * 4; at += TD_LANES * 4) {
        struct td_floats row = td_floats_load(TD_F32, p + at);
        if (ahead)
            __builtin_prefetch(p + at + ahead);
        for (int i = 0; i < TD_ROW_FLOATS; i++)
            seen = td_see_floats(seen, row.v[i], masked);
    }
    return seen;
}

TD_INLINE struct td_seen_keys td_look_at_keys(struct td_seen_keys seen, const uint8_t *p, int64_t count)
{
    for (int64_t at = 0; at < count * 2; at += TD_KEY_BYTES)
        seen = td_see_keys(seen, td_vi16_order(*(const td_vi16_loose *)(p + at)));
    return seen;
}

/* --- Bits as they are ----------------------------------------------------------------------------------- */

/* As signed numbers, no bits are above those of the greatest float that has no sign; as unsigned numbers,
 * none are above those of the least float that has one. Twice the magnitude nearest to zero tells whether
 * there is a zero. All of it suits any unit of the CPU, which minima and maxima of floats do not. */
struct td_seen_bits { /* of 16-bit types */
    td_vi16 most;
    td_vu16 least, nearest;
};

struct td_seen_words { /* of float32 */
    td_vi32 most;
    td_vu32 least, nearest;
};

#define TD_SEEN_NO_BITS ((struct td_seen_bits){{0}, {0}, (td_vu16){0} + UINT16_MAX})

/* All but what is nearest to zero. */
TD_INLINE struct td_seen_bits td_see_extremes(struct td_seen_bits seen, td_vi16 bits)
{
    seen.most = td_vi16_max(bits, seen.most);
    seen.least = td_vu16_max((td_vu16)bits, seen.least);
    return seen;
}

TD_INLINE struct td_seen_bits td_see_bits(struct td_seen_bits seen, td_vi16 bits)
{
    seen = td_see_extremes(seen, bits);
    seen.nearest = td_vu16_min((td_vu16)bits + (td_vu16)bits, seen.nearest);
    return seen;
}

TD_INLINE struct td_seen_bits td_look_at_bits(struct td_seen_bits seen, const uint8_t *p, int64_t count)
{
    for (int64_t at = 0; at < count * 2; at += TD_KEY_BYTES)
        seen = td_see_bits(seen, *(const td_vi16_loose *)(p + at));
    return seen;
}

/* The largest magnitude. What is not finite has a larger one than all that is. */
TD_INLINE uint16_t td_bits_largest(const struct td_seen_bits *seen)
{
    uint16_t largest = 0;
    for (int i = 0; i < TD_PER_KEYS; i++) {
        uint16_t most = (uint16_t)seen->most[i], least = seen->least[i] & INT16_MAX;
        largest = most > largest ? most : largest;
        largest = least > largest ? least : largest;
    }
    return largest;
}

/* What was seen of the `count` elements at p, as keys. That takes floats of both signs and no zero; any other
 * elements are looked at again. */
TD_INLINE struct td_seen_keys td_bits_keys(const struct td_seen_bits *seen, struct td_seen_keys keys,
                                           const uint8_t *p, int64_t count)
{
    int16_t most = 0;
    uint16_t least = 0;
    for (int i = 0; i < TD_PER_KEYS; i++) {
        most = seen->most[i] > most ? seen->most[i] : most;
        least = seen->least[i] > least ? seen->least[i] : least;
    }
    if (most == 0 || least <= 0x8000 || td_vu16_least(seen->nearest) == 0)
        return td_look_at_keys(keys, p, count);
    keys.most = (td_vi16){0} + most;
    keys.least = (td_vi16){0} - (int16_t)(least & INT16_MAX);
    return keys;
}

#define TD_SEEN_NO_WORDS ((struct td_seen_words){{0}, {0}, (td_vu32){0} + UINT32_MAX})

TD_INLINE struct td_seen_words td_see_words(struct td_seen_words seen, td_vu32 words)
{
    seen.most = td_vi32_max((td_vi32)words, seen.most);
    seen.least = td_vu32_max(words, seen.least);
    seen.nearest = td_vu32_min(words + words, seen.nearest);
    return seen;
}

/* What was seen of the `count` float32 at p, as floats; as td_bits_keys. */
TD_INLINE struct td_seen_floats td_words_floats(const struct td_seen_words *seen,
                                                struct td_seen_floats floats, const uint8_t *p, int64_t count)
{
    int32_t most = 0;
    uint32_t least = 0, nearest = UINT32_MAX;
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        most = seen->most[i] > most ? seen->most[i] : most;
        least = seen->least[i] > least ? seen->least[i] : least;
        nearest = seen->nearest[i] < nearest ? seen->nearest[i] : nearest;
    }
    if (most == 0 || least <= 0x80000000 || nearest == 0)
        return td_look_at_floats(floats, p, count, false, 0);
    floats.most = (td_vf)((td_vi32){0} + most);
    floats.least = (td_vf)((td_vu32){0} + least);
    return floats;
}

/* Whether the first row has floats of both signs: then it is worth looking at the bits. */
TD_INLINE bool td_row_has_both_signs(const uint8_t *p)
{
    td_vu32 some = {0}, all = (td_vu32){0} + UINT32_MAX;
    uint32_t any = 0, every = UINT32_MAX;
    for (int i = 0; i < TD_ROW_FLOATS; i++) {
        some |= ((const td_vu32_loose *)p)[i];
        all &= ((const td_vu32_loose *)p)[i];
    }
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        any |= some[i];
        every &= all[i];
    }
    return (any & ~every & 0x80000000) != 0;
}

/* --- As scalars ----------------------------------------------------------------------------------------- */

TD_INLINE void td_note_doubles(struct td_sums *s, const struct td_seen_doubles *seen)
{
    for (int i = 0; i < TD_PER_DOUBLES; i++) {
        s->min = seen->least[i] < s->min ? seen->least[i] : s->min;
        s->max = seen->most[i] > s->max ? seen->most[i] : s->max;
        s->nan -= (uint64_t)seen->nan[i];
        s->inf -= (uint64_t)seen->inf[i];
        s->zeros -= (uint64_t)seen->zeros[i];
    }
}

TD_INLINE void td_note_floats(struct td_sums *s, const struct td_seen_floats *seen)
{
    float least = seen->least[0], most = seen->most[0];
    int32_t nan = 0, inf = 0, zeros = 0; /* of a block: 32 bits are plenty, and cheaper to add up */
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        least = seen->least[i] < least ? seen->least[i] : least;
        most = seen->most[i] > most ? seen->most[i] : most;
        nan -= seen->nan[i];
        inf -= seen->inf[i];
        zeros -= seen->zeros[i];
    }
    s->min = (double)least < s->min ? (double)least : s->min;
    s->max = (double)most > s->max ? (double)most : s->max;
    s->nan += (uint64_t)nan;
    s->inf += (uint64_t)inf;
    s->zeros += (uint64_t)zeros;
}

TD_INLINE double td_key_value(int16_t key, enum td_dtype dtype)
{
    uint16_t bits = (uint16_t)(key < 0 ? INT16_MIN - key : key);
    return (double)(dtype == TD_F16 ? td_f16_value(bits) : td_bf16_value(bits));
}

TD_INLINE void td_note_keys(struct td_sums *s, const struct td_seen_keys *seen, enum td_dtype dtype)
{
    int16_t min = INT16_MAX, max = INT16_MIN;
    for (int i = 0; i < TD_PER_KEYS; i++) {
        min = seen->least[i] < min ? seen->least[i] : min;
        max = seen->most[i] > max ? seen->most[i] : max;
        s->zeros -= (uint64_t)(int64_t)seen->zeros[i];
    }
    if (min > max)
        return; /* nothing was seen */
    s->min = td_key_value(min, dtype);
    s->max = td_key_value(max, dtype);
}

TD_INLINE void td_seen_note(struct td_sums *s, const struct td_seen *seen, enum td_dtype dtype)
{
    if (dtype == TD_F64)
        td_note_doubles(s, &seen->doubles);
    else if (dtype == TD_F32)
        td_note_floats(s, &seen->floats);
    else
        td_note_keys(s, &seen->keys, dtype);
}

/* --- The shift ------------------------------------------------------------------------------------------ */

TD_INLINE struct td_doubles td_row_load(enum td_dtype dtype, const uint8_t *p)
{
    if (dtype == TD_F64)
        return td_doubles_load(p);
    struct td_floats row = td_floats_load(dtype, p);
    return td_floats_widen(&row);
}

/* td_shift for the common case: 64 finite values. Any other shows as a sum that is not finite. */
TD_INLINE double td_vector_shift(enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size)
{
    if (count >= TD_SHIFT_SAMPLE) {
        struct td_doubles row[4];
        td_vd sums[TD_ROW_DOUBLES], squares[TD_ROW_DOUBLES];
        for (int k = 0; k < 4; k++)
            row[k] = td_row_load(dtype, p + k * TD_LANES * size);
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
    return td_shift(p, count, size, td_float_reader(dtype));
}

#endif
