/* test_diagnose.c: a mistake of each kind, planted on random values, is found to be of that kind, and whole.
 *
 * B is a copy of A with other roundings and one mistake. Expected is the kind of the first finding and
 * whether it explains all but noise (`complete`). What the finding says in words is not looked at, nor what
 * is found behind the first, but for this: of clean noise nothing is complete.
 */
#include "compare_support.h"

#include <math.h>
#include <stdio.h>

/* The floor of float32 some layers deep, and rounding well below it. */
static const double FLOOR = 3e-6, ROUNDING = 3e-7;

enum { TOKENS = 24 };

#define SIZES(n, ...)                        \
    {                                        \
        .ndim = (n), .size = { __VA_ARGS__ } \
    }

/* What holds of any diagnosis. */
static void check_order(const struct td_diagnosis *d, const char *what)
{
    assert_in_range(d->count, 1, TD_MAX_FINDINGS);
    for (int i = 0; i < d->count; i++) {
        const struct td_finding *f = &d->list[i];
        if (!(f->explained >= 0 && f->explained <= 1 + 1e-9 && f->confidence > 0 && f->confidence <= 1))
            fail_msg("%s: a share of %g, confidence %g", what, f->explained, f->confidence);
        if (i > 0 && f->complete && !d->list[i - 1].complete)
            fail_msg("%s: a complete finding behind one that is not: %s", what, diagnosis_text(d));
        for (int k = 0; k < i; k++)
            if (d->list[k].kind == f->kind)
                fail_msg("%s: twice of one kind: %s", what, diagnosis_text(d));
    }
}

/* Diagnoses pair 0 of a bench to which all was added, as it stands. */
static struct td_diagnosis diagnose(struct bench *bench, struct td_shape shape, int64_t tokens)
{
    struct td_layout plain = {.shape = shape};
    bench_ready(bench);
    bench_pair_all(bench, (struct td_fusion){0}, (struct td_fusion){0});
    return bench_diagnose(bench, 0, &plain, NULL, FLOOR, tokens);
}

/* --- mistakes of one tensor -------------------------------------------------------------------------------
 */

static int token_axis(const struct array *x)
{
    int axis = 0;
    while (x->shape.size[axis] != TOKENS)
        axis++;
    return axis;
}

static int64_t token(const struct array *x, int64_t i)
{
    return index_along(x, i, token_axis(x));
}

static int64_t channel(const struct array *x, int64_t i)
{
    return index_along(x, i, x->shape.ndim - 1);
}

/* Element i with its index along `axis` changed to k. */
static int64_t moved(const struct array *x, int64_t i, int axis, int64_t k)
{
    int64_t stride = 1;
    for (int n = axis + 1; n < x->shape.ndim; n++)
        stride *= x->shape.size[n];
    return i + (k - index_along(x, i, axis)) * stride;
}

static float number(int64_t i)
{
    uint64_t state = 99 + (uint64_t)i;
    return (float)random_below(&state, 2000) / 1000 - 1;
}

/* One element of B out of all of A. */
static float nan_in_a_token(const struct array *a, int64_t i)
{
    return token(a, i) == 5 && channel(a, i) == 3 ? NAN : a->data[i];
}

static float infinite(const struct array *a, int64_t i)
{
    return i == 17 ? INFINITY : i == 40 ? -INFINITY : a->data[i];
}

static float negative(const struct array *a, int64_t i)
{
    return -a->data[i];
}

static float an_eighth(const struct array *a, int64_t i)
{
    return a->data[i] / 8;
}

static float a_little_more(const struct array *a, int64_t i)
{
    return a->data[i] * 1.0005f;
}

static float next_token(const struct array *a, int64_t i)
{
    int64_t t = token(a, i);
    return t == 0 ? number(i) : a->data[moved(a, i, token_axis(a), t - 1)];
}

static float rolled_tokens(const struct array *a, int64_t i)
{
    return a->data[moved(a, i, token_axis(a), (token(a, i) + 3) % TOKENS)];
}

static float two_tokens_exchanged(const struct array *a, int64_t i)
{
    int64_t t = token(a, i);
    return a->data[moved(a, i, token_axis(a), t == 4 ? 9 : t == 9 ? 4 : t)];
}

static float channels_reversed(const struct array *a, int64_t i)
{
    int last = a->shape.ndim - 1;
    return a->data[moved(a, i, last, a->shape.size[last] - 1 - channel(a, i))];
}

