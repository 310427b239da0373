/* test_layout.c: steps change what is seen of a tensor as the same operations on arrays do, and the
 * candidates for two shapes hold the one that is meant.
 *
 * The steps are held against the array operations of compare_support.c, which know nothing of strides. Of the
 * candidates the list is looked at, not the choice: that is test_align.c's.
 */
#include "compare_support.h"

#include "compare/layout/layout_text.h"
#include "compare/layout/rotary.h"

#include <math.h>
#include <stdio.h>

/* --- steps --------------------------------------------------------------------------------------------- */

#define LIST(n, ...)                         \
    {                                        \
        .ndim = (n), .size = { __VA_ARGS__ } \
    }

static const int64_t backwards[] = {4, 3, 2, 1, 0};

struct step_row {
    const char *what;
    struct td_shape shape;
    struct sharding stored;
    struct td_steps steps;
    struct array_op same[MOST_OPS]; /* of the whole array */
};

static const struct step_row step_rows[] = {
    {"nothing", SHAPE(2, 3, 4), {WHOLE, 0, 0}, {.count = 0}, {{OP_END, 0, {0}}}},
    {"permute",
     SHAPE(3, 3, 4, 5),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_PERMUTE, .list = LIST(3, 2, 0, 1)}}},
     {PERMUTE(2, 0, 1)}},
    {"permute and back",
     SHAPE(3, 3, 4, 5),
     {WHOLE, 0, 0},
     {2,
      {{.kind = TD_STEP_PERMUTE, .list = LIST(3, 2, 0, 1)},
       {.kind = TD_STEP_PERMUTE, .list = LIST(3, 1, 2, 0)}}},
     {{OP_END, 0, {0}}}},
    {"squeeze",
     SHAPE(5, 1, 3, 1, 4, 1),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_SQUEEZE, .list = LIST(3, 0, 2, 4)}}},
     {RESHAPE(3, 4)}},
    {"split an axis",
     SHAPE(2, 6, 20),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_RESHAPE, .list = LIST(3, 6, 4, 5)}}},
     {RESHAPE(6, 4, 5)}},
    {"split an axis and exchange",
     SHAPE(2, 6, 20),
     {WHOLE, 0, 0},
     {2,
      {{.kind = TD_STEP_RESHAPE, .list = LIST(3, 6, 4, 5)},
       {.kind = TD_STEP_PERMUTE, .list = LIST(3, 1, 0, 2)}}},
     {RESHAPE(6, 4, 5), PERMUTE(1, 0, 2)}},
    {"slice, then slice again",
     SHAPE(2, 6, 20),
     {WHOLE, 0, 0},
     {2,
      {{.kind = TD_STEP_SLICE, .axis = 1, .from = 4, .to = 16},
       {.kind = TD_STEP_SLICE, .axis = 0, .from = 5, .to = 6}}},
     {SLICE(1, 4, 16), SLICE(0, 5, 6)}},
    {"take",
     SHAPE(3, 2, 3, 4),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_TAKE, .axis = 1, .from = 2, .to = 3}}},
     {SLICE(1, 2, 3), RESHAPE(2, 4)}},
    {"repeat",
     SHAPE(3, 5, 2, 4),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_REPEAT, .axis = 2, .to = 3}}},
     {REPEAT(1, 3), RESHAPE(5, 2, 3, 4)}},
    {"in reverse",
     SHAPE(2, 5, 3),
     {WHOLE, 0, 0},
     {1, {{.kind = TD_STEP_REORDER, .axis = 0, .to = 5, .order = backwards}}},
     {{OP_END, 0, {0}}}}, /* checked apart */
    {"join rows",
     SHAPE(2, 12, 5),
     {SHARDS_JOIN, 3, 0},
     {1, {{.kind = TD_STEP_JOIN, .axis = 0}}},
     {{OP_END, 0, {0}}}},
    {"join columns",
     SHAPE(2, 3, 10),
     {SHARDS_JOIN, 4, 1}, /* 2, 2, 2 and 4 */
     {1, {{.kind = TD_STEP_JOIN, .axis = 1}}},
     {{OP_END, 0, {0}}}},
    {"join columns and transpose",
     SHAPE(2, 3, 10),
     {SHARDS_JOIN, 2, 1},
     {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_PERMUTE, .list = LIST(2, 1, 0)}}},
     {PERMUTE(1, 0)}},
    {"join columns and split heads",
     SHAPE(2, 3, 24),
     {SHARDS_JOIN, 2, 1},
     {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_RESHAPE, .list = LIST(3, 3, 4, 6)}}},
     {RESHAPE(3, 4, 6)}},
    {"add up", SHAPE(2, 3, 10), {SHARDS_SUM, 3, 0}, {1, {{.kind = TD_STEP_SUM}}}, {{OP_END, 0, {0}}}},
    {"the first", SHAPE(2, 3, 10), {SHARDS_COPY, 3, 0}, {1, {{.kind = TD_STEP_FIRST}}}, {{OP_END, 0, {0}}}},
    {"the last",
     SHAPE(2, 3, 10),
     {SHARDS_COPY, 3, 0},
     {1, {{.kind = TD_STEP_FIRST, .from = 2}}},
     {{OP_END, 0, {0}}}},
};

