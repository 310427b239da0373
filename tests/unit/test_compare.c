/* test_compare.c: td_compare over sides made in memory: each stage's result, and that rulings take into
 * account what the values of a pair do not show. */
#include "match_support.h"

#include "compare/compare.h"
#include "compare/judge/judge.h"

#include <math.h>
#include <stdio.h>

enum { TOKENS = 8, WIDTH = 64, LAYERS = 3 };

static float noise(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    return (float)((double)(i ^ i >> 27) / 0x1p64 - 0.5);
}

static float *fill(uint64_t seed, float scale)
{
    float *data = malloc(TOKENS * WIDTH * sizeof *data);
    for (uint64_t i = 0; data && i < TOKENS * WIDTH; i++)
        data[i] = scale * noise(seed * TOKENS * WIDTH + i);
    assert_non_null(data);
    return data;
}

/* A run of LAYERS layers of two stages; `wrong` is the number of a tensor that is 1.5 times too large. */
struct run {
    struct test_side side;
    float *data[2 * LAYERS];
    char names[2 * LAYERS][24];
};

static void run_make(struct run *r, int wrong)
{
    struct td_tensor tensors[2 * LAYERS];
    for (int i = 0; i < 2 * LAYERS; i++) {
        r->data[i] = fill((uint64_t)i, i == wrong ? 1.5F : 1.0F);
        snprintf(r->names[i], sizeof r->names[i], "%d_%s", i / 2, i % 2 ? "post_mlp" : "query");
        tensors[i] = float_tensor(r->names[i], SHAPE(2, TOKENS, WIDTH), r->data[i]);
    }
    side_of_tensors(&r->side, tensors, 2 * LAYERS);
}

static void run_free(struct run *r)
{
    side_free(&r->side);
    for (int i = 0; i < 2 * LAYERS; i++)
        free(r->data[i]);
}

static void compare(struct td_comparison *out, struct test_side *a, const struct test_side *b,
                    const struct test_side *reference, enum td_policy_kind kind)
{
    const struct td_compare_options options = {.policy = {.kind = kind}, .top = 3};
    assert_ok(td_compare(out, &a->side, &b->side, reference ? &reference->side : NULL, &options,
                         &(struct td_work){0}, NULL));
}

static void sides_in_verdicts_out(void **state)
{
    struct run a, b;
    struct td_comparison c;
    (void)state;
    run_make(&a, -1);
    run_make(&b, 3);
    compare(&c, &a.side, &b.side, NULL, TD_POLICY_NOISE);
    assert_int_equal(c.count, 2 * LAYERS);
    assert_int_equal(c.summary.identical, 2 * LAYERS - 1);
    assert_int_equal(c.summary.diverged, 1);
    assert_string_equal(c.first->name, "1_post_mlp");
    const struct td_outcome *o = &c.first->outcome;
    assert_int_equal(o->origin, TD_BORN);
    assert_int_equal(o->worst_count, 3);
    assert_int_equal(o->profile_count, TOKENS + WIDTH);
    assert_int_equal(o->diagnosis->list[0].kind, TD_IS_SCALE);
    td_comparison_release(&c);
    run_free(&a);
    run_free(&b);
}

/* The message of a pair survives the inputs: nothing in it points at them. */
static void an_outcome_outlives_the_sides(void **state)
{
    struct run a, b;
    struct td_comparison c;
    (void)state;
    run_make(&a, -1);
    run_make(&b, 0);
    compare(&c, &a.side, &b.side, NULL, TD_POLICY_NOISE);
    run_free(&a);
    run_free(&b);
    const struct td_outcome *o = &c.pairs[0].outcome;
    assert_int_equal(o->ruling.verdict, TD_DIVERGED);
    assert_true(fabs(o->metrics.rel_l2 - 0.5) < 1e-6);
    assert_true(fabs(o->worst[0].difference) > 0);
    double error = 0;
    for (int64_t i = 0; i < TOKENS; i++)
        error += o->profile[i];
    assert_true(fabs(error / (o->metrics.mse * TOKENS * WIDTH) - 1) < 1e-9);
    td_comparison_release(&c);
}

