/* test_measure.c: whole tensors compared: strides, permutations, threads and shards change nothing; the
 * answer equals a slow computation in 113 bits; and what a second look finds.
 */
#include "test_support.h"

#include "kernel/compare.h"
#include "kernel/convert.h"
#include "kernel/stats.h"
#include "kernel/tier.h"
#include "pair_values.h"

#include <math.h>
#include <stdlib.h>

/* --- operands ------------------------------------------------------------------------------------------ */

struct made {
    struct td_operand operand;
    struct td_tensor parts[4];
    const struct td_tensor *stored[4];
};

static struct td_tensor strided(const void *data, uint64_t bytes, enum td_dtype dtype,
                                const struct td_shape *shape, const int64_t *strides)
{
    struct td_view view;
    if (strides)
        assert_ok(td_view_strided(&view, data, bytes, dtype, 0, shape, strides, NULL));
    else
        assert_ok(td_view_packed(&view, data, bytes, dtype, shape, NULL));
    return (struct td_tensor){.dtype = dtype,
                              .shape = view.shape,
                              .count = view.count,
                              .bytes = (uint64_t)view.count * td_dtype_size(dtype),
                              .view = view};
}

/* Call after the parts are in place. */
static const struct td_operand *finish(struct made *m, enum td_join join, int axis, int parts)
{
    m->operand = (struct td_operand){.join = join,
                                     .axis = axis,
                                     .shape = m->parts[0].shape,
                                     .part_count = parts,
                                     .parts = m->parts,
                                     .stored = m->stored};
    if (join == TD_JOIN_CONCAT)
        for (int i = 1; i < parts; i++)
            m->operand.shape.size[axis] += m->parts[i].shape.size[axis];
    m->operand.count = 1;
    for (int i = 0; i < m->operand.shape.ndim; i++)
        m->operand.count *= m->operand.shape.size[i];
    for (int i = 0; i < parts; i++)
        m->stored[i] = &m->parts[i];
    return &m->operand;
}

static const struct td_operand *single(struct made *m, const void *data, enum td_dtype dtype,
                                       const struct td_shape *shape, const int64_t *strides)
{
    uint64_t count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= (uint64_t)shape->size[i];
    m->parts[0] = strided(data, count * td_dtype_size(dtype), dtype, shape, strides);
    return finish(m, TD_JOIN_CONCAT, 0, 1);
}

static struct td_metrics measure(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool)
{
    struct td_metrics m;
    memset(&m, 0, sizeof m);
    assert_ok(td_measure(a, b, pool, NULL, &m, NULL));
    return m;
}

static const struct td_shape cube = {.ndim = 3, .size = {37, 127, 64}};
enum { CUBE = 37 * 127 * 64 }; /* two chunks, the last block broken */

/* Element (h, t, d) of `packed` goes where strides {64, 37 * 64, 1} have it: heads first, stored tokens
 * first. */
static void store_permuted(const uint8_t *packed, size_t size, uint8_t *to)
{
    for (size_t h = 0; h < 37; h++)
        for (size_t t = 0; t < 127; t++)
            memcpy(to + (t * 37 + h) * 64 * size, packed + (h * 127 + t) * 64 * size, 64 * size);
}