static struct array reversed_rows(struct bench *bench, struct array x)
{
    struct array y = array_copy(bench, x);
    int64_t rows = x.shape.size[0], width = x.count / rows;
    for (int64_t i = 0; i < x.count; i++)
        y.data[i] = x.data[(rows - 1 - i / width) * width + i % width];
    return y;
}

static void steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof step_rows / sizeof *step_rows; i++) {
        const struct step_row *row = &step_rows[i];
        struct bench bench = {0};
        struct array x = array_random(&bench, 3 + i, row->shape);
        bench_add_shards(&bench, 'a', "0_query", x, row->stored);
        bench_add(&bench, 'b', "0_query", x);
        bench_ready(&bench);
        bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
        struct array expected = array_apply(&bench, x, row->same);
        if (row->steps.count && row->steps.step[0].kind == TD_STEP_REORDER)
            expected = reversed_rows(&bench, x);
        struct td_layout layout = {.a = row->steps, .shape = expected.shape};
        double off = array_distance(bench_lined_up(&bench, 0, 'a', &layout), expected);
        if (!(off < (row->stored.kind == SHARDS_SUM ? 1e-5 : 1e-30)))
            fail_msg("%s: off by %g", row->what, off);
        bench_release(&bench);
    }
}

/* The sum of an axis: to its length a new tensor. */
static void an_axis_adds_up(void **state)
{
    (void)state;
    struct bench bench = {0};
    struct array x = array_random(&bench, 1, SHAPE(3, 4, 3, 5)),
                 sum = array_random(&bench, 1, SHAPE(2, 3, 5));
    for (int64_t i = 0; i < sum.count; i++)
        sum.data[i] = x.data[i] + x.data[i + 15] + x.data[i + 30] + x.data[i + 45];
    bench_add(&bench, 'a', "0_query", x);
    bench_add(&bench, 'b', "0_query", x);
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    struct td_layout layout = {.a = {1, {{.kind = TD_STEP_SUM, .axis = 0, .from = 1}}}, .shape = sum.shape};
    assert_true(array_distance(bench_lined_up(&bench, 0, 'a', &layout), sum) < 1e-5);
    bench_release(&bench);
}