/* B differs from A by far. That is within when both are as far from the reference. */
static void a_reference_is_a_third_side(void **state)
{
    struct run a, b, between, like_a;
    struct td_comparison c;
    (void)state;
    run_make(&a, -1);
    run_make(&b, 0);
    run_make(&like_a, -1);
    run_make(&between, 0);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        between.data[0][i] = (a.data[0][i] + b.data[0][i]) / 2;
    compare(&c, &a.side, &b.side, &between.side, TD_POLICY_REFERENCE);
    assert_int_equal(c.pairs[0].outcome.ruling.verdict, TD_WITHIN);
    td_comparison_release(&c);
    compare(&c, &a.side, &b.side, &like_a.side, TD_POLICY_REFERENCE);
    assert_int_equal(c.pairs[0].outcome.ruling.verdict, TD_DIVERGED);
    td_comparison_release(&c);
    run_free(&a);
    run_free(&b);
    run_free(&between);
    run_free(&like_a);
}

/* --- one ruling ----------------------------------------------------------------------------------------- */

/* A pair that was measured: a relative error of 1 % of float32, which diverges, or none at all. */
struct judged {
    struct td_item item;
    struct td_match match;
    struct td_layout layout;
    struct td_fitting fitting;
};

static void judged_make(struct judged *j, bool same)
{
    *j = (struct judged){.item = {.name = "k.bias.grad", .layer = -1}};
    j->match = (struct td_match){.a = &j->item, .b = &j->item};
    j->fitting.layout = &j->layout;
    j->fitting.measurement.circumstances = (struct td_circumstances){
        .a = TD_F32, .b = TD_F32, .count = 100, .roundings = 4, .longest_axis = 100};
    struct td_metrics *m = &j->fitting.measurement.metrics;
    m->count = m->paired = 100;
    m->differing = same ? 0 : 100;
    m->rel_l2 = same ? 0 : 0.01;
    m->a.norm = m->b.norm = 1e-9;
}

static struct td_judgement judge(const struct judged *j, double weight_norm)
{
    const struct td_policy policy = {.kind = TD_POLICY_NOISE};
    return td_judge(&policy, &j->match, &j->fitting, weight_norm);
}

static void a_remnant_is_a_reason(void **state)
{
    struct judged j;
    (void)state;
    judged_make(&j, true);
    assert_int_equal(judge(&j, NAN).ruling.verdict, TD_IDENTICAL);
    j.fitting.remnant[1] = (struct td_remnant){TD_CUT_PADDING, 0, 3, 5};
    assert_int_equal(judge(&j, NAN).ruling.verdict, TD_IDENTICAL);
    assert_int_equal(judge(&j, NAN).cut, TD_CUT_PADDING);
    j.fitting.remnant[1].cut = TD_CUT_MISSING;
    struct td_judgement missing = judge(&j, NAN);
    assert_int_equal(missing.ruling.verdict, TD_DIVERGED);
    assert_int_equal(missing.cut, TD_CUT_MISSING);
    assert_string_equal(missing.ruling.reason,
                        "A has only 3 of 5 of axis 0; they agree, but what is missing is no padding");
    judged_make(&j, false);
    j.fitting.remnant[1] = (struct td_remnant){TD_CUT_MISSING, 0, 3, 5};
    assert_int_equal(judge(&j, NAN).cut, TD_CUT_NOTHING); /* it diverged without that */
}

static void a_weight_forgives_a_bias(void **state)
{
    struct judged j;
    (void)state;
    judged_make(&j, false);
    assert_int_equal(judge(&j, NAN).ruling.verdict, TD_DIVERGED);
    assert_int_equal(judge(&j, 1e-9).ruling.verdict, TD_DIVERGED);
    assert_int_equal(judge(&j, 1).ruling.verdict, TD_WITHIN);
    j.fitting.measurement.metrics.paired--; /* a NaN is no rounding */
    assert_int_equal(judge(&j, 1).ruling.verdict, TD_DIVERGED);
}

static void a_failure_is_the_ruling(void **state)
{
    struct judged j;
    (void)state;
    judged_make(&j, true);
    j.fitting.measurement.failure = "the disk is gone";
    assert_int_equal(judge(&j, NAN).ruling.verdict, TD_ERROR);
    assert_string_equal(judge(&j, NAN).ruling.reason, "the disk is gone");
    j.match.b = NULL;
    assert_int_equal(judge(&j, NAN).ruling.verdict, TD_ONLY_A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_in_verdicts_out),       cmocka_unit_test(an_outcome_outlives_the_sides),
        cmocka_unit_test(a_reference_is_a_third_side), cmocka_unit_test(a_remnant_is_a_reason),
        cmocka_unit_test(a_weight_forgives_a_bias),    cmocka_unit_test(a_failure_is_the_ruling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
