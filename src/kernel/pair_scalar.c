/* pair_scalar.c: a block of pairs in plain C: what every other tier must equal bit for bit. */
#include "kernel/element.h"
#include "kernel/pair.h"
#include "kernel/shift.h"
#include "kernel/tier.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE double ulp_16(const uint8_t *a, const uint8_t *b)
{
    int16_t x, y;
    memcpy(&x, a, 2);
    memcpy(&y, b, 2);
    return fabs((double)(td_float_order(x, INT16_MIN) - td_float_order(y, INT16_MIN)));
}

INLINE double ulp_32(const uint8_t *a, const uint8_t *b)
{
    int32_t x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return fabs((double)(td_float_order(x, INT32_MIN) - td_float_order(y, INT32_MIN)));
}

/* The distance of two doubles of opposite sign may pass 2^63, but not 2^64. */
INLINE double ulp_64(const uint8_t *a, const uint8_t *b)
{
    int64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    x = td_float_order(x, INT64_MIN);
    y = td_float_order(y, INT64_MIN);
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
}

INLINE double no_ulp(const uint8_t *a, const uint8_t *b)
{
    (void)a;
    (void)b;
    return 0;
}

INLINE void block(const uint8_t *a, const uint8_t *b, int64_t count, int64_t size_a, int64_t size_b,
                  bool packs, double (*value_a)(const uint8_t *), double (*value_b)(const uint8_t *),
                  double (*ulp)(const uint8_t *, const uint8_t *), struct td_pair_lanes *out)
{
    int64_t different = 0; /* pairs so far whose bits differ */
    *out = (struct td_pair_lanes){0};
    for (int64_t k = 0; k < count; k++) {
        int64_t i = packs ? td_pack_turn(k) : k;
        const uint8_t *p = a + i * size_a, *q = b + i * size_b;
        td_pair_add(out, i, (packs ? different : i) % TD_LANES, value_a(p), value_b(q), ulp(p, q));
        different += packs && memcmp(p, q, (size_t)size_a) != 0;
    }
}

/* Side b of a packed block of finite pairs; it stays as it is where it does not follow from side a. */
INLINE void follow(const uint8_t *a, const uint8_t *b, int64_t count, int64_t size,
                   double (*value)(const uint8_t *), struct td_pair_block *out)
{
    double moves[TD_PAIR_MOVES][TD_LANES] = {{0}}, shift = td_shift(a, count, size, value);
    int64_t different = 0;
    for (int64_t k = 0; k < count; k++) {
        const uint8_t *p = a + td_pack_turn(k) * size, *q = b + td_pack_turn(k) * size;
        if (memcmp(p, q, (size_t)size) != 0)
            td_pair_move(moves, different++ % TD_LANES, value(p), value(q), shift);
    }
    td_pair_follow(&out->b, &out->a, shift, moves, out->pairs.sum[TD_SUM_SQUARE]);
}

INLINE struct td_beyond beyond(const uint8_t *a, const uint8_t *b, int64_t count, int64_t size_a,
                               int64_t size_b, double (*value_a)(const uint8_t *),
                               double (*value_b)(const uint8_t *), double rtol, double atol, double least)
{
    struct td_beyond s = {0};
    for (int64_t i = 0; i < count; i++)
        td_beyond_add(&s, value_a(a + i * size_a), value_b(b + i * size_b), rtol, atol, least);
    return s;
}

#define PAIR(name, ta, size_a, value_a, tb, size_b, value_b, ulp)                                    \
    static void lanes_##name(const void *a, const void *b, int64_t count, struct td_pair_lanes *out) \
    {                                                                                                \
        bool packs = td_pair_packs(ta, a, tb, b, count);                                             \
        block(a, b, count, size_a, size_b, packs, value_a, value_b, ulp, out);                       \
    }                                                                                                \
    static void name(const void *a, const void *b, int64_t count, struct td_pair_block *out)         \
    {                                                                                                \
        out->a = td_kernels_scalar.stats[ta](a, count);                                              \
        out->b = td_kernels_scalar.stats[tb](b, count);                                              \
        struct td_pair_lanes lanes;                                                                  \
        lanes_##name(a, b, count, &lanes);                                                           \
        out->pairs = td_pair_finish(&lanes, count);                                                  \
        if (out->pairs.unpaired == 0 && td_pair_packs(ta, a, tb, b, count))                          \
            follow(a, b, count, size_a, value_a, out);                                               \
        td_pair_product(out);                                                                        \
    }                                                                                                \
    static struct td_beyond beyond_##name(const void *a, const void *b, int64_t count, double rtol,  \
                                          double atol, double least)                                 \
    {                                                                                                \
        return beyond(a, b, count, size_a, size_b, value_a, value_b, rtol, atol, least);             \
    }

PAIR(f64_f64, TD_F64, 8, td_f64_at, TD_F64, 8, td_f64_at, ulp_64)
PAIR(f32_f32, TD_F32, 4, td_f32_at, TD_F32, 4, td_f32_at, ulp_32)
PAIR(f32_f16, TD_F32, 4, td_f32_at, TD_F16, 2, td_f16_at, no_ulp)
PAIR(f32_bf16, TD_F32, 4, td_f32_at, TD_BF16, 2, td_bf16_at, no_ulp)
PAIR(f16_f32, TD_F16, 2, td_f16_at, TD_F32, 4, td_f32_at, no_ulp)
PAIR(f16_f16, TD_F16, 2, td_f16_at, TD_F16, 2, td_f16_at, ulp_16)
PAIR(f16_bf16, TD_F16, 2, td_f16_at, TD_BF16, 2, td_bf16_at, no_ulp)
PAIR(bf16_f32, TD_BF16, 2, td_bf16_at, TD_F32, 4, td_f32_at, no_ulp)
PAIR(bf16_f16, TD_BF16, 2, td_bf16_at, TD_F16, 2, td_f16_at, no_ulp)
PAIR(bf16_bf16, TD_BF16, 2, td_bf16_at, TD_BF16, 2, td_bf16_at, ulp_16)

td_pair_lanes_kernel *const td_pair_lanes_scalar[TD_BF16 + 1][TD_BF16 + 1] = {
    [TD_F64] = {[TD_F64] = lanes_f64_f64},
    [TD_F32] = {[TD_F32] = lanes_f32_f32, [TD_F16] = lanes_f32_f16, [TD_BF16] = lanes_f32_bf16},
    [TD_F16] = {[TD_F32] = lanes_f16_f32, [TD_F16] = lanes_f16_f16, [TD_BF16] = lanes_f16_bf16},
    [TD_BF16] = {[TD_F32] = lanes_bf16_f32, [TD_F16] = lanes_bf16_f16, [TD_BF16] = lanes_bf16_bf16},
};

const struct td_pair_kernels td_pairs_scalar = {
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
