/* test_pair.c: blocks of pairs: every tier equals the scalar specification bit for bit. */
#include "test_support.h"

#include "kernel/compare.h"
#include "kernel/pair.h"
#include "kernel/tier.h"
#include "pair_values.h"

#include <math.h>
#include <stdlib.h>

enum { FULL = TD_BLOCK_LENGTH };
static const int64_t sizes[] = {0,    1,    15,   16,   17,        31,        33,       1000,
                                1023, 1024, 1025, 4096, FULL - 17, FULL - 16, FULL - 1, FULL};

static void tiers_equal_scalar(void **state)
{
    (void)state;
    static uint8_t space_a[TD_BLOCK_LENGTH * 8 + 1], space_b[TD_BLOCK_LENGTH * 8 + 3];
    const struct td_kernels *const *tiers = td_kernels_usable();
    int loops = 0;
    for (int ta = 0; ta <= TD_BF16; ta++)
        for (int tb = 0; tb <= TD_BF16; tb++) {
            td_pair_kernel *exact = td_pairs_scalar.loop[ta][tb];
            for (size_t k = 0; tiers[k]; k++)
                assert_true(!exact == !tiers[k]->pairs->loop[ta][tb]);
            if (!exact)
                continue;
            loops++;
            for (enum fill fill = 0; fill < FILLS; fill++)
                for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                    for (size_t round = 0; round < 4; round++) {
                        if (quick() && round != s % 4)
                            continue;
                        uint8_t *a = space_a + round % 2, *b = space_b + 3 * (round / 2); /* any address */
                        fill_sides((enum td_dtype)ta, a, (enum td_dtype)tb, b, fill, sizes[s]);
                        struct td_pair_block expected;
                        exact(a, b, sizes[s], &expected);
                        for (size_t k = 0; tiers[k]; k++) {
                            struct td_pair_block got;
                            tiers[k]->pairs->loop[ta][tb](a, b, sizes[s], &got);
                            assert_memory_equal(&got, &expected, sizeof got);
                        }
                    }
        }
    assert_int_equal(loops, 10);
}

static void tiers_count_beyond(void **state)
{
    (void)state;
    static uint8_t a[TD_BLOCK_LENGTH * 8], b[TD_BLOCK_LENGTH * 8];
    const struct td_kernels *const *tiers = td_kernels_usable();
    int notable = 0, usual = 0;
    for (int ta = 0; ta <= TD_BF16; ta++)
        for (int tb = 0; tb <= TD_BF16; tb++)
            for (int round = 0; round < 60 && td_pairs_scalar.beyond[ta][tb]; round++) {
                enum fill fill = round % 3 ? TAME : SPECIAL;
                int64_t count = 16 + 16 * (int64_t)(random_u64() % 100);
                double rtol = round % 2 ? 0.1 : 0, atol = 0.5, least = round % 5 ? 1e4 : 0.3;
                fill_sides((enum td_dtype)ta, a, (enum td_dtype)tb, b, fill, count);
                struct td_beyond expected = td_pairs_scalar.beyond[ta][tb](a, b, count, rtol, atol, least);
                notable += expected.notable;
                usual += !expected.notable && expected.count > 0;
                for (size_t k = 0; tiers[k]; k++) {
                    struct td_beyond got = tiers[k]->pairs->beyond[ta][tb](a, b, count, rtol, atol, least);
                    assert_int_equal(got.notable, expected.notable);
                    assert_int_equal(got.count, expected.count);
                }
            }
    assert_true(notable > 50 && usual > 50);
}

/* The columns hold something before, and what is not finite adds nothing. */
static void tiers_spread_alike(void **state)
{
    (void)state;
    enum { MOST = 1100 };
    static uint8_t space_a[MOST * 8 + 1], space_b[MOST * 8 + 3];
    static const int64_t counts[] = {0, 1, 15, 16, 17, 31, 33, 1000, 1023, 1024, 1025, MOST};
    static double before[MOST], expected[2][MOST], got[2][MOST];
    const struct td_kernels *const *tiers = td_kernels_usable();
    for (int i = 0; i < MOST; i++)
        before[i] = i % 13;
    for (int ta = 0; ta <= TD_BF16; ta++)
        for (int tb = 0; tb <= TD_BF16; tb++)
            for (int round = 0; round < FILLS * 12; round++) {
                td_spread_kernel *exact = td_spreads_scalar.loop[ta][tb];
                assert_true(!exact == !td_pairs_scalar.loop[ta][tb]);
                if (!exact)
                    break;
                uint8_t *a = space_a + round % 2, *b = space_b + round % 4; /* any address */
                int64_t count = counts[round % 12];
                fill_sides((enum td_dtype)ta, a, (enum td_dtype)tb, b, (enum fill)(round / 12), count);
                memcpy(expected[0], before, sizeof before);
                memcpy(expected[1], before, sizeof before);
                struct td_spread sum = exact(a, b, count, expected[0], expected[1]);
                for (int i = 0; i < MOST; i++)
                    assert_true(isfinite(expected[0][i]) || ta == TD_F64);
                for (size_t k = 0; tiers[k]; k++) {
                    memcpy(got[0], before, sizeof before);
                    memcpy(got[1], before, sizeof before);
                    struct td_spread mine = tiers[k]->spreads->loop[ta][tb](a, b, count, got[0], got[1]);
                    assert_memory_equal(&mine, &sum, sizeof sum);
                    assert_memory_equal(got, expected, sizeof got);
                }
            }
}