/* The same values packed and permuted, with one thread and three, on every tier: the same bits. */
static void strides_threads_tiers(void **state)
{
    (void)state;
    uint8_t *a = malloc(CUBE * 8), *b = malloc(CUBE * 8), *other = malloc(CUBE * 8);
    const int64_t permuted[] = {64, 37 * 64, 1};
    struct td_pool *pool = NULL;
    assert_ok(td_pool_open(&pool, 3, NULL));
    for (int ta = 0; ta < FLOATS; ta++)
        for (int tb = 0; tb < FLOATS; tb++)
            for (int special = 0; special < 2; special++) {
                if (quick() && special != (ta + tb) % 2)
                    continue;
                struct made ma, mb, mc;
                fill_sides(floats[ta], a, floats[tb], b, special ? SPECIAL : TAME, CUBE);
                store_permuted(b, td_dtype_size(floats[tb]), other);
                const struct td_operand *x = single(&ma, a, floats[ta], &cube, NULL);
                const struct td_operand *y = single(&mb, b, floats[tb], &cube, NULL);
                const struct td_operand *z = single(&mc, other, floats[tb], &cube, permuted);
                setenv("TDBG_CPU", "scalar", 1);
                struct td_metrics expected = measure(x, y, NULL), got;
                assert_true(expected.paired > 0 && expected.differing > 0);
                for (size_t k = 0; td_kernels_usable()[k]; k++) {
                    setenv("TDBG_CPU", td_kernels_usable()[k]->name, 1);
                    got = measure(x, y, pool);
                    assert_memory_equal(&got, &expected, sizeof got);
                    got = measure(x, z, k % 2 ? pool : NULL);
                    assert_memory_equal(&got, &expected, sizeof got);
                }
                unsetenv("TDBG_CPU");
            }
    td_pool_close(&pool);
    free(other);
    free(b);
    free(a);
}

/* Every other type is compared as doubles; each side's statistics are those of td_stats. */
static void all_types(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint8_t a[COUNT * 16];
    static double x[COUNT], y[COUNT];
    const struct td_shape shape = {.ndim = 1, .size = {COUNT}};
    for (int dtype = 0; dtype < TD_PLAIN_DTYPES; dtype++) {
        enum td_dtype t = (enum td_dtype)dtype;
        struct made ma, mb, mc;
        struct tdbg_stats stats;
        for (size_t i = 0; i < sizeof a; i++)
            a[i] = (uint8_t)(random_u64() & 0x3f);
        for (int i = 0; i < COUNT; i++)
            y[i] = (double)(i % 11);
        td_convert_f64(t, a, COUNT, x);
        const struct td_operand *wide = single(&mb, y, TD_F64, &shape, NULL);
        struct td_metrics got = measure(single(&ma, a, t, &shape, NULL), wide, NULL);
        if (t == TD_C64 || t == TD_C128)
            continue;
        struct td_metrics expected = measure(single(&mc, x, TD_F64, &shape, NULL), wide, NULL);
        got.max_ulp = expected.max_ulp = 0;
        assert_memory_equal(&got, &expected, sizeof got);
        assert_ok(td_stats(&mc.parts[0], NULL, NULL, &stats, NULL));
        assert_memory_equal(&got.a, &stats, sizeof stats);
    }
}

/* --- shards -------------------------------------------------------------------------------------------- */

static void same_but_ulps(struct td_metrics got, struct td_metrics expected)
{
    assert_true(isnan(got.max_ulp)); /* parts are joined as doubles */
    got.max_ulp = expected.max_ulp = 0;
    assert_memory_equal(&got, &expected, sizeof got);
}

static void concatenated(void **state)
{
    (void)state;
    float *a = malloc(CUBE * 4), *b = malloc(CUBE * 4), *shards = malloc(CUBE * 4);
    fill_sides(TD_F32, (uint8_t *)a, TD_F32, (uint8_t *)b, SPECIAL, CUBE);
    struct made ma, mb, mc;
    const struct td_operand *x = single(&ma, a, TD_F32, &cube, NULL);
    struct td_metrics expected = measure(x, single(&mb, b, TD_F32, &cube, NULL), NULL);
    for (int axis = 0; axis < 3; axis++) {
        const int64_t cuts[] = {0, 5, 6, cube.size[axis]};
        float *to = shards;
        for (int p = 0; p < 3; p++) {
            struct td_shape shape = cube;
            shape.size[axis] = cuts[p + 1] - cuts[p];
            float *start = to;
            for (int64_t i = 0; i < CUBE; i++) {
                int64_t at[] = {i / (127 * 64), i / 64 % 127, i % 64};
                if (at[axis] >= cuts[p] && at[axis] < cuts[p + 1])
                    *to++ = b[i];
            }
            mc.parts[p] = strided(start, (uint64_t)(to - start) * 4, TD_F32, &shape, NULL);
        }
        same_but_ulps(measure(x, finish(&mc, TD_JOIN_CONCAT, axis, 3), NULL), expected);
    }
    free(shards);
    free(b);
    free(a);
}

