/* test_verdict.c: which rule decides, what it allows, and what it says of arrays with a known mistake.
 *
 * The expected floors are the formula of docs/verdict.md worked out by hand, and hold within a factor of two:
 * its constants may be measured anew, its scale may not. Wording is not looked at.
 */
#include "compare_support.h"

#include <math.h>
#include <stdio.h>

static const struct td_policy noise = {.kind = TD_POLICY_NOISE}, strict = {.kind = TD_POLICY_STRICT},
                              reference = {.kind = TD_POLICY_REFERENCE};

#define TOLERANCE(r, a) ((struct td_policy){.kind = TD_POLICY_TOLERANCE, .tolerance = {(r), (a)}})

/* --- the floor ----------------------------------------------------------------------------------------- */

static struct td_ruling rule(const struct td_policy *policy, const struct td_circumstances *c,
                             const struct td_metrics *m, bool *needs_count)
{
    struct td_ruling ruling;
    td_rule(policy, c, m, &ruling, needs_count);
    return ruling;
}

static double floor_of(struct td_circumstances c)
{
    bool needs_count;
    struct td_metrics m = {.count = (uint64_t)c.count, .paired = (uint64_t)c.count, .differing = 1};
    return rule(&noise, &c, &m, &needs_count).noise;
}

static void unit_roundoffs(void **state)
{
    (void)state;
    static const struct {
        enum td_dtype dtype;
        double unit;
    } rows[] = {{TD_F64, 0x1p-53}, {TD_C128, 0x1p-53}, {TD_F32, 0x1p-24},    {TD_C64, 0x1p-24},
                {TD_F16, 0x1p-11}, {TD_BF16, 0x1p-8},  {TD_F8_E5M2, 0x1p-3}, {TD_F8_E4M3FN, 0x1p-4},
                {TD_I64, 0},       {TD_U8, 0},         {TD_BOOL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(td_unit_roundoff(rows[i].dtype) == rows[i].unit);
    /* Blocks of fewer bits are coarser. */
    static const enum td_dtype blocks[] = {TD_Q8_0, TD_Q6_K, TD_Q5_K, TD_Q4_K, TD_Q3_K, TD_Q2_K};
    for (size_t i = 1; i < sizeof blocks / sizeof *blocks; i++)
        assert_true(td_unit_roundoff(blocks[i]) > td_unit_roundoff(blocks[i - 1]));
}

static void floors(void **state)
{
    (void)state;
    static const struct {
        struct td_circumstances c;
        double floor;
    } rows[] = {
        {{.a = TD_F32, .b = TD_F32, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.26e-6},
        {{.a = TD_F32, .b = TD_F32, .roundings = 100, .longest_axis = 64, .count = 4096}, 6.28e-6},
        {{.a = TD_F32, .b = TD_F32, .roundings = 4, .longest_axis = 4096, .count = 1 << 20}, 9.4e-6},
        {{.a = TD_F64, .b = TD_F64, .roundings = 4, .longest_axis = 64, .count = 4096}, 2.34e-15},
        {{.a = TD_F16, .b = TD_F16, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.28e-3},
        {{.a = TD_BF16, .b = TD_BF16, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.02e-2},
        {{.a = TD_BF16, .b = TD_F32, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.02e-2},
        {{.a = TD_F32, .b = TD_F16, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.28e-3},
        {{.a = TD_F64, .b = TD_F32, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.26e-6},
        {{.a = TD_F32, .b = TD_F8_E4M3FN, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.63e-1},
        {{.a = TD_F32, .b = TD_I8, .roundings = 4, .longest_axis = 64, .count = 4096}, 1.26e-6},
        /* Stored as float32, but the values tell that B was computed in bfloat16. */
        {{.a = TD_F32, .b = TD_F32, .grid = {0, 0x1p-8}, .roundings = 4, .longest_axis = 64, .count = 4096},
         1.02e-2},
        /* Four elements scatter three times as widely. */
        {{.a = TD_BF16, .b = TD_BF16, .roundings = 4, .longest_axis = 4, .count = 4}, 2.88e-2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double floor = floor_of(rows[i].c);
        if (!(floor > rows[i].floor / 2 && floor < rows[i].floor * 2))
            fail_msg("row %zu: floor %g, expected about %g", i, floor, rows[i].floor);
    }
}

static void the_floor_grows_with_what_a_value_went_through(void **state)
{
    (void)state;
    const struct td_circumstances base = {
        .a = TD_F32, .b = TD_F32, .roundings = 4, .longest_axis = 64, .count = 4096};
    struct td_circumstances deeper = base, longer = base, larger = base, swapped = base;
    deeper.roundings = 16;
    longer.longest_axis = 1024;
    larger.count = 1 << 20;
    assert_true(fabs(floor_of(deeper) / floor_of(base) - 2) < 1e-9); /* independent errors add in squares */
    assert_true(floor_of(longer) > 2 * floor_of(base));
    assert_true(floor_of(larger) < floor_of(base));
    swapped.a = TD_BF16;
    double one = floor_of(swapped);
    swapped.a = TD_F32;
    swapped.b = TD_BF16;
    assert_true(one == floor_of(swapped)); /* the coarser side, whichever it is */
}

static void roundings_follow_the_place_in_the_model(void **state)
{
    (void)state;
    const struct td_item input = {.layer = -1, .stage_rank = 5}, first = {.layer = 0, .stage_rank = 0},
                         late = {.layer = 0, .stage_rank = 9}, deep = {.layer = 30, .stage_rank = 0},
                         weight = {.layer = 30, .stage_rank = 9, .parameter = true},
                         absurd = {.layer = INT64_MAX, .stage_rank = INT32_MAX};
    assert_true(td_roundings(&late, 32) > td_roundings(&first, 32));
    assert_true(td_roundings(&deep, 32) > td_roundings(&late, 32));
    assert_true(td_roundings(&input, 32) > td_roundings(&deep, 32)); /* behind all layers: the logits */
    assert_true(td_roundings(&input, 0) <= td_roundings(&first, 32));
    assert_int_equal(td_roundings(&weight, 32), td_roundings(&first, 32)); /* stored, not computed */
    assert_true(td_roundings(&absurd, INT64_MAX) > 0);
}

/* --- rules over metrics --------------------------------------------------------------------------------- */

#define FLOATS(x, y) .a = (x), .b = (y), .roundings = 4, .longest_axis = 64, .count = 4096
#define OFF(relative, largest)                                                                    \
    .count = 4096, .paired = 4096, .differing = 4000, .rel_l2 = (relative), .max_abs = (largest), \
    .argmax_a = 1, .argmax_b = 2, .a = {.norm = 64}

struct metrics_row {
    const char *what;
    const struct td_policy *policy;
    struct td_circumstances c;
    struct td_metrics m;
    enum td_verdict verdict;
    bool needs_count; /* the elements beyond the tolerance have a say, or are to be shown */
};

static const struct td_policy loose = {.kind = TD_POLICY_TOLERANCE, .tolerance = {1e-2, 1e-2}};

static const struct metrics_row rows[] = {
    {"nothing differs", &noise, {FLOATS(TD_F32, TD_F32)}, {.count = 4096}, TD_IDENTICAL, false},
    {"nothing differs, with NaN on both sides",
     &noise,
     {FLOATS(TD_F32, TD_F32)},
     {.count = 4096, .nan_a = 9, .nan_b = 9, .nan_both = 9},
     TD_IDENTICAL,
     false},
    {"within the floor", &noise, {FLOATS(TD_F32, TD_F32)}, {OFF(3e-7, 1e-6)}, TD_WITHIN, false},
    {"beyond the floor", &noise, {FLOATS(TD_F32, TD_F32)}, {OFF(1e-4, 1e-3)}, TD_DIVERGED, true},
    {"within, one element far off", &noise, {FLOATS(TD_F32, TD_F32)}, {OFF(6e-7, 1e-3)}, TD_WITHIN, true},
    {"the same of bfloat16", &noise, {FLOATS(TD_F32, TD_BF16)}, {OFF(2e-3, 1e-2)}, TD_WITHIN, false},
    {"no number", &noise, {FLOATS(TD_F32, TD_F32)}, {OFF(NAN, 1)}, TD_DIVERGED, true},
    {"an infinite error", &noise, {FLOATS(TD_F32, TD_F32)}, {OFF(INFINITY, 1)}, TD_DIVERGED, true},
    {"integers", &noise, {FLOATS(TD_I32, TD_I64)}, {OFF(1e-9, 1)}, TD_DIVERGED, true},
    {"integers, strict", &strict, {FLOATS(TD_I8, TD_U8)}, {OFF(1e-9, 1)}, TD_DIVERGED, true},
    {"integers within a tolerance", &loose, {FLOATS(TD_I32, TD_I32)}, {OFF(1e-9, 5e-3)}, TD_WITHIN, false},
    {"an integer against a float has noise",
     &noise,
     {FLOATS(TD_I32, TD_F32)},
     {OFF(1e-7, 1e-6)},
     TD_WITHIN,
     false},
    {"a scalar that differs",
     &noise,
     {.scalar = true, FLOATS(TD_F32, TD_F32)},
     {OFF(1e-3, 1e-3)},
     TD_DIVERGED,
     true},
    {"a scalar rounded to bfloat16",
     &noise,
     {.scalar = true, FLOATS(TD_F32, TD_BF16)},
     {OFF(2e-3, 2e-3)},
     TD_WITHIN,
     false},
    {"an integer scalar that differs",
     &noise,
     {.scalar = true, FLOATS(TD_I64, TD_I64)},
     {OFF(1e-3, 1e-3)},
     TD_DIVERGED,
     true},
    {"strict: two roundings of float32",
     &strict,
     {FLOATS(TD_F32, TD_F32)},
     {OFF(1e-7, 5e-6)},
     TD_WITHIN,
     false},
    {"strict: an element to be counted",
     &strict,
     {FLOATS(TD_F32, TD_F32)},
     {OFF(1e-7, 2e-5)},
     TD_WITHIN,
     true},
    {"a tolerance allows what noise does not",
     &loose,
     {FLOATS(TD_F32, TD_F32)},
     {OFF(1e-3, 5e-3)},
     TD_WITHIN,
     false},
    {"a tolerance, to be counted", &loose, {FLOATS(TD_F32, TD_F32)}, {OFF(1e-3, 2e-2)}, TD_WITHIN, true},
    {"a NaN in B", &noise, {FLOATS(TD_F32, TD_F32)}, {.nan_b = 1, OFF(0, 0)}, TD_DIVERGED, true},
    {"a NaN in A", &noise, {FLOATS(TD_F32, TD_F32)}, {.nan_a = 1, OFF(0, 0)}, TD_DIVERGED, true},
    {"NaN at the same places",
     &noise,
     {FLOATS(TD_F32, TD_F32)},
     {.nan_a = 3, .nan_b = 3, .nan_both = 3, OFF(3e-7, 1e-6)},
     TD_WITHIN,
     false},
    {"as many NaN elsewhere",
     &noise,
     {FLOATS(TD_F32, TD_F32)},
     {.nan_a = 3, .nan_b = 3, .nan_both = 2, OFF(3e-7, 1e-6)},
     TD_DIVERGED,
     true},
    {"an infinity in B", &noise, {FLOATS(TD_F32, TD_F32)}, {.inf_b = 1, OFF(3e-7, 1e-6)}, TD_DIVERGED, true},
    {"infinities of both signs",
     &noise,
     {FLOATS(TD_F32, TD_F32)},
     {.inf_a = 1, .inf_b = 1, OFF(3e-7, 1e-6)},
     TD_DIVERGED,
     true},
    {"a NaN within any tolerance",
     &loose,
     {FLOATS(TD_F32, TD_F32)},
     {.nan_b = 1, OFF(0, 0)},
     TD_DIVERGED,
     true},
    {"a NaN among integers made floats",
     &strict,
     {FLOATS(TD_I32, TD_F32)},
     {.nan_b = 1, OFF(0, 0)},
     TD_DIVERGED,
     true},
    {"reference: as far from it as A",
     &reference,
     {FLOATS(TD_BF16, TD_BF16), .has_reference = true, .error_a = 0.05, .error_b = 0.06},
     {OFF(0.1, 1)},
     TD_WITHIN,
     false},
    {"reference: twenty times as far",
     &reference,
     {FLOATS(TD_F32, TD_F32), .has_reference = true, .error_a = 1e-6, .error_b = 2e-5},
     {OFF(2e-5, 1e-3)},
     TD_DIVERGED,
     true},
    {"reference: B is of a coarser type",
     &reference,
     {FLOATS(TD_F32, TD_BF16), .has_reference = true, .error_a = 1e-7, .error_b = 3e-3},
     {OFF(3e-3, 1)},
     TD_WITHIN,
     false},
    {"reference: A is of a coarser type",
     &reference,
     {FLOATS(TD_BF16, TD_F32), .has_reference = true, .error_a = 3e-3, .error_b = 5e-2},
     {OFF(5e-2, 1)},
     TD_DIVERGED,
     true},
    {"reference: it has no such tensor",
     &reference,
     {FLOATS(TD_F32, TD_F32)},
     {OFF(3e-7, 1e-6)},
     TD_WITHIN,
     false},
    {"a fill beside which the rest is off",
     &noise,
     {FLOATS(TD_F32, TD_F32), .fill = {.value = -1e9, .in_b = -1e9, .rel_l2 = 0.5, .rms = 1}},
     {OFF(1e-9, 1)},
     TD_DIVERGED,
     true},
    {"another fill, the rest alike",
     &noise,
     {FLOATS(TD_F32, TD_F32), .fill = {.value = -1e9, .in_b = -3e38, .rel_l2 = 1e-7, .rms = 1}},
     {OFF(1, 3e38)},
     TD_WITHIN,
     false},
    {"another fill, one element beside it off",
     &noise,
     {FLOATS(TD_F32, TD_F32),
      .fill = {.value = -1e9, .in_b = -3e38, .rel_l2 = 1e-7, .rms = 1, .max_abs = 0.1, .max_abs_a = 1}},
     {OFF(1, 3e38)},
     TD_WITHIN,
     true},
};

static void rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool needs_count;
        struct td_ruling r = rule(rows[i].policy, &rows[i].c, &rows[i].m, &needs_count);
        if (r.verdict != rows[i].verdict || needs_count != rows[i].needs_count)
            fail_msg("%s: %s, %s", rows[i].what, td_verdict_name(r.verdict),
                     needs_count ? "to be counted" : "not to be counted");
        assert_true(strlen(r.reason) > 0);
    }
}

static void a_count_turns_agreement_into_a_divergence(void **state)
{
    (void)state;
    struct td_ruling r = {.verdict = TD_WITHIN};
    td_ruling_count(&r, 0, 100);
    assert_int_equal(r.verdict, TD_WITHIN);
    td_ruling_count(&r, 1, 100);
    assert_int_equal(r.verdict, TD_DIVERGED);
    for (enum td_verdict v = TD_IDENTICAL; v <= TD_ONLY_B; v++) { /* every other verdict stays */
        r.verdict = v;
        td_ruling_count(&r, v == TD_WITHIN ? 0 : 5, 100);
        assert_int_equal(r.verdict, v);
    }
}

/* --- rules over values ---------------------------------------------------------------------------------- */

/* What is done to a copy of A, whose values are normal, to make B. */
struct change {
    double noise, scale; /* relative to each value; scale 0: none */
    int outliers;        /* elements that are off by `by` */
    double by;
    bool filled; /* what a causal mask covers of A and B is -1e9 */
    double fill_in_b;
};

static void apply(struct array *a, struct array *b, const struct change *change)
{
    if (change->noise > 0)
        array_blur(b, 3, change->noise);
    for (int64_t i = 0; change->scale != 0 && i < b->count; i++)
        b->data[i] = (float)(b->data[i] * change->scale);
    for (int i = 0; i < change->outliers; i++)
        b->data[(i * 97 + 13) % b->count] += (float)change->by;
    for (int64_t i = 0; change->filled && i < a->count; i++) {
        if (i % 32 <= i / 32 % 16) /* rows of 32 see one more each */
            continue;
        a->data[i] = -1e9f;
        b->data[i] = (float)(change->fill_in_b != 0 ? change->fill_in_b : -1e9);
    }
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const struct td_policy *policy;
        enum td_dtype a, b; /* what they count as: the values are float32 */
        struct change change;
        enum td_verdict verdict;
    } table[] = {
        {"a copy", &noise, TD_F32, TD_F32, {.noise = 0}, TD_IDENTICAL},
        {"rounding", &noise, TD_F32, TD_F32, {.noise = 3e-7}, TD_WITHIN},
        {"a thousand roundings", &noise, TD_F32, TD_F32, {.noise = 3e-4}, TD_DIVERGED},
        {"rounding of bfloat16", &noise, TD_BF16, TD_F32, {.noise = 2e-3}, TD_WITHIN},
        {"a factor of 1.001", &noise, TD_F32, TD_F32, {.scale = 1.001}, TD_DIVERGED},
        {"the same between bfloat16", &noise, TD_BF16, TD_BF16, {.scale = 1.001}, TD_WITHIN},
        {"one element", &noise, TD_F32, TD_F32, {.noise = 3e-7, .outliers = 1, .by = 3e-5}, TD_DIVERGED},
        {"one element, strict", &strict, TD_F32, TD_F32, {.outliers = 1, .by = 1e-4}, TD_DIVERGED},
        {"one small one", &strict, TD_F32, TD_F32, {.outliers = 1, .by = 8e-6}, TD_WITHIN},
        {"a mask, and scores twice too large",
         &noise,
         TD_F32,
         TD_F32,
         {.scale = 2, .filled = true},
         TD_DIVERGED},
        {"a mask, and rounding", &noise, TD_F32, TD_F32, {.noise = 3e-7, .filled = true}, TD_WITHIN},
        {"a mask, and four floors of noise",
         &noise,
         TD_F32,
         TD_F32,
         {.noise = 4e-6, .filled = true},
         TD_DIVERGED},
        {"another value for the mask",
         &noise,
         TD_F32,
         TD_F32,
         {.noise = 3e-7, .filled = true, .fill_in_b = -3.4e38},
         TD_WITHIN},
        {"a mask of the other sign", &noise, TD_F32, TD_F32, {.filled = true, .fill_in_b = 1e9}, TD_DIVERGED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {0};
        struct array a = array_random(&bench, 5 + i, SHAPE(3, 8, 16, 32)), b = array_copy(&bench, a);
        apply(&a, &b, &table[i].change);
        struct td_circumstances c = {.a = table[i].a, .b = table[i].b, .roundings = 4};
        struct td_ruling r = ruling_of(table[i].policy, c, a, b);
        if (r.verdict != table[i].verdict)
            fail_msg("%s: %s (%s)", table[i].what, td_verdict_name(r.verdict), r.reason);
        bench_release(&bench);
    }
}

/* Whatever the tolerance, a pair is within it exactly when no element is beyond. */
static void tolerances_count_elements(void **state)
{
    (void)state;
    for (int step = 0; step < 12; step++) {
        struct bench bench = {0};
        struct array a = array_random(&bench, 9, SHAPE(2, 16, 16)), b = array_copy(&bench, a);
        array_blur(&b, 4, 1e-3);
        double rtol = 1e-4 * (step + 1), atol = 1e-4;
        bool within = true;
        for (int64_t i = 0; i < a.count; i++)
            within = within && fabs((double)a.data[i] - b.data[i]) <= atol + rtol * fabs((double)a.data[i]);
        struct td_policy policy = TOLERANCE(rtol, atol);
        struct td_circumstances c = {.a = TD_F32, .b = TD_F32, .roundings = 4};
        assert_int_equal(ruling_of(&policy, c, a, b).verdict, within ? TD_WITHIN : TD_DIVERGED);
        bench_release(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unit_roundoffs),
        cmocka_unit_test(floors),
        cmocka_unit_test(the_floor_grows_with_what_a_value_went_through),
        cmocka_unit_test(roundings_follow_the_place_in_the_model),
        cmocka_unit_test(rules),
        cmocka_unit_test(a_count_turns_agreement_into_a_divergence),
        cmocka_unit_test(values),
        cmocka_unit_test(tolerances_count_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
