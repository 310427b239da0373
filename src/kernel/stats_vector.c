/* stats_vector.c: the statistics of one block in vectors; compiled once per vector tier.
 *
 * TD_TIER names the tier, TD_VECTOR_BYTES its registers. A first loop takes all values to be finite: it is
 * the common case, and if one is not, the sums of d and d^2 show it, because an infinity or NaN never leaves
 * a sum again. Then a second loop, with masks, does the block over. Both give the bits of stats_scalar.c.
 */
#include "kernel/element.h"
#include "kernel/lanes.h"
#include "kernel/shift.h"
#include "kernel/tier.h"

#define PASTE(a, b) a##b
#define TIER_TABLE(tier) PASTE(td_kernels_, tier)
#define PAIR_TABLE(tier) PASTE(td_pairs_, tier)
#define STRING(a) #a
#define TIER_NAME(tier) STRING(tier)

/* What a loop over whole rows of 16 found; `taken` elements are done. */
struct rows {
    struct td_doubles s1, s2;
    td_vd min, max;
    int64_t nan, inf, zeros;
    int64_t taken;
};

TD_INLINE int64_t count_i32(td_vi32 counts)
{
    int64_t sum = 0;
    for (int i = 0; i < TD_PER_FLOATS; i++)
        sum += counts[i];
    return sum;
}

TD_INLINE int64_t count_i64(td_vi64 counts)
{
    int64_t sum = 0;
    for (int i = 0; i < TD_PER_DOUBLES; i++)
        sum += counts[i];
    return sum;
}

/* Adds a row to the sums around the shift; with a mask, only what is finite. */
TD_INLINE void add_row(struct rows *r, const struct td_doubles *x, td_vd shift, bool masked)
{
    for (int i = 0; i < TD_ROW_DOUBLES; i++) {
        td_vd d = x->v[i] - shift;
        if (masked)
            d = (td_vd)((td_vi64)d & td_vd_finite(x->v[i]));
        r->s1.v[i] += d;
        r->s2.v[i] += d * d;
    }
}

TD_INLINE struct rows scan_floats(enum td_dtype dtype, const uint8_t *p, int64_t count, double around,
                                  bool masked)
{
    struct rows r = {.taken = count / TD_LANES * TD_LANES};
    td_vf least = td_vf_all(INFINITY), most = td_vf_all(-INFINITY);
    td_vd shift = td_vd_all(around);
    td_vi32 nan = {0}, inf = {0}, zeros = {0}; /* counted downwards */
    int64_t size = dtype == TD_F32 ? 4 : 2;
    for (int64_t at = 0; at < r.taken; at += TD_LANES) {
        struct td_floats x = td_floats_load(dtype, p + at * size);
        for (int i = 0; i < TD_ROW_FLOATS; i++) {
            td_vf low = x.v[i], high = x.v[i];
            if (masked) {
                td_vi32 finite = td_vf_finite(x.v[i]), is_nan = td_vf_nan(x.v[i]);
                low = td_vf_select(finite, low, td_vf_all(INFINITY));
                high = td_vf_select(finite, high, td_vf_all(-INFINITY));
                nan += is_nan;
                inf += ~finite ^ is_nan;
            }
            least = td_vf_min(low, least);
            most = td_vf_max(high, most);
            zeros += td_vf_zero(x.v[i]);
        }
        struct td_doubles wide = td_floats_widen(&x);
        add_row(&r, &wide, shift, masked);
    }
    double min = (double)INFINITY, max = -(double)INFINITY;
    for (int i = 0; i < TD_PER_FLOATS; i++) {
        min = (double)least[i] < min ? (double)least[i] : min;
        max = (double)most[i] > max ? (double)most[i] : max;
    }
    r.min = td_vd_all(min);
    r.max = td_vd_all(max);
    r.nan = -count_i32(nan);
    r.inf = -count_i32(inf);
    r.zeros = -count_i32(zeros);
    return r;
}

