/* test_tile.c: tiles against straightforward loops over single elements.
 *
 * Values are small multiples of 1/8, so that sums are exact in any order and the expected cells need no
 * tolerance; the order of sums is checked apart, tier against tier, on values that do round.
 */
#include "test_support.h"

#include "kernel/access.h"
#include "kernel/compare.h"
#include "kernel/tier.h"
#include "kernel/tile.h"

#include <math.h>
#include <stdlib.h>

static uint64_t seed = 7;

static uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* An operand of one dense part. */
struct fixture {
    struct td_tensor tensor;
    const struct td_tensor *stored;
    struct td_operand operand;
    struct td_access access;
};

static void fixture_init(struct fixture *f, const struct td_view *view)
{
    f->tensor =
        (struct td_tensor){.dtype = view->dtype, .shape = view->shape, .count = view->count, .view = *view};
    f->stored = &f->tensor;
    f->operand = (struct td_operand){.shape = view->shape,
                                     .count = view->count,
                                     .part_count = 1,
                                     .parts = &f->tensor,
                                     .stored = &f->stored};
    assert_ok(td_access_init(&f->access, &f->operand, NULL));
}

/* Element (row, column) of a plane by the naive route; false: there is none. */
static bool element(const struct td_plane *p, const struct td_operand *o, int64_t row, int64_t column,
                    double *out)
{
    int64_t index = row * p->columns + column;
    if (p->folded && index >= p->count)
        return false;
    if (!p->folded) {
        int64_t stride = 1;
        index = 0;
        for (int i = o->shape.ndim - 1; i >= 0; i--) {
            const struct td_slice_axis *axis = &p->slice.axis[i];
            int64_t at = i == p->column_axis ? column : i == p->row_axis ? row : 0;
            index += (axis->start + at * axis->step) * stride;
            stride *= o->shape.size[i];
        }
    }
    assert_ok(td_operand_load(o, index, 1, out, NULL));
    return true;
}

static void expected_cell(const struct td_plane *p, const struct td_operand *a, const struct td_operand *b,
                          int level, int64_t row, int64_t column, float *mean, float *largest)
{
    double sum = 0;
    float best = 0;
    int64_t count = 0;
    bool nan = false;
    for (int64_t r = row << level; r < (row + 1) << level && r < p->rows; r++)
        for (int64_t c = column << level; c < (column + 1) << level && c < p->columns; c++) {
            double x, y;
            if (!element(p, a, r, c, &x))
                continue;
            if (b && element(p, b, r, c, &y))
                x = x == y ? 0 : y - x; /* infinities, too */
            nan |= isnan(x);
            float rounded = (float)x;
            if (count == 0 || fabsf(rounded) > fabsf(best) ||
                (fabsf(rounded) == fabsf(best) && rounded > best))
                best = rounded;
            sum += x;
            count++;
        }
    *mean = (float)(sum / (double)count);
    *largest = nan || count == 0 ? NAN : best;
}

static void assert_same(float got, float expected)
{
    assert_true(isnan(expected) ? isnan(got) : got == expected);
}

static void paint_level(const struct td_plane *p, const struct td_access *a, const struct td_access *b,
                        int level, int64_t y, int64_t x, struct td_tile *out)
{
    if (level <= TD_TILE_BASE) {
        assert_ok(td_tile_init(out, p, a, b, level, y, x, NULL, NULL));
        return;
    }
    struct td_tile below[4];
    const struct td_tile *children[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        int64_t cy = 2 * y + i / 2, cx = 2 * x + i % 2;
        if (cy * TD_TILE_CELLS >= td_plane_rows(p, level - 1) ||
            cx * TD_TILE_CELLS >= td_plane_columns(p, level - 1))
            continue;
        paint_level(p, a, b, level - 1, cy, cx, &below[i]);
        children[i] = &below[i];
    }
    assert_ok(td_tile_join(out, p, children, level, y, x, NULL));
    for (int i = 0; i < 4; i++)
        if (children[i])
            td_tile_release(&below[i]);
}

/* Made in one pass they have the bits of those made one by one. */
static void check_together(const struct td_plane *p, const struct fixture *a, const struct fixture *b,
                           int level, int64_t y, int64_t x)
{
    struct td_tile together[TD_TILE_KINDS], alone[TD_TILE_KINDS];
    struct td_tile *const wanted[TD_TILE_KINDS] = {&together[0], &together[1], &together[2]};
    assert_ok(td_tile_init(&alone[TD_OF_A], p, &a->access, NULL, level, y, x, NULL, NULL));
    assert_ok(td_tile_init(&alone[TD_OF_B], p, &b->access, NULL, level, y, x, NULL, NULL));
    assert_ok(td_tile_init(&alone[TD_OF_DIFFERENCE], p, &a->access, &b->access, level, y, x, NULL, NULL));
    assert_ok(td_tiles_init(wanted, p, &a->access, &b->access, level, y, x, NULL, NULL));
    for (int i = 0; i < TD_TILE_KINDS; i++) {
        size_t n = (size_t)alone[i].rows * (size_t)alone[i].columns;
        assert_memory_equal(together[i].sums, alone[i].sums, n * sizeof *alone[i].sums);
        assert_memory_equal(together[i].peaks, alone[i].peaks, n * sizeof *alone[i].peaks);
        td_tile_release(&together[i]);
        td_tile_release(&alone[i]);
    }
}