static float channels_interleaved(const struct array *a, int64_t i)
{
    int last = a->shape.ndim - 1;
    int64_t size = 16, c = channel(a, i) % size;
    return a->data[moved(a, i, last, channel(a, i) - c + c / 2 + c % 2 * (size / 2))];
}

static float zero_tokens(const struct array *a, int64_t i)
{
    return token(a, i) == 2 || token(a, i) == 20 ? 0 : a->data[i];
}

static float zero_here_and_there(const struct array *a, int64_t i)
{
    return number(i) > 0.8f ? 0 : a->data[i];
}

static float limited(const struct array *a, int64_t i)
{
    return fminf(fmaxf(a->data[i], -1.25f), 1.25f);
}

static float limited_from_above(const struct array *a, int64_t i)
{
    return fminf(a->data[i], 0.5f);
}

static float rounded_to(float x, int bits)
{
    int exponent;
    float m = frexpf(x, &exponent);
    return ldexpf(nearbyintf(ldexpf(m, bits + 1)), exponent - bits - 1);
}

static float rounded_to_bfloat16(const struct array *a, int64_t i)
{
    return rounded_to(a->data[i], 7);
}

static float rounded_to_float16(const struct array *a, int64_t i)
{
    return rounded_to(a->data[i], 10);
}

static float everywhere_more(const struct array *a, int64_t i)
{
    return a->data[i] + 0.25f;
}

static float more_by_channel(const struct array *a, int64_t i)
{
    return a->data[i] + number(channel(a, i));
}

static float more_in_a_channel(const struct array *a, int64_t i)
{
    return a->data[i] + (channel(a, i) == 6 ? 0.5f : 0);
}

static float larger_by_channel(const struct array *a, int64_t i)
{
    return a->data[i] * (2 + number(channel(a, i)));
}

static float larger_by_token(const struct array *a, int64_t i)
{
    return a->data[i] * (2 + number(token(a, i)));
}

static float some_tokens_are_rubbish(const struct array *a, int64_t i)
{
    return token(a, i) >= 7 && token(a, i) < 10 ? 2 * number(i) : a->data[i];
}

static float a_corner_is_larger(const struct array *a, int64_t i)
{
    return token(a, i) < 6 && channel(a, i) < 8 ? a->data[i] * 1.5f : a->data[i];
}

static float unrelated(const struct array *a, int64_t i)
{
    (void)a;
    return 2 * number(i);
}

struct mistake {
    const char *what;
    float (*b)(const struct array *a, int64_t i);
    enum td_kind_of_mistake kind;
    bool complete;
    int dims;   /* 2 to 4: with so many axes alone; 0: with any */
    bool exact; /* the copy has A's roundings: they would hide what is planted */
};

static const struct mistake mistakes[] = {
    {"a NaN", nan_in_a_token, TD_IS_NAN, true, 0, false},
    {"infinities", infinite, TD_IS_INF, true, 0, false},
    {"the opposite sign", negative, TD_IS_SIGN, true, 0, false},
    {"an eighth", an_eighth, TD_IS_SCALE, true, 0, false},
    {"half a thousandth more", a_little_more, TD_IS_SCALE, true, 0, false},
    {"shifted by a token", next_token, TD_IS_SHIFT, true, 0, false},
    {"rolled by three tokens", rolled_tokens, TD_IS_SHIFT, true, 0, false},
    {"two tokens exchanged", two_tokens_exchanged, TD_IS_PERMUTATION, true, 0, false},
    {"channels in reverse", channels_reversed, TD_IS_PERMUTATION, true, 0, false},
    {"halves interleaved", channels_interleaved, TD_IS_ROPE, true, 0, false},
    {"two tokens zero", zero_tokens, TD_IS_ZEROED, true, 0, false},
    {"zeros here and there", zero_here_and_there, TD_IS_ZEROED, true, 0, false},
    {"limited on both sides", limited, TD_IS_CLAMP, true, 0, false},
    {"limited from above", limited_from_above, TD_IS_CLAMP, true, 0, false},
    {"rounded to bfloat16", rounded_to_bfloat16, TD_IS_PRECISION, true, 0, true},
    {"rounded to float16", rounded_to_float16, TD_IS_PRECISION, true, 0, true},
    {"an offset", everywhere_more, TD_IS_BIAS, true, 0, false},
    {"an offset by channel", more_by_channel, TD_IS_BIAS, true, 0, false},
    {"an offset of one channel", more_in_a_channel, TD_IS_BIAS, true, 0, false},
    {"a factor by channel", larger_by_channel, TD_IS_CHANNEL_SCALE, true, 0, false},
    {"a factor by token", larger_by_token, TD_IS_CHANNEL_SCALE, true, 0, false},
    {"some tokens are rubbish", some_tokens_are_rubbish, TD_IS_PARTIAL, false, 0, false},
    {"a corner is larger", a_corner_is_larger, TD_IS_PARTIAL, true, 2, false},
    {"unrelated", unrelated, TD_IS_UNKNOWN, false, 0, false},
};

