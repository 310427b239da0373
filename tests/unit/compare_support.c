/* compare_support.c: see compare_support.h. */
#include "compare_support.h"

#include "kernel/compare.h"

#include <math.h>
#include <stdio.h>

/* --- random values ------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t random_below(uint64_t *state, int64_t n)
{
    return (int64_t)(next_random(state) % (uint64_t)n);
}

/* The sum of twelve numbers in [0, 1), less 6: exact arithmetic, so that no C library has a say in it. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(next_random(state) >> 11) * 0x1p-53;
    return sum;
}

/* --- arrays -------------------------------------------------------------------------------------------- */

static void *own(struct bench *bench, void *memory)
{
    assert_non_null(memory);
    assert_true(bench->owned_count < MOST_OWNED);
    return bench->owned[bench->owned_count++] = memory;
}

float *bench_floats(struct bench *bench, int64_t count)
{
    return own(bench, calloc((size_t)(count ? count : 1), sizeof(float)));
}

static struct array array_new(struct bench *bench, struct td_shape shape)
{
    struct array x = {.shape = shape};
    assert_ok(td_shape_count(&shape, &x.count, NULL));
    x.data = bench_floats(bench, x.count);
    return x;
}

struct array array_random(struct bench *bench, uint64_t seed, struct td_shape shape)
{
    struct array x = array_new(bench, shape);
    for (int64_t i = 0; i < x.count; i++)
        x.data[i] = (float)normal(&seed);
    return x;
}

struct array array_copy(struct bench *bench, struct array x)
{
    struct array y = array_new(bench, x.shape);
    memcpy(y.data, x.data, (size_t)x.count * sizeof *x.data);
    return y;
}

void array_blur(struct array *x, uint64_t seed, double relative)
{
    seed ^= UINT64_C(0x5bd1e995);
    for (int64_t i = 0; i < x->count; i++)
        x->data[i] = (float)(x->data[i] * (1 + relative * normal(&seed)));
}

static void split_index(const struct td_shape *shape, int64_t flat, int64_t *index)
{
    for (int i = shape->ndim - 1; i >= 0; i--) {
        index[i] = flat % shape->size[i];
        flat /= shape->size[i];
    }
}

/* Element `index` of x, 0 outside of it. */
static float element(const struct array *x, const int64_t *index)
{
    int64_t flat = 0;
    for (int i = 0; i < x->shape.ndim; i++) {
        if (index[i] < 0 || index[i] >= x->shape.size[i])
            return 0;
        flat = flat * x->shape.size[i] + index[i];
    }
    return x->data[flat];
}

static struct td_shape shape_after(const struct td_shape *shape, const struct array_op *op)
{
    struct td_shape out = *shape;
    switch (op->kind) {
    case OP_RESHAPE:
        out.ndim = op->count;
        memcpy(out.size, op->n, sizeof out.size);
        break;
    case OP_PERMUTE:
        for (int i = 0; i < out.ndim; i++)
            out.size[i] = shape->size[op->n[i]];
        break;
    case OP_SLICE:
        out.size[op->n[0]] = op->n[2] - op->n[1];
        break;
    case OP_REPEAT:
        out.size[op->n[0]] *= op->n[1];
        break;
    case OP_PAD:
        out.size[op->n[0]] += op->n[1] + op->n[2];
        break;
    case OP_END:
        break;
    }
    return out;
}

/* Where element `to` of the result comes from. */
static void origin_of(const struct array_op *op, int ndim, const int64_t *to, int64_t *from)
{
    for (int i = 0; i < ndim; i++)
        from[i] = to[i];
    if (op->kind == OP_PERMUTE)
        for (int i = 0; i < ndim; i++)
            from[op->n[i]] = to[i];
    else if (op->kind == OP_SLICE)
        from[op->n[0]] += op->n[1];
    else if (op->kind == OP_REPEAT)
        from[op->n[0]] /= op->n[1];
    else if (op->kind == OP_PAD)
        from[op->n[0]] -= op->n[1];
}

struct array array_apply(struct bench *bench, struct array x, const struct array_op *ops)
{
    for (int i = 0; i < MOST_OPS && ops[i].kind != OP_END; i++) {
        struct array y = array_new(bench, shape_after(&x.shape, &ops[i]));
        if (ops[i].kind == OP_RESHAPE) {
            assert_int_equal(x.count, y.count);
            memcpy(y.data, x.data, (size_t)x.count * sizeof *x.data);
        }
        for (int64_t k = 0; k < y.count && ops[i].kind != OP_RESHAPE; k++) {
            int64_t to[TD_MAX_DIMS], from[TD_MAX_DIMS];
            split_index(&y.shape, k, to);
            origin_of(&ops[i], y.shape.ndim, to, from);
            y.data[k] = element(&x, from);
        }
        x = y;
    }
    return x;
}