TD_INLINE struct rows scan_doubles(const uint8_t *p, int64_t count, double around, bool masked)
{
    struct rows r = {.taken = count / TD_LANES * TD_LANES,
                     .min = td_vd_all((double)INFINITY),
                     .max = td_vd_all(-(double)INFINITY)};
    td_vd shift = td_vd_all(around);
    td_vi64 nan = {0}, inf = {0}, zeros = {0};
    for (int64_t at = 0; at < r.taken; at += TD_LANES) {
        struct td_doubles x = td_doubles_load(p + at * 8);
        for (int i = 0; i < TD_ROW_DOUBLES; i++) {
            td_vd low = x.v[i], high = x.v[i];
            if (masked) {
                td_vi64 finite = td_vd_finite(x.v[i]), is_nan = x.v[i] != x.v[i];
                low = td_vd_select(finite, low, td_vd_all((double)INFINITY));
                high = td_vd_select(finite, high, td_vd_all(-(double)INFINITY));
                nan += is_nan;
                inf += ~finite ^ is_nan;
            }
            r.min = td_vd_min(low, r.min);
            r.max = td_vd_max(high, r.max);
            zeros += x.v[i] == td_vd_all(0);
        }
        add_row(&r, &x, shift, masked);
    }
    r.nan = -count_i64(nan);
    r.inf = -count_i64(inf);
    r.zeros = -count_i64(zeros);
    return r;
}

TD_INLINE struct rows scan(enum td_dtype dtype, const uint8_t *p, int64_t count, double shift, bool masked)
{
    return dtype == TD_F64 ? scan_doubles(p, count, shift, masked)
                           : scan_floats(dtype, p, count, shift, masked);
}

TD_INLINE bool all_finite(const struct rows *r)
{
    td_vd sum = {0};
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        sum += r->s1.v[i] + r->s2.v[i];
    td_vi64 finite = td_vd_finite(sum);
    return count_i64(finite) == -TD_PER_DOUBLES;
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
        struct td_doubles row[4], sum;
        double lanes[TD_LANES];
        for (int k = 0; k < 4; k++)
            row[k] = load_row(dtype, p + k * TD_LANES * size);
        for (int i = 0; i < TD_ROW_DOUBLES; i++)
            sum.v[i] = (row[0].v[i] + row[1].v[i]) + (row[2].v[i] + row[3].v[i]);
        memcpy(lanes, sum.v, sizeof lanes);
        double shift = td_lanes_combine(lanes) / TD_SHIFT_SAMPLE;
        if (isfinite(shift))
            return shift;
    }
    return td_shift(p, count, size, value);
}

/* The elements behind the last whole row, as the specification has them. */
TD_INLINE void add_tail(struct td_sums *s, const uint8_t *p, int64_t from, int64_t count, int64_t size,
                        double (*value)(const uint8_t *))
{
    for (int64_t i = from; i < count; i++)
        td_sums_add(s, i % TD_LANES, value(p + i * size));
}

TD_INLINE struct td_partial block_stats(enum td_dtype dtype, const uint8_t *p, int64_t count, int64_t size,
                                        double (*value)(const uint8_t *))
{
    struct td_sums s = {.shift = block_shift(dtype, p, count, size, value)};
    struct rows r = scan(dtype, p, count, s.shift, false);
    if (!all_finite(&r))
        r = scan(dtype, p, count, s.shift, true);
    memcpy(s.s1, r.s1.v, sizeof s.s1);
    memcpy(s.s2, r.s2.v, sizeof s.s2);
    s.nan = (uint64_t)r.nan;
    s.inf = (uint64_t)r.inf;
    s.zeros = (uint64_t)r.zeros;
    s.min = r.min[0];
    s.max = r.max[0];
    for (int i = 1; i < TD_PER_DOUBLES; i++) {
        s.min = r.min[i] < s.min ? r.min[i] : s.min;
        s.max = r.max[i] > s.max ? r.max[i] : s.max;
    }
    add_tail(&s, p, r.taken, count, size, value);
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
};