static void check_tile(const struct td_plane *p, const struct fixture *a, const struct fixture *b, int level,
                       int64_t y, int64_t x)
{
    if (b && level <= TD_TILE_BASE)
        check_together(p, a, b, level, y, x);
    static float means[TD_TILE_CELLS * TD_TILE_CELLS], turned[TD_TILE_CELLS * TD_TILE_CELLS];
    struct td_tile tile;
    paint_level(p, &a->access, b ? &b->access : NULL, level, y, x, &tile);
    td_tile_paint(&tile, p, true, false, means);
    td_tile_paint(&tile, p, false, true, turned);
    for (int r = 0; r < tile.rows; r++)
        for (int c = 0; c < tile.columns; c++) {
            float mean, largest;
            expected_cell(p, &a->operand, b ? &b->operand : NULL, level, y * TD_TILE_CELLS + r,
                          x * TD_TILE_CELLS + c, &mean, &largest);
            assert_same(means[r * tile.columns + c], mean);
            assert_same(turned[c * tile.rows + r], largest);
        }
    td_tile_release(&tile);
}

static void check_plane(const struct td_plane *p, const struct fixture *a, const struct fixture *b)
{
    static const int levels[] = {0, 1, 3, 4, 5, 7};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        int64_t y = (td_plane_rows(p, levels[i]) - 1) / TD_TILE_CELLS;
        int64_t x = (td_plane_columns(p, levels[i]) - 1) / TD_TILE_CELLS;
        check_tile(p, a, b, levels[i], 0, 0);
        if (y > 0 || x > 0)
            check_tile(p, a, b, levels[i], y, x);
    }
}

/* Multiples of 1/8 in every type, with a few NaN and infinities where the type has them; some of those at the
 * same places of every tensor. */
static void fill(enum td_dtype dtype, uint8_t *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value = (double)(random_u64() % 97) / 8 - 6;
        uint64_t odd = random_u64() % 3000;
        value = odd == 0 ? (double)NAN : odd == 1 ? (double)INFINITY : odd == 2 ? -(double)INFINITY : value;
        if (i % 2003 == 5)
            value = i % 2 ? -(double)INFINITY : (double)INFINITY;
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, 4);
        if (dtype == TD_F64)
            memcpy(bytes + 8 * i, &value, 8);
        else if (dtype == TD_F32)
            memcpy(bytes + 4 * i, &narrow, 4);
        else if (dtype == TD_BF16)
            memcpy(bytes + 2 * i, (uint8_t *)&bits + 2, 2);
        else
            bytes[(size_t)i * td_dtype_size(dtype)] = (uint8_t)(random_u64() % 100);
    }
}

static void types_and_strides(void **state)
{
    (void)state;
    enum { COUNT = 300 * 350 };
    static uint8_t storage[2][COUNT * 16 + 1];
    const struct {
        struct td_shape shape;
        int64_t strides[3];
        const char *view;
    } cases[] = {
        {{2, {300, 350}}, {350, 1}, ""},
        {{2, {350, 300}}, {1, 350}, ""}, /* transposed in memory */
        {{2, {300, 350}}, {0, 1}, ""},   /* expanded */
        {{3, {5, 200, 105}}, {21000, 105, 1}, "3,:,::2"},
        {{3, {5, 200, 105}}, {21000, 105, 1}, ":,7"},
        {{3, {5, 200, 105}}, {21000, 105, 1}, "::-1,:,9"},
        {{3, {5, 200, 105}}, {21000, 105, 1}, "2,11"},
    };
    for (int dtype = 0; dtype < TD_PLAIN_DTYPES; dtype++) {
        memset(storage, 0, sizeof storage);
        fill((enum td_dtype)dtype, storage[0] + 1, COUNT);
        fill((enum td_dtype)dtype, storage[1] + 1, COUNT);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            if (quick() && dtype != TD_F32 && (c + (size_t)dtype) % 3 != 0)
                continue;
            struct fixture f[2];
            struct td_slice slice;
            struct td_plane plane;
            for (int i = 0; i < 2; i++) {
                struct td_view view;
                assert_ok(td_view_strided(&view, storage[i] + 1, sizeof storage[i] - 1, (enum td_dtype)dtype,
                                          0, &cases[c].shape, cases[c].strides, NULL));
                fixture_init(&f[i], &view);
            }
            assert_ok(td_slice_parse(&slice, cases[c].view, &cases[c].shape, NULL));
            assert_ok(td_plane_of_slice(&plane, &slice, NULL));
            bool small = dtype == TD_F32 || (!quick() && (dtype == TD_BF16 || dtype == TD_I8));
            for (int both = 0; both < 2; both++)
                small ? check_plane(&plane, &f[0], both ? &f[1] : NULL)
                      : check_tile(&plane, &f[0], both ? &f[1] : NULL, 2, 0, 0);
            td_access_release(&f[0].access);
            td_access_release(&f[1].access);
        }
    }
}

