/* pair_vector.c: a block of pairs in vectors; compiled once per vector tier, as stats_vector.c is.
 *
 * The loop takes all values to be finite. If one is not, the sums of |d| or of the squares show it (an
 * infinity or NaN never leaves a sum again), and the block is done over by the specification.
 */
#include "kernel/lanes.h"
#include "kernel/pair.h"

#include <string.h>

#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_pairs_, tier)

struct sums {
    struct td_doubles v[TD_PAIR_SUMS];
    td_vd max_abs, max_rel;
    td_vi32 differing; /* counted downwards */
    td_vi64 differing_wide;
    td_vu32 max_ulp;
};

TD_INLINE td_vd absolute(td_vd x)
{
    return (td_vd)((td_vi64)x & INT64_MAX);
}

TD_INLINE void add_row(struct sums *s, const struct td_doubles *a, const struct td_doubles *b)
{
    for (int i = 0; i < TD_ROW_DOUBLES; i++) {
        td_vd x = a->v[i], y = b->v[i], d = absolute(x - y);
        td_vd rel = d / (absolute(x) + td_vd_all(TD_REL_EPSILON));
        s->v[TD_SUM_ABS].v[i] += d;
        s->v[TD_SUM_REL].v[i] += rel;
        s->v[TD_SUM_SQUARE].v[i] += d * d;
        s->v[TD_SUM_AA].v[i] += x * x;
        s->v[TD_SUM_BB].v[i] += y * y;
        s->v[TD_SUM_AB].v[i] += x * y;
        s->max_abs = td_vd_max(d, s->max_abs);
        s->max_rel = td_vd_max(rel, s->max_rel);
    }
}

/* The bits of one vector's worth of floats at the upper end of 32-bit lanes. */
TD_INLINE td_vi32 load_bits(enum td_dtype dtype, const uint8_t *p)
{
    if (dtype == TD_F32)
        return (td_vi32) * (const td_vf_loose *)p;
    return (td_vi32)(td_vu32_load_u16(p) << 16);
}

TD_INLINE td_vi32 order(td_vi32 bits)
{
    td_vi32 negative = bits < 0;
    return ((INT32_MIN - bits) & negative) | (bits & ~negative);
}

TD_INLINE void add_ulps(struct sums *s, enum td_dtype dtype, const uint8_t *a, const uint8_t *b)
{
    int64_t step = dtype == TD_F32 ? TD_VECTOR_BYTES : TD_VECTOR_BYTES / 2;
    for (int i = 0; i < TD_ROW_FLOATS; i++) {
        td_vi32 x = order(load_bits(dtype, a + i * step)), y = order(load_bits(dtype, b + i * step));
        td_vi32 less = x < y;
        td_vu32 up = (td_vu32)y - (td_vu32)x, down = (td_vu32)x - (td_vu32)y;
        td_vu32 distance = (up & (td_vu32)less) | (down & (td_vu32)~less);
        td_vu32 larger = (td_vu32)(distance > s->max_ulp);
        s->max_ulp = (distance & larger) | (s->max_ulp & ~larger);
    }
}

TD_INLINE bool all_finite(const struct sums *s)
{
    td_vd sum = {0};
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        sum += s->v[TD_SUM_AA].v[i] + s->v[TD_SUM_BB].v[i];
    td_vi64 finite = td_vd_finite(sum);
    int64_t count = 0;
    for (int i = 0; i < TD_PER_DOUBLES; i++)
        count -= finite[i];
    return count == TD_PER_DOUBLES;
}

TD_INLINE int64_t width(enum td_dtype dtype)
{
    return dtype == TD_F64 ? 8 : dtype == TD_F32 ? 4 : 2;
}

TD_INLINE void scan(struct sums *s, enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b,
                    int64_t rows)
{
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *p = a + row * TD_LANES * width(ta), *q = b + row * TD_LANES * width(tb);
        struct td_doubles x, y;
        if (ta == TD_F64) {
            x = td_doubles_load(p);
            y = td_doubles_load(q);
            for (int i = 0; i < TD_ROW_DOUBLES; i++)
                s->differing_wide += x.v[i] != y.v[i];
        } else {
            struct td_floats u = td_floats_load(ta, p), v = td_floats_load(tb, q);
            for (int i = 0; i < TD_ROW_FLOATS; i++)
                s->differing += u.v[i] != v.v[i];
            x = td_floats_widen(&u);
            y = td_floats_widen(&v);
            if (ta == tb)
                add_ulps(s, ta, p, q);
        }
        add_row(s, &x, &y);
    }
}

TD_INLINE void collect(const struct sums *s, enum td_dtype dtype, struct td_pair_lanes *out)
{
    for (int k = 0; k < TD_PAIR_SUMS; k++)
        memcpy(out->sum[k], s->v[k].v, sizeof out->sum[k]);
    for (int i = 0; i < TD_PER_DOUBLES; i++) {
        out->max_abs = s->max_abs[i] > out->max_abs ? s->max_abs[i] : out->max_abs;
        out->max_rel = s->max_rel[i] > out->max_rel ? s->max_rel[i] : out->max_rel;
        out->differing += (uint64_t)-s->differing_wide[i];
    }
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        uint32_t ulp = dtype == TD_F32 ? s->max_ulp[i] : s->max_ulp[i] >> 16;
        out->max_ulp = (double)ulp > out->max_ulp ? (double)ulp : out->max_ulp;
        out->differing += (uint64_t) - (int64_t)s->differing[i];
    }
}

/* The elements behind the last whole row, and blocks with anything that is not finite, are left to the
 * specification; doubles leave their ulps to it as well when they differ. */
TD_INLINE void block(enum td_dtype ta, const uint8_t *a, enum td_dtype tb, const uint8_t *b, int64_t count,
                     struct td_pair_lanes *out)
{
    int64_t rows = count / TD_LANES, taken = rows * TD_LANES;
    struct sums s = {0};
    scan(&s, ta, a, tb, b, rows);
    td_pair_kernel *exact = td_pairs_scalar.loop[ta][tb];
    bool ulps_of_doubles = false;
    if (ta == TD_F64)
        for (int i = 0; i < TD_PER_DOUBLES; i++)
            ulps_of_doubles = ulps_of_doubles || s.differing_wide[i] != 0;
    if (!all_finite(&s) || ulps_of_doubles) {
        exact(a, b, count, out);
        return;
    }
    collect(&s, ta, out);
    struct td_pair_lanes tail = {0};
    exact(a + taken * width(ta), b + taken * width(tb), count - taken, &tail);
    for (int k = 0; k < TD_PAIR_SUMS; k++) /* lane i of the tail is lane i of the block: rows are whole */
        for (int i = 0; i < count - taken; i++)
            out->sum[k][i] += tail.sum[k][i];
    out->max_abs = tail.max_abs > out->max_abs ? tail.max_abs : out->max_abs;
    out->max_rel = tail.max_rel > out->max_rel ? tail.max_rel : out->max_rel;
    out->max_ulp = tail.max_ulp > out->max_ulp ? tail.max_ulp : out->max_ulp;
    out->unpaired += tail.unpaired;
    out->differing += tail.differing;
    out->nan_both += tail.nan_both;
    out->inf_same += tail.inf_same;
}

#define PAIR(name, ta, tb)                                                                   \
    static void name(const void *a, const void *b, int64_t count, struct td_pair_lanes *out) \
    {                                                                                        \
        block(ta, a, tb, b, count, out);                                                     \
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
};
