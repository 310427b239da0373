/* test_subject.c: slices of whatever a comparison can line up, against one element at a time.
 *
 * Operands are made as the comparison makes them: items and layout steps. The expected values come from
 * td_operand_gather, which takes another way to each element.
 */
#include "test_support.h"

#include "kernel/compare.h"
#include "session/look.h"
#include "session/subject.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 6, COLUMNS = 32, COUNT = ROWS * COLUMNS };

static float numbers[4][COUNT];
static uint8_t blocks[COUNT / 32 * 34]; /* q8_0: a float16 scale and 32 signed bytes */

static int fill(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < COUNT; i++)
            numbers[k][i] = (float)(i * (k + 1) % 97) / 4 - 9;
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = i % 34 == 0 ? 0 : i % 34 == 1 ? 0x34 : (uint8_t)(i * 7); /* a scale of 0.25 */
    return 0;
}

static struct td_tensor tensor(const void *data, size_t bytes, enum td_dtype dtype)
{
    struct td_tensor t = {.name = "x", .dtype = dtype, .shape = {2, {ROWS, COLUMNS}}, .count = COUNT};
    assert_ok(td_view_packed(&t.view, data, bytes, dtype, &t.shape, NULL));
    return t;
}

struct side {
    struct td_tensor tensors[2];
    const struct td_tensor *parts[2];
    struct td_item item;
};

static void side_init(struct side *s, int parts, bool quantised)
{
    for (int p = 0; p < parts; p++) {
        s->tensors[p] = quantised ? tensor(blocks, sizeof blocks, TD_Q8_0)
                                  : tensor(numbers[p], sizeof numbers[p], TD_F32);
        s->parts[p] = &s->tensors[p];
    }
    s->item = (struct td_item){.name = "x", .part_count = parts, .parts = s->parts};
}

static void check_slice(const struct td_subject *s, int side, const char *text)
{
    struct td_slice slice;
    assert_ok(td_slice_parse(&slice, text, &s->shape, NULL));
    double *got = calloc((size_t)slice.count + 1, sizeof *got);
    assert_ok(td_subject_values(s, side, &slice, got, NULL));
    for (int64_t i = 0; i < slice.count; i++) {
        int64_t rest = i, index = 0, stride = 1;
        for (int k = slice.ndim - 1; k >= 0; k--) {
            index += (slice.axis[k].start + rest % slice.axis[k].count * slice.axis[k].step) * stride;
            rest /= slice.axis[k].count;
            stride *= s->shape.size[k];
        }
        double expected;
        assert_ok(td_operand_gather(&s->side[side].operand, &index, 1, &expected, NULL));
        assert_true(got[i] == expected);
    }
    free(got);
}

static void check_slices(const struct td_subject *s, int side)
{
    static const char *const slices[] = {"",           "3",         "-1,::-1", "::2,5",
                                         "1:5,3:30:4", "::-1,::-3", "2,4",     "0:0"};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        check_slice(s, side, slices[i]);
    double run[7], expected;
    assert_ok(td_subject_run(s, side, s->count - 7, 7, run, NULL));
    for (int64_t i = 0; i < 7; i++) {
        int64_t index = s->count - 7 + i;
        assert_ok(td_operand_gather(&s->side[side].operand, &index, 1, &expected, NULL));
        assert_true(run[i] == expected);
    }
}

