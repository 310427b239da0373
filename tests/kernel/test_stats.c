/* test_stats.c: every tier equals the scalar specification bit for bit; strides and threads change nothing;
 * and the specification equals a slow computation in 113 bits.
 */
#include "test_support.h"

#include "kernel/convert.h"
#include "kernel/sweep.h"
#include "kernel/stats.h"
#include "kernel/tier.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252;

static uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* What the bytes of a tensor may look like. */
enum fill { BITS, TAME, SPECIAL, SUBNORMAL, CONSTANT, ALL_NAN, FILLS };

static uint64_t special(enum td_dtype dtype)
{
    static const uint64_t f64[] = {0,
                                   1,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0x8000000000000000,
                                   0x7ff0000000000001,
                                   0x3ff0000000000000};
    static const uint64_t f32[] = {0,          1,          0x7f800000, 0xff800000,
                                   0x7fc00000, 0x80000000, 0x7f800001, 0x3f800000};
    static const uint64_t f16[] = {0, 1, 0x7c00, 0xfc00, 0x7e00, 0x8000, 0x7c01, 0x3c00};
    static const uint64_t bf16[] = {0, 1, 0x7f80, 0xff80, 0x7fc0, 0x8000, 0x7f81, 0x3f80};
    const uint64_t *codes = dtype == TD_F64 ? f64 : dtype == TD_F32 ? f32 : dtype == TD_F16 ? f16 : bf16;
    return codes[random_u64() % 8];
}

static uint64_t tame(enum td_dtype dtype)
{
    float f = (float)(random_u64() % 2001) / 1000 - 1;
    double d = (double)f;
    uint64_t bits = 0;
    if (dtype == TD_F64)
        memcpy(&bits, &d, 8);
    else if (dtype == TD_F16)
        bits = 0x3000 | (random_u64() & 0x8fff);
    else
        memcpy(&bits, &f, 4);
    return dtype == TD_BF16 ? bits >> 16 : bits;
}

static void fill_elements(enum td_dtype dtype, enum fill fill, uint8_t *to, int64_t count)
{
    size_t size = td_dtype_size(dtype), part = size > 8 ? 8 : size;
    uint64_t constant = tame(dtype), sign = random_u64();
    for (size_t at = 0; at < (size_t)count * size; at += part) {
        uint64_t bits = random_u64();
        if (fill == TAME)
            bits = tame(dtype);
        else if (fill == SPECIAL)
            bits = random_u64() % 3 ? tame(dtype) : special(dtype);
        else if (fill == SUBNORMAL)
            bits = (bits & 7) | (sign & 1) << (8 * part - 1);
        else if (fill == CONSTANT)
            bits = constant;
        else if (fill == ALL_NAN)
            bits = UINT64_MAX;
        memcpy(to + at, &bits, part);
    }
}

enum { FULL = TD_BLOCK_LENGTH };
static const int64_t sizes[] = {0,  1,   2,    15,   16,        17,        31,        63,       64,
                                65, 127, 1000, 4096, FULL - 17, FULL - 16, FULL - 15, FULL - 1, FULL};