/* One value that is not finite, at each place of a block: it must not slip through. */
static void no_place_is_overlooked(void **state)
{
    (void)state;
    enum { COUNT = 1100 };
    static float a[COUNT], b[COUNT];
    const struct td_kernels *const *tiers = td_kernels_usable();
    for (int at = 0; at < COUNT; at += at < 40 || at > 1010 ? 1 : 61)
        for (int kind = 0; kind < 4; kind++) {
            for (int i = 0; i < COUNT; i++)
                b[i] = 1 + (a[i] = (float)(i % 7));
            (kind % 2 ? a : b)[at] = kind < 2 ? NAN : -INFINITY;
            for (size_t k = 0; tiers[k]; k++) {
                struct td_pair_block got;
                tiers[k]->pairs->loop[TD_F32][TD_F32](a, b, COUNT, &got);
                struct td_pair_partial p = got.pairs;
                assert_int_equal(p.unpaired, 1);
                assert_int_equal(p.differing, COUNT);
                assert_true(p.max_abs == 1 && p.sum[TD_SUM_ABS] == COUNT - 1);
            }
        }
}

/* --- ulps ---------------------------------------------------------------------------------------------- */

/* Counting up from -max to max: the place of a value among all values of its type. */
static __int128 place(enum td_dtype dtype, uint64_t bits)
{
    int width = 8 * (int)td_dtype_size(dtype);
    uint64_t sign = bits >> (width - 1), magnitude = bits & ((UINT64_C(1) << (width - 1)) - 1);
    return sign ? -(__int128)magnitude : (__int128)magnitude;
}

static double ulps_of(enum td_dtype dtype, uint64_t a, uint64_t b)
{
    uint64_t x[33], y[33];
    size_t size = td_dtype_size(dtype);
    double first = -1;
    for (int at = 0; at < 33; at++) { /* in vectors, and behind the last row */
        memset(x, 0, sizeof x);
        memset(y, 0, sizeof y);
        memcpy((uint8_t *)x + (size_t)at * size, &a, size);
        memcpy((uint8_t *)y + (size_t)at * size, &b, size);
        for (size_t k = 0; td_kernels_usable()[k]; k++) {
            struct td_pair_block got;
            td_kernels_usable()[k]->pairs->loop[dtype][dtype](x, y, 33, &got);
            first = first < 0 ? got.pairs.max_ulp : first;
            assert_true(got.pairs.max_ulp == first);
        }
    }
    return first;
}

static void ulps(void **state)
{
    (void)state;
    for (int t = 0; t < FLOATS; t++) {
        enum td_dtype dtype = floats[t];
        uint64_t minus = UINT64_C(1) << (8 * td_dtype_size(dtype) - 1), one = 0;
        static const uint64_t ones[] = {
            [TD_F64] = 0x3ff0000000000000, [TD_F32] = 0x3f800000, [TD_F16] = 0x3c00, [TD_BF16] = 0x3f80};
        static const uint64_t largest[] = {
            [TD_F64] = 0x7fefffffffffffff, [TD_F32] = 0x7f7fffff, [TD_F16] = 0x7bff, [TD_BF16] = 0x7f7f};
        one = ones[dtype];
        assert_true(ulps_of(dtype, 0, minus) == 0);
        assert_true(ulps_of(dtype, one, one) == 0);
        assert_true(ulps_of(dtype, 0, 1) == 1);
        assert_true(ulps_of(dtype, 1, minus | 1) == 2);
        assert_true(ulps_of(dtype, minus, minus | 3) == 3);
        assert_true(ulps_of(dtype, minus | 5, 2) == 7);
        assert_true(ulps_of(dtype, largest[dtype], minus | largest[dtype]) == 2 * (double)largest[dtype]);
        assert_true(ulps_of(dtype, largest[dtype], minus) == (double)largest[dtype]);
        assert_true(ulps_of(dtype, one, one + 1) == 1);
        for (uint64_t far = 0x7fffff; far <= 0x800002 && dtype == TD_F32; far++) {
            assert_true(ulps_of(dtype, one, one + far) == (double)far);
            assert_true(ulps_of(dtype, far, minus | 1) == (double)far + 1);
        }
        assert_true(ulps_of(dtype, minus | one, one - 1) == (double)(2 * one - 1));
        for (int i = 0; i < 200; i++) {
            uint64_t a = tame(dtype), b = i % 2 ? tame(dtype) : element(dtype, SUBNORMAL);
            __int128 distance = place(dtype, a) - place(dtype, b);
            assert_true(ulps_of(dtype, a, b) == (double)(distance < 0 ? -distance : distance));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_equal_scalar),
        cmocka_unit_test(tiers_count_beyond),
        cmocka_unit_test(tiers_spread_alike),
        cmocka_unit_test(no_place_is_overlooked),
        cmocka_unit_test(ulps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