/* Of what a view cannot show; that a slice lies within its axis is for whoever makes the steps to see to. */
static void steps_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct sharding stored; /* of [4, 6] */
        struct td_steps steps;
    } table[] = {
        {"a permutation of too many axes",
         {WHOLE, 0, 0},
         {1, {{.kind = TD_STEP_PERMUTE, .list = LIST(3, 0, 1, 2)}}}},
        {"the merge of axes that were exchanged",
         {WHOLE, 0, 0},
         {2,
          {{.kind = TD_STEP_PERMUTE, .list = LIST(2, 1, 0)},
           {.kind = TD_STEP_RESHAPE, .list = LIST(1, 24)}}}},
        {"an order of too few",
         {WHOLE, 0, 0},
         {1, {{.kind = TD_STEP_REORDER, .axis = 1, .to = 5, .order = backwards}}}},
        {"shards of other sizes joined along another axis",
         {SHARDS_JOIN, 4, 1}, /* 1, 1, 1 and 3 */
         {1, {{.kind = TD_STEP_JOIN, .axis = 0}}}},
        {"one index of an axis that is shared out",
         {SHARDS_JOIN, 2, 1},
         {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_TAKE, .axis = 1, .from = 0, .to = 1}}}},
        {"shards along columns, flattened",
         {SHARDS_JOIN, 2, 1},
         {2, {{.kind = TD_STEP_JOIN, .axis = 1}, {.kind = TD_STEP_RESHAPE, .list = LIST(1, 24)}}}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {0};
        struct td_arena arena;
        struct td_operand operand;
        td_arena_init(&arena, TD_MAX_METADATA);
        bench_add_shards(&bench, 'a', "0_query", array_random(&bench, 1, SHAPE(2, 4, 6)), table[i].stored);
        bench_ready(&bench);
        tdbg_status status =
            td_operand_make(&operand, &bench.a.made.side.items[0], &table[i].steps, &arena, NULL);
        if (status != TDBG_MISMATCH)
            fail_msg("%s: status %d", table[i].what, (int)status);
        td_arena_release(&arena);
        bench_release(&bench);
    }
}

/* --- layouts as a user writes them ------------------------------------------------------------------------
 */

static void written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct td_shape a, b;
        struct array_op b_from_a[MOST_OPS]; /* what B is made by; {0} first: the text fits no such shapes */
    } table[] = {
        {"h t d -> t h d", SHAPE(3, 5, 2, 4), SHAPE(3, 2, 5, 4), {PERMUTE(1, 0, 2)}},
        {"b h t d -> t h d",
         SHAPE(3, 5, 2, 4),
         SHAPE(4, 1, 2, 5, 4),
         {PERMUTE(1, 0, 2), RESHAPE(1, 2, 5, 4)}},
        {"b h t d -> t (h d)",
         SHAPE(2, 5, 8),
         SHAPE(4, 1, 2, 5, 4),
         {RESHAPE(5, 2, 4), PERMUTE(1, 0, 2), RESHAPE(1, 2, 5, 4)}},
        {"t (h d) -> h t d", SHAPE(3, 2, 5, 4), SHAPE(2, 5, 8), {PERMUTE(1, 0, 2), RESHAPE(5, 8)}},
        {"h t d -> t h d", SHAPE(3, 5, 2, 4), SHAPE(3, 5, 2, 4), {{OP_END, 0, {0}}}},
        {"b h t d -> t h d", SHAPE(3, 5, 2, 4), SHAPE(4, 2, 2, 5, 4), {{OP_END, 0, {0}}}},
        {"h t -> t h d", SHAPE(3, 5, 2, 4), SHAPE(2, 2, 5), {{OP_END, 0, {0}}}},
        {"h t d", SHAPE(3, 5, 2, 4), SHAPE(3, 2, 5, 4), {{OP_END, 0, {0}}}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {0};
        struct td_layout layout;
        struct array a = array_random(&bench, 7, table[i].a);
        tdbg_status status = td_layout_parse(&layout, table[i].text, &table[i].a, &table[i].b, NULL);
        bool fits = table[i].b_from_a[0].kind != OP_END;
        if ((status == TDBG_OK) != fits)
            fail_msg("row %zu: '%s' has status %d", i, table[i].text, (int)status);
        if (fits) {
            bench_add(&bench, 'a', "0_query", a);
            bench_add(&bench, 'b', "0_query", array_apply(&bench, a, table[i].b_from_a));
            bench_ready(&bench);
            bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
            if (array_distance(bench_lined_up(&bench, 0, 'a', &layout),
                               bench_lined_up(&bench, 0, 'b', &layout)) > 0)
                fail_msg("row %zu: '%s' does not line up", i, table[i].text);
        }
        bench_release(&bench);
    }
}

/* --- candidates -------------------------------------------------------------------------------------------
 */

struct candidate_row {
    const char *what;
    struct td_shape a, b;
    bool any, as_it_stands;        /* there is a candidate; the first is the shapes as they are */
    struct td_shape shape;         /* of a candidate that must be among them */
    const char *steps_a, *steps_b; /* of the same */
    enum td_proof proof;           /* it may ask for no less */
};