/* Partial sums whose total is exact: multiples of 1/1024. */
static void summed(void **state)
{
    (void)state;
    enum { COUNT = 9000 };
    static float a[COUNT], b[COUNT], parts[3][COUNT];
    const struct td_shape shape = {.ndim = 2, .size = {90, 100}};
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)(random_u64() % 4096) / 1024;
        b[i] = 0;
        for (int p = 0; p < 3; p++)
            b[i] += parts[p][i] = (float)(random_u64() % 4096) / 1024 - 2;
    }
    struct made ma, mb, mc;
    const struct td_operand *x = single(&ma, a, TD_F32, &shape, NULL);
    struct td_metrics expected = measure(x, single(&mb, b, TD_F32, &shape, NULL), NULL);
    for (int p = 0; p < 3; p++)
        mc.parts[p] = strided(parts[p], sizeof parts[p], TD_F32, &shape, NULL);
    same_but_ulps(measure(x, finish(&mc, TD_JOIN_SUM, 0, 3), NULL), expected);
}

/* --- the numbers themselves ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
typedef __float128 wide;
#else
typedef long double wide;
#endif

static bool close_to(double got, wide expected)
{
    return fabs(got - (double)expected) <= 1e-12 * fabs((double)expected);
}

static wide magnitude(wide x)
{
    return x < 0 ? -x : x;
}

static void check_against_wide(const double *a, const double *b, int64_t count, const struct td_metrics *m)
{
    wide abs = 0, rel = 0, square = 0, aa = 0, bb = 0, ab = 0, max = -1;
    int64_t n = 0, first = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            continue;
        wide x = (wide)a[i], y = (wide)b[i], d = magnitude(x - y);
        n++;
        abs += d;
        rel += d / (magnitude(x) + (wide)TD_REL_EPSILON);
        square += d * d;
        aa += x * x;
        bb += y * y;
        ab += x * y;
        if (fabs(a[i] - b[i]) > (double)max) {
            max = (wide)fabs(a[i] - b[i]);
            first = i;
        }
    }
    assert_int_equal(m->count, count);
    assert_int_equal(m->paired, n);
    assert_int_equal(m->argmax, first);
    assert_true(m->max_abs == (double)max && m->argmax_a == a[first] && m->argmax_b == b[first]);
    assert_true(close_to(m->mean_abs, abs / n) && close_to(m->mean_rel, rel / n));
    assert_true(close_to(m->rel_l2 * m->rel_l2, square / aa));
    assert_true(close_to(m->cosine, ab / (wide)sqrtl((long double)aa) / (wide)sqrtl((long double)bb)));
    if (square / n < 1e300)
        assert_true(close_to(m->mse, square / n) && close_to(m->rmse * m->rmse, square / n));
}

static void against_wide(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    double *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b);
    const struct td_shape shape = {.ndim = 1, .size = {COUNT}};
    /* offset and size of the values, size of the error; the last two have squares beyond double */
    static const double cases[][3] = {
        {0, 1, 1e-6}, {100, 1, 1}, {1e6, 1, 1e-3}, {1e200, 1e200, 1e195}, {0, 1e-200, 1e-203}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int holes = 0; holes < 2; holes++) {
            if (quick() && holes != (int)c % 2)
                continue;
            for (int i = 0; i < COUNT; i++) {
                a[i] = cases[c][0] + cases[c][1] * ((double)(random_u64() >> 11) * 0x1p-53 - 0.5);
                b[i] = a[i] + cases[c][2] * ((double)(random_u64() >> 11) * 0x1p-53 - 0.5);
                if (holes && i % 1000 == 7)
                    (i % 2000 == 7 ? a : b)[i] = i % 3 ? NAN : INFINITY;
            }
            struct made ma, mb;
            struct td_metrics m =
                measure(single(&ma, a, TD_F64, &shape, NULL), single(&mb, b, TD_F64, &shape, NULL), NULL);
            check_against_wide(a, b, COUNT, &m);
        }
    free(b);
    free(a);
}