static void layouts(void **state)
{
    (void)state;
    static const struct {
        int parts;
        bool quantised;
        struct td_steps steps;
        struct td_shape shape;
    } cases[] = {
        {1, false, {0}, {2, {ROWS, COLUMNS}}},
        {1, false, {1, {{.kind = TD_STEP_PERMUTE, .list = {2, {1, 0}}}}}, {2, {COLUMNS, ROWS}}},
        {1, false, {1, {{.kind = TD_STEP_REPEAT, .axis = 0, .to = 5}}}, {3, {5, ROWS, COLUMNS}}},
        {1, false, {1, {{.kind = TD_STEP_SUM, .axis = 0, .from = 1}}}, {1, {COLUMNS}}},
        {2, false, {1, {{.kind = TD_STEP_JOIN, .axis = 0}}}, {2, {2 * ROWS, COLUMNS}}},
        {2, false, {1, {{.kind = TD_STEP_JOIN, .axis = 1}}}, {2, {ROWS, 2 * COLUMNS}}},
        {2,
         false,
         {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_PERMUTE, .list = {2, {1, 0}}}}},
         {2, {2 * COLUMNS, ROWS}}},
        {2, false, {1, {{.kind = TD_STEP_SUM}}}, {2, {ROWS, COLUMNS}}},
        {1, true, {0}, {2, {ROWS, COLUMNS}}},
        {1, true, {1, {{.kind = TD_STEP_RESHAPE, .list = {2, {12, 16}}}}}, {2, {12, 16}}},
        {2, true, {1, {{.kind = TD_STEP_JOIN, .axis = 1}}}, {2, {ROWS, 2 * COLUMNS}}},
        {2, true, {1, {{.kind = TD_STEP_SUM}}}, {2, {ROWS, COLUMNS}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct side a, b;
        struct td_subject s;
        side_init(&a, cases[i].parts, cases[i].quantised);
        side_init(&b, cases[i].parts, cases[i].quantised);
        struct td_layout layout = {.a = cases[i].steps, .b = cases[i].steps, .shape = cases[i].shape};
        struct td_pair pair = {.a = &a.item, .b = &b.item, .name = "x", .layout = &layout};
        pair.outcome.ruling.verdict = TD_ERROR;
        assert_ok(td_subject_of_pair(&s, &pair, NULL));
        assert_memory_equal(s.shape.size, cases[i].shape.size, sizeof *s.shape.size * (size_t)s.shape.ndim);
        if (s.shape.ndim == 2)
            check_slices(&s, 1);
        check_slice(&s, 0, "");
        check_slice(&s, 0, "::-2");
        struct tdbg_stats stats;
        assert_ok(td_look_stats(&s, 0, NULL, &stats, NULL));
        assert_int_equal(stats.count, s.count);
        td_subject_release(&s);
    }
}

/* A side by itself keeps the shape it is stored in; shards are joined, without a partner the first shows. */
static void own_shape(void **state)
{
    (void)state;
    struct side a, b;
    struct td_subject s;
    struct td_slice slice;
    double got[4];
    side_init(&a, 2, false);
    side_init(&b, 1, false);
    struct td_layout layout = {
        .a = {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_PERMUTE, .list = {2, {1, 0}}}}},
        .shape = {2, {2 * COLUMNS, ROWS}}};
    struct td_pair pair = {.a = &a.item, .b = &b.item, .name = "x", .layout = &layout};
    assert_ok(td_subject_of_pair(&s, &pair, NULL));
    assert_int_equal(s.own[0].operand.shape.size[0], ROWS);
    assert_int_equal(s.own[0].operand.shape.size[1], 2 * COLUMNS);
    assert_ok(td_slice_parse(&slice, "2,30:34", &s.own[0].operand.shape, NULL));
    assert_ok(td_subject_own_values(&s, 0, &slice, got, NULL));
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == (double)numbers[i / 2][2 * COLUMNS + (30 + i) % COLUMNS]);
    td_subject_release(&s);

    struct td_pair lonely = {.a = &a.item, .name = "x"};
    assert_ok(td_subject_of_pair(&s, &lonely, NULL));
    assert_int_equal(s.count, COUNT);
    check_slices(&s, 0);
    struct tdbg_error error;
    assert_ok(td_slice_parse(&slice, "0,0", &s.shape, NULL));
    assert_fails(td_subject_values(&s, 1, &slice, got, &error), TDBG_MISUSE, "this pair has no side b");
    td_subject_release(&s);
}

static void sides_that_do_not_line_up(void **state)
{
    (void)state;
    struct side a, b;
    struct td_subject s;
    struct tdbg_error error;
    side_init(&a, 1, false);
    side_init(&b, 1, false);
    struct td_pair pair = {
        .a = &a.item, .b = &b.item, .name = "x", .outcome.ruling = {.reason = "shapes differ"}};
    assert_fails(td_subject_of_pair(&s, &pair, &error), TDBG_MISMATCH,
                 "the two sides do not line up: shapes differ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(own_shape),
        cmocka_unit_test(sides_that_do_not_line_up),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