static const struct td_shape shapes[] = {SIZES(2, TOKENS, 96), SIZES(3, TOKENS, 6, 16),
                                         SIZES(4, 1, 6, TOKENS, 16)};

static struct array with_mistake(struct bench *bench, const struct mistake *m, struct array a, uint64_t seed)
{
    struct array b = array_copy(bench, a);
    for (int64_t i = 0; i < a.count; i++)
        b.data[i] = m->b(&a, i);
    if (!m->exact)
        array_blur(&b, seed, ROUNDING);
    return b;
}

static void each_kind(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const struct mistake *m = &mistakes[i];
            struct bench bench = {.heads = {.count = 1, .size = {16}}};
            if (m->dims && m->dims != shapes[s].ndim)
                continue;
            struct array a = array_random(&bench, 10 * i + s, shapes[s]);
            bench_add(&bench, 'a', "0_query", a);
            bench_add(&bench, 'b', "0_query", with_mistake(&bench, m, a, s));
            struct td_diagnosis d = diagnose(&bench, shapes[s], TOKENS);
            check_order(&d, m->what);
            if (!diagnosis_is(&d, m->kind, m->complete)) {
                print_message("%s, %d axes: %s\n", m->what, shapes[s].ndim, diagnosis_text(&d));
                failed++;
            }
            bench_release(&bench);
        }
    assert_int_equal(failed, 0);
}

/* Only a part of a large pair is looked at closely; what is found must not depend on where it is. */
static void large_pairs(void **state)
{
    (void)state;
    static const struct mistake some[] = {
        {"an eighth", an_eighth, TD_IS_SCALE, true, 0, false},
        {"two tokens zero", zero_tokens, TD_IS_ZEROED, true, 0, false},
        {"a factor by channel", larger_by_channel, TD_IS_CHANNEL_SCALE, true, 0, false},
        {"unrelated", unrelated, TD_IS_UNKNOWN, false, 0, false},
    };
    struct td_shape shape = SIZES(3, 3, TOKENS, 32768);
    for (size_t i = 0; i < (quick() ? 2 : sizeof some / sizeof *some); i++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct array a = array_random(&bench, i, shape);
        bench_add(&bench, 'a', "0_query", a);
        bench_add(&bench, 'b', "0_query", with_mistake(&bench, &some[i], a, i));
        struct td_diagnosis d = diagnose(&bench, shape, TOKENS);
        check_order(&d, some[i].what);
        if (!diagnosis_is(&d, some[i].kind, some[i].complete))
            fail_msg("%s: %s", some[i].what, diagnosis_text(&d));
        bench_release(&bench);
    }
}

/* Rounding alone, below the floor or ten thousand times above it, is no mistake that a rule explains. */
static void clean_noise(void **state)
{
    (void)state;
    static const double levels[] = {1e-7, 1e-6, 1e-4, 3e-2};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            for (uint64_t seed = 0; seed < 5; seed++) {
                struct bench bench = {.heads = {.count = 1, .size = {16}}};
                struct array a = array_random(&bench, seed, shapes[s]), b = array_copy(&bench, a);
                array_blur(&b, seed, levels[i]);
                bench_add(&bench, 'a', "0_query", a);
                bench_add(&bench, 'b', "0_query", b);
                struct td_diagnosis d = diagnose(&bench, shapes[s], TOKENS);
                check_order(&d, "noise");
                for (int k = 0; k < d.count; k++)
                    if (d.list[k].complete)
                        fail_msg("noise of %g, %d axes: %s", levels[i], shapes[s].ndim, diagnosis_text(&d));
                bench_release(&bench);
            }
}