#define PLAIN TD_PROOF_NONE

static const struct candidate_row candidate_rows[] = {
    {"equal", SHAPE(2, 4, 6), SHAPE(2, 4, 6), true, true, SHAPE(2, 4, 6), "", "", PLAIN},
    {"a scalar and one element", SHAPE(0), SHAPE(1, 1), true, true, SHAPE(0), "", "squeeze", PLAIN},
    {"ones in front", SHAPE(2, 4, 6), SHAPE(4, 1, 1, 4, 6), true, true, SHAPE(2, 4, 6), "", "squeeze", PLAIN},
    {"ones on both sides", SHAPE(3, 4, 1, 6), SHAPE(3, 1, 4, 6), true, true, SHAPE(2, 4, 6), "squeeze",
     "squeeze", PLAIN},
    {"transposed", SHAPE(2, 4, 6), SHAPE(2, 6, 4), true, false, SHAPE(2, 4, 6), "", "permute", PLAIN},
    {"square", SHAPE(2, 6, 6), SHAPE(2, 6, 6), true, true, SHAPE(2, 6, 6), "", "permute", PLAIN},
    {"heads first", SHAPE(3, 7, 4, 8), SHAPE(4, 1, 4, 7, 8), true, false, SHAPE(3, 7, 4, 8), "",
     "squeeze+permute", PLAIN},
    {"heads merged", SHAPE(3, 7, 4, 8), SHAPE(2, 7, 32), true, false, SHAPE(3, 7, 4, 8), "", "reshape",
     PLAIN},
    {"heads split", SHAPE(2, 7, 32), SHAPE(3, 7, 4, 8), true, false, SHAPE(3, 7, 4, 8), "reshape", "", PLAIN},
    {"heads first and merged", SHAPE(2, 7, 32), SHAPE(3, 4, 7, 8), true, false, SHAPE(3, 7, 4, 8), "reshape",
     "permute", PLAIN},
    {"flattened", SHAPE(3, 2, 5, 6), SHAPE(1, 60), true, false, SHAPE(3, 2, 5, 6), "", "reshape", PLAIN},
    {"sizes that share no axis", SHAPE(2, 4, 9), SHAPE(2, 6, 6), true, false, SHAPE(2, 4, 9), "", "reshape",
     PLAIN},
    {"kv heads repeated", SHAPE(3, 7, 4, 8), SHAPE(3, 7, 2, 8), true, false, SHAPE(4, 7, 2, 2, 8), "reshape",
     "repeat", PLAIN},
    {"ranks in front", SHAPE(2, 7, 32), SHAPE(3, 4, 7, 32), true, false, SHAPE(2, 7, 32), "", "take",
     TD_PROOF_ONCE},
    {"the last token", SHAPE(1, 32), SHAPE(2, 7, 32), true, false, SHAPE(1, 32), "", "take", TD_PROOF_ONCE},
    {"padding", SHAPE(2, 7, 32), SHAPE(2, 9, 32), true, false, SHAPE(2, 7, 32), "", "slice", TD_PROOF_ALL},
    {"nothing fits", SHAPE(2, 4, 6), SHAPE(2, 5, 7), false, false, SHAPE(0), NULL, NULL, PLAIN},
    {"two paddings fit nothing", SHAPE(2, 4, 6), SHAPE(2, 7, 11), false, false, SHAPE(0), NULL, NULL, PLAIN},
    {"nothing in it", SHAPE(2, 0, 6), SHAPE(2, 0, 6), true, true, SHAPE(2, 0, 6), "", "", PLAIN},
};

static bool same_shape(const struct td_shape *x, const struct td_shape *y)
{
    return x->ndim == y->ndim && memcmp(x->size, y->size, (size_t)x->ndim * sizeof x->size[0]) == 0;
}

static bool is_meant(const struct td_candidate *c, const struct candidate_row *row)
{
    return same_shape(&c->layout.shape, &row->shape) && c->proof >= row->proof &&
           strcmp(steps_text(&c->layout.a), row->steps_a) == 0 &&
           strcmp(steps_text(&c->layout.b), row->steps_b) == 0;
}