double array_distance(struct array x, struct array y)
{
    double largest = 0, power = 0;
    if (x.shape.ndim != y.shape.ndim ||
        memcmp(x.shape.size, y.shape.size, (size_t)x.shape.ndim * sizeof x.shape.size[0]) != 0)
        return INFINITY;
    for (int64_t i = 0; i < x.count; i++) {
        largest = fmax(largest, fabs((double)x.data[i] - (double)y.data[i]));
        power += (double)x.data[i] * (double)x.data[i];
    }
    return power > 0 ? largest / sqrt(power / (double)x.count) : largest;
}

/* --- sides --------------------------------------------------------------------------------------------- */

static struct bench_side *side_of(struct bench *bench, char side)
{
    return side == 'a' ? &bench->a : &bench->b;
}

static char *text_copy(struct bench *bench, const char *text)
{
    return own(bench, strdup(text));
}

void bench_add(struct bench *bench, char side, const char *name, struct array x)
{
    struct bench_side *s = side_of(bench, side);
    assert_true(s->count < MOST_TENSORS);
    s->tensors[s->count++] = float_tensor(text_copy(bench, name), x.shape, x.data);
}

/* Shard `k`: a piece, a copy, or random values of which the last shard holds what is missing to x. */
static struct array shard(struct bench *bench, struct array x, struct sharding how, int k)
{
    if (how.kind == SHARDS_JOIN) {
        int64_t size = x.shape.size[how.axis], each = size / how.count;
        int64_t end = k + 1 == how.count ? size : (k + 1) * each;
        struct array_op cut[] = {SLICE(how.axis, k * each, end), {OP_END, 0, {0}}};
        return array_apply(bench, x, cut);
    }
    struct array part = array_copy(bench, x);
    for (int other = 0; how.kind == SHARDS_SUM && other < how.count; other++) {
        uint64_t seed = 77 + (uint64_t)other;
        for (int64_t i = 0; i < x.count; i++) {
            float value = (float)normal(&seed);
            if (other + 1 < how.count && k == other)
                part.data[i] = value;
            else if (other + 1 < how.count && k + 1 == how.count)
                part.data[i] -= value;
        }
    }
    return part;
}

void bench_add_shards(struct bench *bench, char side, const char *name, struct array x, struct sharding how)
{
    for (int k = 0; k < how.count && how.kind != WHOLE; k++) {
        char text[128];
        snprintf(text, sizeof text, "rank%d/%s", k, name);
        bench_add(bench, side, text, shard(bench, x, how, k));
    }
    if (how.kind == WHOLE)
        bench_add(bench, side, name, x);
}

void bench_ready(struct bench *bench)
{
    side_of_tensors(&bench->a.made, bench->a.tensors, bench->a.count);
    side_of_tensors(&bench->b.made, bench->b.tensors, bench->b.count);
    bench->ready = true;
    if (bench->heads.count > 0) { /* those and no others */
        bench->heads.all = bench->heads.count;
        return;
    }
    const struct td_side *sides[] = {&bench->a.made.side, &bench->b.made.side};
    assert_ok(td_head_sizes_find(&bench->heads, sides, 2, NULL));
}

void bench_pair_all(struct bench *bench, struct td_fusion fused_a, struct td_fusion fused_b)
{
    const struct td_side *a = &bench->a.made.side, *b = &bench->b.made.side;
    for (size_t i = 0; i < a->count && i < b->count; i++)
        bench->matches[bench->match_count++] = (struct td_match){.a = &a->items[i],
                                                                 .b = &b->items[i],
                                                                 .strategy = TD_MATCH_EXACT,
                                                                 .fused_a = fused_a,
                                                                 .fused_b = fused_b};
}

void bench_align(struct bench *bench)
{
    struct td_matches matches = {.pairs = bench->matches, .count = bench->match_count};
    assert_ok(td_align(&bench->alignments, &matches, &bench->heads, NULL, NULL, NULL));
    bench->aligned = true;
}

const struct td_layout *bench_layout(const struct bench *bench, size_t i)
{
    return bench->alignments.list[i].layout;
}

const struct td_layout *bench_other(const struct bench *bench, size_t i)
{
    return bench->alignments.list[i].other;
}

struct array bench_lined_up(struct bench *bench, size_t i, char side, const struct td_layout *layout)
{
    const struct td_match *m = &bench->matches[i];
    struct td_arena arena;
    struct td_operand o;
    td_arena_init(&arena, TD_MAX_METADATA);
    assert_ok(
        td_operand_make(&o, side == 'a' ? m->a : m->b, side == 'a' ? &layout->a : &layout->b, &arena, NULL));
    double *values = own(bench, calloc((size_t)o.count + 1, sizeof *values));
    assert_ok(td_operand_load(&o, 0, o.count, values, NULL));
    struct array x = array_new(bench, o.shape);
    assert_int_equal(x.count, o.count);
    for (int64_t k = 0; k < x.count; k++)
        x.data[k] = (float)values[k];
    td_arena_release(&arena);
    return x;
}

void bench_release(struct bench *bench)
{
    if (bench->aligned)
        td_alignments_release(&bench->alignments);
    if (bench->ready) {
        side_free(&bench->a.made);
        side_free(&bench->b.made);
    }
    for (size_t i = 0; i < bench->owned_count; i++)
        free(bench->owned[i]);
    *bench = (struct bench){0};
}