/* 16-bit floats of which a fifth differs: packed, and side b known from side a. */
static void few_differ(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    uint16_t *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b);
    double *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    const struct td_shape shape = {.ndim = 1, .size = {COUNT}};
    static const enum fill fills[] = {FEW, FEW_POSITIVE, FEW_NEGATIVE};
    for (int round = 0; round < (quick() ? 6 : 16); round++) {
        enum td_dtype dtype = round % 2 ? TD_F16 : TD_BF16;
        fill_sides(dtype, (uint8_t *)a, dtype, (uint8_t *)b, fills[round / 2 % 3], COUNT);
        td_convert_f64(dtype, a, COUNT, x);
        td_convert_f64(dtype, b, COUNT, y);
        struct made ma, mb;
        struct tdbg_stats stats;
        struct td_metrics m =
            measure(single(&ma, a, dtype, &shape, NULL), single(&mb, b, dtype, &shape, NULL), NULL);
        check_against_wide(x, y, COUNT, &m);
        assert_ok(td_stats(&mb.parts[0], NULL, NULL, &stats, NULL));
        assert_true(fabs(m.b.mean - stats.mean) <= 1e-13 * (fabs(stats.mean) + stats.std));
        assert_true(fabs(m.b.std - stats.std) <= 1e-13 * stats.std);
        assert_true(m.b.min == stats.min && m.b.max == stats.max && m.b.zeros == stats.zeros);
    }
    free(y);
    free(x);
    free(b);
    free(a);
}

/* Of equal differences the first counts, wherever chunks and blocks begin. */
static void argmax_is_the_first(void **state)
{
    (void)state;
    enum { COUNT = 2 * TD_CHUNK_LENGTH + 5000 };
    float *a = calloc(COUNT, sizeof *a), *b = calloc(COUNT, sizeof *b);
    const struct td_shape shape = {.ndim = 1, .size = {COUNT}};
    static const int64_t places[] = {COUNT - 1, TD_CHUNK_LENGTH, TD_CHUNK_LENGTH - 1, TD_BLOCK_LENGTH, 17, 0};
    struct made ma, mb;
    const struct td_operand *x = single(&ma, a, TD_F32, &shape, NULL),
                            *y = single(&mb, b, TD_F32, &shape, NULL);
    struct td_metrics m = measure(x, y, NULL);
    assert_true(m.argmax == 0 && m.max_abs == 0 && m.differing == 0 && m.cosine == 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        (i % 2 ? a : b)[places[i]] = 1.5f;
        m = measure(x, y, NULL);
        assert_int_equal(m.argmax, places[i]);
        assert_int_equal(m.differing, i + 1);
        assert_true(m.max_abs == 1.5 && fabs(m.argmax_a - m.argmax_b) == 1.5);
    }
    free(b);
    free(a);
}

static void nothing_paired(void **state)
{
    (void)state;
    const float a[] = {NAN, INFINITY, 1}, b[] = {NAN, INFINITY, -INFINITY};
    const struct td_shape shape = {.ndim = 1, .size = {3}}, none = {.ndim = 2, .size = {0, 3}};
    struct made ma, mb;
    struct td_metrics m =
        measure(single(&ma, a, TD_F32, &shape, NULL), single(&mb, b, TD_F32, &shape, NULL), NULL);
    assert_true(m.paired == 0 && m.argmax == -1 && m.differing == 1 && m.mean_abs == 0);
    assert_true(m.nan_both == 1 && m.inf_same == 1 && m.inf_b == 2 && m.inf_a == 1);
    m = measure(single(&ma, a, TD_F32, &none, NULL), single(&mb, b, TD_F32, &none, NULL), NULL);
    assert_true(m.count == 0 && m.argmax == -1 && m.rel_l2 == 0);
}