/* Cheapest first, and each of them can be made, to one shape on both sides. */
static void check_list(const struct td_candidates *all, const struct td_match *match, const char *what)
{
    for (int i = 0; i < all->count; i++) {
        struct td_arena arena;
        struct td_operand a, b;
        const struct td_layout *layout = &all->list[i].layout;
        td_arena_init(&arena, TD_MAX_METADATA);
        if (i > 0)
            assert_true(all->list[i - 1].cost <= all->list[i].cost);
        if (td_operand_make(&a, match->a, &layout->a, &arena, NULL) == TDBG_OK &&
            td_operand_make(&b, match->b, &layout->b, &arena, NULL) == TDBG_OK &&
            !(same_shape(&a.shape, &layout->shape) && same_shape(&b.shape, &layout->shape)))
            fail_msg("%s: candidate %d does not come to its shape", what, i);
        td_arena_release(&arena);
    }
}

static void candidates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof candidate_rows / sizeof *candidate_rows; i++) {
        const struct candidate_row *row = &candidate_rows[i];
        struct bench bench = {0};
        struct td_candidates all;
        bench_add(&bench, 'a', "0_query", array_random(&bench, 1, row->a));
        bench_add(&bench, 'b', "0_query", array_random(&bench, 2, row->b));
        bench_ready(&bench);
        bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
        assert_ok(td_candidates_init(&all, &bench.matches[0], &bench.heads, NULL));
        if ((all.count > 0) != row->any || (all.count > 0 && all.list[0].as_it_stands != row->as_it_stands))
            fail_msg("%s: %d candidates", row->what, all.count);
        check_list(&all, &bench.matches[0], row->what);
        bool found = !row->any;
        for (int c = 0; c < all.count; c++)
            found = found || is_meant(&all.list[c], row);
        if (!found)
            fail_msg("%s: the one that is meant is not among %d", row->what, all.count);
        td_candidates_release(&all);
        bench_release(&bench);
    }
}

/* However many axes of one size there are, the list stays short. */
static void candidates_are_bounded(void **state)
{
    (void)state;
    struct bench bench = {0};
    struct td_candidates all;
    struct td_shape many = {.ndim = TD_MAX_DIMS}, merged = {.ndim = 2, .size = {1, 1}};
    for (int i = 0; i < TD_MAX_DIMS; i++) {
        many.size[i] = i < 16 ? 2 : 1;
        merged.size[i % 2] *= many.size[i];
    }
    bench_add(&bench, 'a', "0_query", array_random(&bench, 1, many));
    bench_add(&bench, 'b', "0_query", array_random(&bench, 2, merged));
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    assert_ok(td_candidates_init(&all, &bench.matches[0], &bench.heads, NULL));
    assert_in_range(all.count, 1, 1024);
    td_candidates_release(&all);
    bench_release(&bench);
}

static void rotary_candidates(void **state)
{
    (void)state;
    struct bench bench = {.heads = {.count = 1, .size = {64}}};
    struct td_candidates all;
    bench_add(&bench, 'a', "0_query", array_random(&bench, 1, SHAPE(2, 256, 40)));
    bench_add(&bench, 'b', "0_query", array_random(&bench, 2, SHAPE(2, 256, 40)));
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    assert_ok(td_candidates_init(&all, &bench.matches[0], &bench.heads, NULL));
    int plain = all.count, heads_of_64 = 0;
    assert_ok(td_candidates_add_rotary(&all, 0, 1, false, &bench.heads, NULL));
    for (int i = plain; i < all.count; i++) {
        const struct td_shape *s = &all.list[i].layout.shape;
        assert_true(all.list[i].layout.rotary);
        assert_int_equal(s->ndim, 4);
        assert_true(s->size[1] == 2 || s->size[2] == 2);
        heads_of_64 += s->size[0] == 4 && s->size[1] * s->size[2] == 64;
    }
    assert_int_equal(heads_of_64, 2); /* halves in A, and halves in B */
    td_candidates_release(&all);
    bench_release(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(an_axis_adds_up),
        cmocka_unit_test(steps_that_do_not_fit),
        cmocka_unit_test(written),
        cmocka_unit_test(candidates),
        cmocka_unit_test(candidates_are_bounded),
        cmocka_unit_test(rotary_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