/* --- layouts in words ---------------------------------------------------------------------------------- */

const char *steps_text(const struct td_steps *steps)
{
    static const char *const words[] = {
        [TD_STEP_JOIN] = "join",       [TD_STEP_SUM] = "sum",         [TD_STEP_FIRST] = "first",
        [TD_STEP_TAKE] = "take",       [TD_STEP_SLICE] = "slice",     [TD_STEP_SQUEEZE] = "squeeze",
        [TD_STEP_RESHAPE] = "reshape", [TD_STEP_PERMUTE] = "permute", [TD_STEP_REPEAT] = "repeat",
        [TD_STEP_REORDER] = "reorder"};
    static char text[128];
    text[0] = '\0';
    for (int i = 0; i < steps->count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s", i ? "+" : "", words[steps->step[i].kind]);
    }
    return text;
}

/* --- measuring, ruling, diagnosing ------------------------------------------------------------------------
 */

/* An operand of one dense tensor. */
static struct td_operand operand_of(struct td_tensor *tensor, const struct td_tensor **stored)
{
    *stored = tensor;
    return (struct td_operand){.shape = tensor->shape,
                               .count = tensor->count,
                               .part_count = 1,
                               .parts = tensor,
                               .stored = (const struct td_tensor *const *)stored};
}

struct td_ruling ruling_of(const struct td_policy *policy, struct td_circumstances c, struct array a,
                           struct array b)
{
    struct td_tensor ta = float_tensor("a", a.shape, a.data), tb = float_tensor("b", b.shape, b.data);
    const struct td_tensor *stored[2];
    struct td_operand oa = operand_of(&ta, &stored[0]), ob = operand_of(&tb, &stored[1]);
    struct td_metrics metrics;
    struct td_ruling ruling;
    bool needs_count;
    assert_ok(td_measure(&oa, &ob, NULL, NULL, &metrics, NULL));
    c.count = a.count;
    for (int i = 0; i < a.shape.ndim; i++)
        c.longest_axis = a.shape.size[i] > c.longest_axis ? a.shape.size[i] : c.longest_axis;
    if (policy->kind == TD_POLICY_NOISE || policy->kind == TD_POLICY_REFERENCE)
        assert_ok(td_fill_find(&oa, &ob, &metrics, &c.fill, NULL));
    td_rule(policy, &c, &metrics, &ruling, &needs_count);
    if (needs_count) {
        struct td_arena arena;
        struct td_examination x;
        td_arena_init(&arena, TD_MAX_METADATA);
        assert_ok(td_examine(&oa, &ob, ruling.tolerance, 1, NULL, NULL, &arena, &x, NULL));
        td_ruling_count(&ruling, x.beyond, metrics.count);
        td_arena_release(&arena);
    }
    return ruling;
}

struct td_diagnosis bench_diagnose(struct bench *bench, size_t i, const struct td_layout *layout,
                                   const struct td_layout *other, double floor, int64_t tokens)
{
    const struct td_match *m = &bench->matches[i];
    struct td_arena arena;
    struct td_operand a, b;
    struct td_metrics metrics;
    const double *profile;
    struct td_diagnosis diagnosis;
    td_arena_init(&arena, TD_MAX_METADATA);
    assert_ok(td_operand_make(&a, m->a, &layout->a, &arena, NULL));
    assert_ok(td_operand_make(&b, m->b, &layout->b, &arena, NULL));
    assert_ok(td_measure(&a, &b, NULL, NULL, &metrics, NULL));
    assert_ok(td_profile(&a, &b, NULL, NULL, &arena, &profile, NULL));
    struct td_case c = {.item_a = m->a,
                        .item_b = m->b,
                        .layout = layout,
                        .other = other,
                        .metrics = &metrics,
                        .profile = profile,
                        .floor = floor,
                        .a = &bench->a.made.side,
                        .heads = &bench->heads,
                        .tokens = tokens};
    assert_ok(td_diagnose(&c, NULL, &diagnosis, NULL));
    td_arena_release(&arena);
    return diagnosis;
}

bool diagnosis_is(const struct td_diagnosis *d, enum td_kind_of_mistake kind, bool complete)
{
    return d->count > 0 && d->list[0].kind == kind && d->list[0].complete == complete;
}

const char *diagnosis_text(const struct td_diagnosis *d)
{
    static char text[512];
    text[0] = '\0';
    for (int i = 0; i < d->count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s %s (%.3f)", i ? ", " : "",
                 td_mistake_name(d->list[i].kind), d->list[i].complete ? "complete" : "in part",
                 d->list[i].explained);
    }
    return text;
}

int64_t index_along(const struct array *x, int64_t i, int axis)
{
    int64_t stride = 1;
    for (int k = axis + 1; k < x->shape.ndim; k++)
        stride *= x->shape.size[k];
    return i / stride % x->shape.size[axis];
}