/* --- the second look ----------------------------------------------------------------------------------- */

static void examined(void **state)
{
    (void)state;
    enum { COUNT = TD_CHUNK_LENGTH + 3000 };
    float *a = calloc(COUNT, sizeof *a), *b = calloc(COUNT, sizeof *b);
    const struct td_shape shape = {.ndim = 1, .size = {COUNT}};
    for (int i = 0; i < COUNT; i++)
        b[i] = a[i] = (float)(i % 5);
    b[TD_CHUNK_LENGTH + 7] = 100;
    b[10] = b[4000] = 50; /* where a is 0 */
    a[70] = b[70] = NAN;
    a[71] = NAN;
    b[COUNT - 1] += 1e-3f;
    struct made ma, mb;
    struct td_arena arena;
    struct td_examination e;
    td_arena_init(&arena, 1 << 20);
    assert_ok(td_examine(single(&ma, a, TD_F32, &shape, NULL), single(&mb, b, TD_F32, &shape, NULL),
                         (struct td_tolerance){.atol = 0.01}, 4, NULL, NULL, &arena, &e, NULL));
    assert_int_equal(e.beyond, 4);
    assert_int_equal(e.worst_count, 4);
    const int64_t expected[] = {71, TD_CHUNK_LENGTH + 7, 10, 4000};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(e.worst[i].index, expected[i]);
        assert_true(e.worst[i].b == (double)b[expected[i]]);
    }
    td_arena_release(&arena);
    free(b);
    free(a);
}

/* Complex numbers of one size may still be far apart. */
static void complex_examined(void **state)
{
    (void)state;
    const float a[] = {1, 0, 0, 2, 3, 4}, b[] = {-1, 0, 0, 2, 3, 4};
    const struct td_shape shape = {.ndim = 1, .size = {3}};
    struct made ma, mb;
    struct td_arena arena;
    struct td_examination e;
    td_arena_init(&arena, 1 << 20);
    const struct td_operand *x = single(&ma, a, TD_C64, &shape, NULL),
                            *y = single(&mb, b, TD_C64, &shape, NULL);
    assert_ok(td_examine(x, y, (struct td_tolerance){.rtol = 0.5}, 4, NULL, NULL, &arena, &e, NULL));
    assert_true(e.beyond == 1 && e.worst_count == 1 && e.worst[0].index == 0);
    struct td_metrics m = measure(x, y, NULL);
    assert_true(m.max_abs == 2 && m.differing == 1 && m.dot == -1 + 4 + 25);
    td_arena_release(&arena);
}

/* Two integers that are the same double. */
static void integers_examined(void **state)
{
    (void)state;
    const int64_t a[] = {5, INT64_MAX, -7}, b[] = {5, INT64_MAX - 1, -7};
    const struct td_shape shape = {.ndim = 1, .size = {3}};
    struct made ma, mb;
    struct td_arena arena;
    struct td_examination e;
    td_arena_init(&arena, 1 << 20);
    const struct td_operand *x = single(&ma, a, TD_I64, &shape, NULL);
    const struct td_operand *y = single(&mb, b, TD_I64, &shape, NULL);
    assert_ok(td_examine(x, y, (struct td_tolerance){.atol = 0.5}, 4, NULL, NULL, &arena, &e, NULL));
    assert_true(e.beyond == 1 && e.worst_count == 1 && e.worst[0].index == 1);
    struct td_metrics m = measure(x, y, NULL);
    assert_true(m.max_abs == 1 && m.differing == 1 && m.argmax == 1);
    td_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_threads_tiers),
        cmocka_unit_test(all_types),
        cmocka_unit_test(concatenated),
        cmocka_unit_test(summed),
        cmocka_unit_test(against_wide),
        cmocka_unit_test(few_differ),
        cmocka_unit_test(argmax_is_the_first),
        cmocka_unit_test(nothing_paired),
        cmocka_unit_test(examined),
        cmocka_unit_test(complex_examined),
        cmocka_unit_test(integers_examined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