static void folded(void **state)
{
    (void)state;
    enum { COUNT = 77777 };
    static float values[COUNT];
    fill(TD_F32, (uint8_t *)values, COUNT);
    static const int64_t widths[] = {1, 100, 256, 1000, 5000, COUNT, COUNT + 5};
    struct td_shape shape = {2, {7, COUNT / 7}};
    struct td_view view;
    struct fixture f;
    assert_ok(td_view_packed(&view, values, sizeof values, TD_F32, &shape, NULL));
    fixture_init(&f, &view);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct td_plane plane;
        assert_ok(td_plane_folded(&plane, f.operand.count, widths[i], NULL));
        check_plane(&plane, &f, NULL);
    }
    td_access_release(&f.access);
}

/* Values that round: every tier and any number of threads give the same bits. */
static void same_bits(void **state)
{
    (void)state;
    enum { ROWS = 1100, COLUMNS = 1300 };
    static float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(random_u64() >> 40) * 1.1e-5f - 80;
    struct td_shape shape = {2, {ROWS, COLUMNS}};
    struct td_view view;
    struct td_slice slice;
    struct td_plane plane;
    struct fixture f;
    struct td_pool *pool;
    assert_ok(td_view_packed(&view, values, sizeof values, TD_F32, &shape, NULL));
    fixture_init(&f, &view);
    assert_ok(td_slice_parse(&slice, "", &shape, NULL));
    assert_ok(td_plane_of_slice(&plane, &slice, NULL));
    assert_ok(td_pool_open(&pool, 3, NULL));
    for (int level = 0; level <= TD_TILE_BASE; level++) {
        struct td_tile first = {0};
        for (const struct td_kernels *const *tier = td_kernels_usable(); *tier; tier++)
            for (int threads = 0; threads < 2; threads++) {
                struct td_tile tile;
                setenv("TDBG_CPU", (*tier)->name, 1);
                assert_ok(
                    td_tile_init(&tile, &plane, &f.access, NULL, level, 0, 0, threads ? pool : NULL, NULL));
                size_t n = (size_t)tile.rows * (size_t)tile.columns;
                if (first.sums) {
                    assert_memory_equal(tile.sums, first.sums, n * sizeof *tile.sums);
                    assert_memory_equal(tile.peaks, first.peaks, n * sizeof *tile.peaks);
                    td_tile_release(&tile);
                } else {
                    first = tile;
                }
            }
        td_tile_release(&first);
    }
    unsetenv("TDBG_CPU");
    td_pool_close(&pool);
    td_access_release(&f.access);
}

static void what_there_is_not(void **state)
{
    (void)state;
    struct tdbg_error error;
    float values[6] = {1, 2, 3, 4, 5, 6};
    struct td_shape shape = {2, {2, 3}};
    struct td_view view;
    struct td_slice slice;
    struct td_plane plane;
    struct td_tile tile;
    struct fixture f;
    assert_ok(td_view_packed(&view, values, sizeof values, TD_F32, &shape, NULL));
    fixture_init(&f, &view);
    assert_ok(td_slice_parse(&slice, "1,2", &shape, NULL));
    assert_fails(td_plane_of_slice(&plane, &slice, &error), TDBG_MISUSE,
                 "a picture shows one or two axes; this slice keeps 0");
    assert_ok(td_slice_parse(&slice, "", &shape, NULL));
    assert_ok(td_plane_of_slice(&plane, &slice, NULL));
    assert_fails(td_tile_init(&tile, &plane, &f.access, NULL, 1, 0, 1, NULL, &error), TDBG_MISUSE,
                 "no tile at x 1, y 0 of level 1");
    assert_ok(td_slice_parse(&slice, "0:0", &shape, NULL));
    assert_ok(td_plane_of_slice(&plane, &slice, NULL));
    assert_int_equal(td_tile_init(&tile, &plane, &f.access, NULL, 0, 0, 0, NULL, &error), TDBG_MISUSE);
    td_access_release(&f.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_strides),
        cmocka_unit_test(folded),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(what_there_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