static void sizes_at_the_edge(void **state)
{
    (void)state;
    static const struct td_shape edges[] = {SIZES(0),       SIZES(1, 1), SIZES(1, 0),   SIZES(2, 1, 1),
                                            SIZES(2, 0, 4), SIZES(1, 7), SIZES(2, 1, 3)};
    for (size_t s = 0; s < sizeof edges / sizeof *edges; s++)
        for (int values = 0; values < 3; values++) {
            struct bench bench = {.heads = {.count = 1, .size = {16}}};
            struct array a = array_random(&bench, s, edges[s]), b = array_random(&bench, s + 50, edges[s]);
            for (int64_t i = 0; i < b.count && values > 0; i++)
                b.data[i] = values == 1 ? NAN : 3e38f;
            bench_add(&bench, 'a', "0_query", a);
            bench_add(&bench, 'b', "0_query", b);
            struct td_diagnosis d = diagnose(&bench, edges[s], 0);
            assert_in_range(d.count, 1, TD_MAX_FINDINGS);
            bench_release(&bench);
        }
}

/* --- other orders of the axes ------------------------------------------------------------------------------
 */

static void transposed(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct td_shape shape;
        struct array_op ops[MOST_OPS];
    } table[] = {
        {"a square", SIZES(2, 32, 32), {PERMUTE(1, 0)}},
        {"heads and tokens", SIZES(3, TOKENS, TOKENS, 16), {PERMUTE(1, 0, 2)}},
        {"reshaped instead of exchanged",
         SIZES(3, TOKENS, 6, 16),
         {PERMUTE(1, 0, 2), RESHAPE(TOKENS, 6, 16)}},
        {"heads merged without moving the tokens to the front",
         SIZES(2, TOKENS, 96),
         {RESHAPE(TOKENS, 6, 16), PERMUTE(1, 0, 2), RESHAPE(TOKENS, 96)}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct array a = array_random(&bench, i, table[i].shape), b = array_apply(&bench, a, table[i].ops);
        array_blur(&b, i, ROUNDING);
        bench_add(&bench, 'a', "0_query", a);
        bench_add(&bench, 'b', "0_query", b);
        struct td_diagnosis d = diagnose(&bench, table[i].shape, TOKENS);
        if (!diagnosis_is(&d, TD_IS_TRANSPOSE, true))
            fail_msg("%s: %s", table[i].what, diagnosis_text(&d));
        bench_release(&bench);
    }
}

/* A layout that fits this layer alone is the explanation. */
static void the_other_layout(void **state)
{
    (void)state;
    struct bench bench = {.heads = {.count = 1, .size = {16}}};
    struct td_shape shape = SIZES(3, 8, 8, 16);
    struct array a = array_random(&bench, 1, shape);
    struct array b = array_apply(&bench, a, (struct array_op[MOST_OPS]){PERMUTE(1, 0, 2)});
    struct td_layout plain = {.shape = shape}, other = {.shape = shape};
    other.b = (struct td_steps){1, {{.kind = TD_STEP_PERMUTE, .list = SIZES(3, 1, 0, 2)}}};
    bench_add(&bench, 'a', "0_query", a);
    bench_add(&bench, 'b', "0_query", b);
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    struct td_diagnosis d = bench_diagnose(&bench, 0, &plain, &other, FLOOR, 0);
    if (!diagnosis_is(&d, TD_IS_TRANSPOSE, true))
        fail_msg("%s", diagnosis_text(&d));
    other.rotary = true;
    d = bench_diagnose(&bench, 0, &plain, &other, FLOOR, 0);
    bool rope = false;
    for (int i = 0; i < d.count; i++)
        rope = rope || (d.list[i].kind == TD_IS_ROPE && d.list[i].complete);
    assert_true(rope);
    bench_release(&bench);
}

static void heads_exchanged(void **state)
{
    (void)state;
    for (int merged = 0; merged < 2; merged++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct array a = array_random(&bench, 3, SHAPE(3, TOKENS, 6, 16)), b = array_copy(&bench, a);
        for (int64_t i = 0; i < a.count; i++)
            b.data[i] = a.data[moved(&a, i, 1, (index_along(&a, i, 1) * 5 + 2) % 6)];
        array_blur(&b, 1, ROUNDING);
        if (merged)
            a.shape = b.shape = (struct td_shape)SIZES(2, TOKENS, 96);
        bench_add(&bench, 'a', "0_query", a);
        bench_add(&bench, 'b', "0_query", b);
        struct td_diagnosis d = diagnose(&bench, a.shape, TOKENS);
        if (!diagnosis_is(&d, TD_IS_PERMUTATION, true))
            fail_msg("merged %d: %s", merged, diagnosis_text(&d));
        bench_release(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind),       cmocka_unit_test(large_pairs),
        cmocka_unit_test(clean_noise),     cmocka_unit_test(sizes_at_the_edge),
        cmocka_unit_test(transposed),      cmocka_unit_test(the_other_layout),
        cmocka_unit_test(heads_exchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