static void assert_same_partial(const struct td_partial *a, const struct td_partial *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static void tiers_equal_scalar(void **state)
{
    (void)state;
    static const enum td_dtype dtypes[] = {TD_F64, TD_F32, TD_F16, TD_BF16};
    static uint8_t storage[TD_BLOCK_LENGTH * 8 + 1];
    const struct td_kernels *const *tiers = td_kernels_usable();
    for (size_t t = 0; t < 4; t++)
        for (enum fill fill = 0; fill < FILLS; fill++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (int round = 0; round < 6; round++) {
                    uint8_t *elements = storage + round % 2; /* aligned and not */
                    fill_elements(dtypes[t], fill, elements, sizes[s]);
                    struct td_partial expected = td_kernels_scalar.stats[dtypes[t]](elements, sizes[s]);
                    for (size_t k = 0; tiers[k]; k++) {
                        struct td_partial got = tiers[k]->stats[dtypes[t]](elements, sizes[s]);
                        assert_same_partial(&got, &expected);
                    }
                }
}

/* What is seen by the bits alone has no zeros in it: one of either sign must not slip through. */
static void zeros_among_both_signs(void **state)
{
    (void)state;
    static const enum td_dtype dtypes[] = {TD_F32, TD_F16, TD_BF16};
    static uint8_t elements[TD_BLOCK_LENGTH * 8];
    const struct td_kernels *const *tiers = td_kernels_usable();
    for (size_t t = 0; t < 3; t++)
        for (int64_t at = 0; at < FULL; at += at < 40 ? 1 : 997)
            for (int negative = 0; negative < 2; negative++) {
                size_t size = td_dtype_size(dtypes[t]);
                uint8_t *zero = elements + (size_t)at * size;
                fill_elements(dtypes[t], TAME, elements, FULL);
                memset(zero, 0, size);
                zero[size - 1] = negative ? 0x80 : 0;
                struct td_partial expected = td_kernels_scalar.stats[dtypes[t]](elements, FULL);
                assert_true(expected.zeros >= 1);
                for (size_t k = 0; tiers[k]; k++) {
                    struct td_partial got = tiers[k]->stats[dtypes[t]](elements, FULL);
                    assert_same_partial(&got, &expected);
                }
            }
}

/* One value that is not finite, at each place of a block: it must not slip through the unmasked loop. */
static void no_place_is_overlooked(void **state)
{
    (void)state;
    static float values[200];
    const struct td_kernels *const *tiers = td_kernels_usable();
    for (int odd = 0; odd < 2; odd++)
        for (int at = 0; at < 200; at++) {
            for (int i = 0; i < 200; i++)
                values[i] = (float)(i % 7);
            values[at] = odd ? NAN : -INFINITY;
            for (size_t k = 0; tiers[k]; k++) {
                struct td_partial p = tiers[k]->stats[TD_F32](values, 200);
                assert_int_equal(p.finite, 199);
                assert_int_equal(p.nan, odd);
                assert_int_equal(p.inf, !odd);
                assert_true(p.min == 0 && p.max == 6);
            }
        }
}

static struct td_tensor dense(const struct td_view *view)
{
    size_t size = td_dtype_size(view->dtype);
    return (struct td_tensor){.dtype = view->dtype,
                              .shape = view->shape,
                              .count = view->count,
                              .bytes = (uint64_t)view->count * size,
                              .view = *view};
}

static struct td_tensor packed(const void *data, uint64_t bytes, enum td_dtype dtype, int64_t rows,
                               int64_t columns)
{
    struct td_shape shape = {.ndim = 2, .size = {rows, columns}};
    struct td_view view;
    assert_ok(td_view_packed(&view, data, bytes, dtype, &shape, NULL));
    return dense(&view);
}

static struct tdbg_stats stats_of(const struct td_tensor *tensor, struct td_pool *pool)
{
    struct tdbg_stats stats;
    struct td_job job = {0};
    assert_ok(td_stats(tensor, pool, &job, &stats, NULL));
    assert_int_equal(job.done, tensor->bytes);
    return stats;
}

/* As a recorder takes them: single blocks are shared out. */
static struct tdbg_stats recorded_stats(const struct td_tensor *tensor, struct td_pool *pool)
{
    struct tdbg_stats stats;
    assert_ok(td_stats_with(td_kernels_usable()[0], tensor, pool, &stats, NULL));
    return stats;
}

/* The same values packed, transposed, with gaps and backwards: the same bits; also with one and three threads
 * and on every tier. */
static void strides_and_threads(void **state)
{
    (void)state;
    enum { MOST = 811, COLUMNS = 1013 };
    const int64_t rows = quick() ? 307 : MOST; /* two chunks are enough */
    struct td_pool *pool = NULL;
    assert_ok(td_pool_open(&pool, 3, NULL));
    uint8_t *plain = malloc(MOST * COLUMNS * 16), *other = malloc(2 * MOST * COLUMNS * 16);
    for (int dtype = 0; dtype < TD_PLAIN_DTYPES; dtype++) {
        uint64_t size = td_dtype_size((enum td_dtype)dtype), bytes = (uint64_t)rows * COLUMNS * size;
        fill_elements((enum td_dtype)dtype, dtype == TD_C64 || dtype == TD_C128 ? TAME : SPECIAL, plain,
                      rows * COLUMNS);
        struct td_tensor tensor = packed(plain, bytes, (enum td_dtype)dtype, rows, COLUMNS);
        struct tdbg_stats expected = stats_of(&tensor, NULL), got;
        assert_int_equal(expected.count, rows * COLUMNS);
        got = stats_of(&tensor, pool);
        assert_memory_equal(&got, &expected, sizeof got);
        got = recorded_stats(&tensor, pool);
        assert_memory_equal(&got, &expected, sizeof got);

        const int64_t layouts[3][2] = {{1, rows}, {2 * COLUMNS, 2}, {-COLUMNS, 1}};
        const uint64_t offsets[3] = {0, 0, (uint64_t)(rows - 1) * COLUMNS};
        for (int k = 0; k < 3; k++) {
            const int64_t *stride = layouts[k];
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < COLUMNS; c++)
                    memcpy(other + ((int64_t)offsets[k] + r * stride[0] + c * stride[1]) * (int64_t)size,
                           plain + (r * COLUMNS + c) * (int64_t)size, size);
            struct td_shape shape = {.ndim = 2, .size = {rows, COLUMNS}};
            struct td_view view;
            assert_ok(td_view_strided(&view, other, 2 * bytes, (enum td_dtype)dtype, offsets[k], &shape,
                                      stride, NULL));
            struct td_tensor strided = dense(&view);
            got = stats_of(&strided, k % 2 ? pool : NULL);
            assert_memory_equal(&got, &expected, sizeof got);
            got = recorded_stats(&strided, pool);
            assert_memory_equal(&got, &expected, sizeof got);
        }
        for (size_t k = 0; td_kernels_usable()[k]; k++) {
            setenv("TDBG_CPU", td_kernels_usable()[k]->name, 1);
            got = stats_of(&tensor, pool);
            assert_memory_equal(&got, &expected, sizeof got);
        }
        unsetenv("TDBG_CPU");
    }
    free(plain);
    free(other);
    td_pool_close(&pool);
}

/* More blocks than are in the air at once, and a last one that is cut short. */
static void waves_of_blocks(void **state)
{
    (void)state;
    const int64_t count = (TD_SWEEP_SLOTS + 19) * (int64_t)TD_BLOCK_LENGTH + 5;
    struct td_pool *pool = NULL;
    assert_ok(td_pool_open(&pool, 3, NULL));
    uint16_t *values = malloc((size_t)count * sizeof *values);
    fill_elements(TD_BF16, TAME, (uint8_t *)values, count);
    struct td_tensor tensor = packed(values, (uint64_t)count * sizeof *values, TD_BF16, 1, count);
    struct tdbg_stats expected = stats_of(&tensor, NULL), got = recorded_stats(&tensor, pool);
    assert_memory_equal(&got, &expected, sizeof got);
    free(values);
    td_pool_close(&pool);
}

/* A type in which the naive sums are right. */
#if defined(__x86_64__)
typedef __float128 wide;
#else
typedef long double wide;
#endif

static bool close_to(double got, double expected, double relative)
{
    return fabs(got - expected) <= relative * fabs(expected);
}

static void check_against_wide(const double *values, int64_t count)
{
    struct td_tensor tensor = packed(values, (uint64_t)count * 8, TD_F64, 1, count);
    struct tdbg_stats s = stats_of(&tensor, NULL);
    wide sum = 0, m2 = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (wide)values[i];
    wide mean = sum / count;
    for (int64_t i = 0; i < count; i++) {
        m2 += ((wide)values[i] - mean) * ((wide)values[i] - mean);
        squares += (wide)values[i] * (wide)values[i];
    }
    assert_true(close_to(s.mean, (double)mean, 1e-13));
    assert_true(close_to(s.std, (double)sqrtl((long double)(m2 / (count - 1))), 1e-13));
    assert_true(close_to(s.norm, (double)sqrtl((long double)squares), 1e-13));
}

/* Where naive sums lose everything: a large mean, outliers at the head of each block, huge and tiny values.
 */
static void hard_data(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    double *values = malloc(COUNT * sizeof *values);
    static const double offsets[] = {1e8, 1e12, -3e15, 5, 1e300, 1e-300};
    for (int k = 0; k < 6; k++) {
        double noise = offsets[k] > 1e100 || fabs(offsets[k]) < 1e-100 ? offsets[k] : 1;
        for (int i = 0; i < COUNT; i++)
            values[i] = offsets[k] + noise * ((double)(random_u64() >> 11) * 0x1p-53 - 0.5);
        check_against_wide(values, COUNT);
        for (int i = 0; i < COUNT; i += TD_BLOCK_LENGTH)
            values[i] *= 1e6;
        check_against_wide(values, COUNT);
    }
    free(values);
}

static void constants_have_no_spread(void **state)
{
    (void)state;
    static double values[10000];
    for (int i = 0; i < 10000; i++)
        values[i] = i % 5 == 3 ? NAN : 0.1;
    struct td_tensor tensor = packed(values, sizeof values, TD_F64, 100, 100);
    struct tdbg_stats s = stats_of(&tensor, NULL);
    assert_true(s.mean == 0.1 && s.std == 0 && s.min == 0.1 && s.max == 0.1 && s.nan == 2000);
}

static void edges(void **state)
{
    (void)state;
    const float one[] = {-2}, zeros[] = {-0.f, 0, -0.f}, none[] = {NAN, INFINITY, -INFINITY};
    struct td_tensor tensor = packed(one, 4, TD_F32, 1, 1);
    struct tdbg_stats s = stats_of(&tensor, NULL);
    assert_true(s.mean == -2 && isnan(s.std) && s.norm == 2 && s.absmax == 2);

    tensor = packed(zeros, 12, TD_F32, 1, 3);
    s = stats_of(&tensor, NULL);
    assert_true(s.zeros == 3 && s.std == 0 && !signbit(s.min) && !signbit(s.max) && !signbit(s.mean));

    tensor = packed(none, 12, TD_F32, 1, 3);
    s = stats_of(&tensor, NULL);
    assert_true(s.count == 3 && s.finite == 0 && s.nan == 1 && s.inf == 2 && s.norm == 0);
    assert_true(isnan(s.mean) && isnan(s.std) && isnan(s.min) && isnan(s.max) && isnan(s.absmax));

    tensor = packed(none, 0, TD_F32, 0, 3);
    s = stats_of(&tensor, NULL);
    assert_true(s.count == 0 && isnan(s.mean) && s.norm == 0);
}

/* Half a billion million elements, of which four exist. */
static void expanded(void **state)
{
    (void)state;
    const float values[] = {1, 2, NAN, 0};
    struct td_shape shape = {.ndim = 3, .size = {1 << 20, 4, 1 << 20}};
    const int64_t strides[] = {0, 1, 0};
    struct td_view view;
    assert_ok(td_view_strided(&view, values, sizeof values, TD_F32, 0, &shape, strides, NULL));
    struct td_tensor tensor = dense(&view);
    struct tdbg_stats s = stats_of(&tensor, NULL);
    assert_true(s.count == UINT64_C(1) << 42 && s.nan == UINT64_C(1) << 40 && s.zeros == UINT64_C(1) << 40);
    assert_true(s.mean == 1 && close_to(s.std, sqrt(2.0 / 3), 1e-12) && s.norm == sqrt(5) * 0x1p20);
    uint64_t counts[2];
    double edges[3];
    assert_ok(td_histogram(&tensor, NULL, NULL, 0, 2, 2, edges, counts, NULL));
    assert_true(edges[0] == 0 && edges[1] == 1 && edges[2] == 2);
    assert_true(counts[0] == UINT64_C(1) << 40 && counts[1] == UINT64_C(1) << 41);
}

static void overlapping(void **state)
{
    (void)state;
    static const float values[8192];
    struct td_shape shape = {.ndim = 4, .size = {2000, 2000, 2000, 2000}};
    const int64_t strides[] = {1, 1, 1, 1};
    struct td_view view;
    struct tdbg_error error;
    struct tdbg_stats s;
    assert_ok(td_view_strided(&view, values, sizeof values, TD_F32, 0, &shape, strides, NULL));
    struct td_tensor tensor = dense(&view);
    assert_fails(td_stats(&tensor, NULL, NULL, &s, &error), TDBG_LIMIT,
                 "a view of 16000000000000 elements that overlap");
}

static void cancelled(void **state)
{
    (void)state;
    static const float values[100];
    struct td_tensor tensor = packed(values, sizeof values, TD_F32, 10, 10);
    struct td_job job = {.cancelled = true};
    struct tdbg_stats s;
    struct tdbg_error error;
    assert_fails(td_stats(&tensor, NULL, &job, &s, &error), TDBG_CANCELLED, "cancelled");
}

static void tier_by_name(void **state)
{
    (void)state;
    const struct td_kernels *kernels;
    struct tdbg_error error;
    setenv("TDBG_CPU", "scalar", 1);
    assert_ok(td_kernels_select(&kernels, &error));
    assert_ptr_equal(kernels, &td_kernels_scalar);
    setenv("TDBG_CPU", "abacus", 1);
    assert_int_equal(td_kernels_select(&kernels, &error), TDBG_MISUSE);
    assert_memory_equal(error.message, "TDBG_CPU=abacus: this machine has ", 34);
    unsetenv("TDBG_CPU");
    assert_ok(td_kernels_select(&kernels, &error));
    assert_ptr_equal(kernels, td_kernels_usable()[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_equal_scalar),
        cmocka_unit_test(zeros_among_both_signs),
        cmocka_unit_test(no_place_is_overlooked),
        cmocka_unit_test(strides_and_threads),
        cmocka_unit_test(waves_of_blocks),
        cmocka_unit_test(hard_data),
        cmocka_unit_test(constants_have_no_spread),
        cmocka_unit_test(edges),
        cmocka_unit_test(expanded),
        cmocka_unit_test(overlapping),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(tier_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
