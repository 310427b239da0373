/* test_align.c: the values choose the layout, layer by layer or all layers together.
 *
 * A row starts from one array of random values, of which each side keeps some, in an order and a number of
 * shards of its own. The layout that is chosen must bring both sides to the shape that is meant, with the
 * same values on both; how many steps that takes, and on which side, is not looked at but where it matters.
 */
#include "compare_support.h"

#include "compare/layout/sampled.h"

#include "compare/layout/reorder.h"

#include <math.h>
#include <stdio.h>

/* --- one pair ------------------------------------------------------------------------------------------- */

struct row {
    const char *what;
    struct td_shape origin;
    struct array_op a[MOST_OPS], b[MOST_OPS];
    struct td_shape shape;       /* both sides lined up; ndim -1: there is no such layout */
    struct sharding in_a, in_b;  /* WHOLE where nothing is said */
    struct td_fusion of_a, of_b; /* one side holds this part of the other */
    int64_t head;                /* the size of a head that other tensors tell; 0: none does */
    enum { ANY, SHAPES, VALUES } chosen_by;
};

#define NONE       \
    {              \
        .ndim = -1 \
    }
#define SIZES(n, ...)                        \
    {                                        \
        .ndim = (n), .size = { __VA_ARGS__ } \
    }

static const struct row rows[] = {
    {.what = "as it stands", .origin = SIZES(2, 9, 32), .shape = SIZES(2, 9, 32), .chosen_by = SHAPES},
    {.what = "a batch of one", .origin = SIZES(2, 9, 32), .b = {RESHAPE(1, 9, 32)}, .shape = SIZES(2, 9, 32)},
    {.what = "transposed", .origin = SIZES(2, 9, 32), .b = {PERMUTE(1, 0)}, .shape = SIZES(2, 9, 32)},
    {.what = "heads first, [1,H,T,D] against [T,H,D]",
     .origin = SIZES(3, 7, 4, 16),
     .b = {PERMUTE(1, 0, 2), RESHAPE(1, 4, 7, 16)},
     .shape = SIZES(3, 7, 4, 16)},
    {.what = "as many heads as tokens, one of the two orders: which, only more layers could tell",
     .origin = SIZES(3, 4, 4, 16),
     .b = {RESHAPE(1, 4, 4, 16)},
     .shape = SIZES(3, 4, 4, 16),
     .chosen_by = SHAPES},
    {.what = "as many heads as tokens, heads first and merged",
     .origin = SIZES(3, 4, 4, 16),
     .b = {PERMUTE(1, 0, 2), RESHAPE(4, 64)},
     .shape = SIZES(3, 4, 4, 16),
     .chosen_by = VALUES},
    {.what = "the same, tokens first",
     .origin = SIZES(3, 4, 4, 16),
     .b = {RESHAPE(4, 64)},
     .shape = SIZES(3, 4, 4, 16)},
    {.what = "all axes of one size, turned and merged",
     .origin = SIZES(3, 8, 8, 8),
     .b = {PERMUTE(2, 0, 1), RESHAPE(8, 64)},
     .shape = SIZES(3, 8, 8, 8),
     .chosen_by = VALUES},
    {.what = "heads merged",
     .origin = SIZES(3, 7, 4, 16),
     .b = {RESHAPE(7, 64)},
     .shape = SIZES(3, 7, 4, 16)},
    {.what = "heads merged in A",
     .origin = SIZES(3, 7, 4, 16),
     .a = {RESHAPE(1, 7, 64)},
     .b = {PERMUTE(1, 0, 2)},
     .shape = SIZES(3, 7, 4, 16)},
    {.what = "heads merged behind the tokens' place",
     .origin = SIZES(3, 7, 4, 16),
     .b = {PERMUTE(1, 0, 2), RESHAPE(4, 112)},
     .shape = SIZES(3, 4, 7, 16)},
    {.what = "flat", .origin = SIZES(2, 9, 32), .b = {RESHAPE(288)}, .shape = SIZES(2, 9, 32)},
    {.what = "nothing in common",
     .origin = SIZES(2, 9, 32),
     .b = {RESHAPE(288), SLICE(0, 0, 287)},
     .shape = NONE},

    {.what = "columns on two ranks",
     .origin = SIZES(2, 9, 32),
     .in_b = {SHARDS_JOIN, 2, 1},
     .shape = SIZES(2, 9, 32)},
    {.what = "rows on four ranks of A",
     .origin = SIZES(2, 16, 32),
     .in_a = {SHARDS_JOIN, 4, 0},
     .shape = SIZES(2, 16, 32)},
    {.what = "both sides on ranks, cut otherwise",
     .origin = SIZES(2, 16, 32),
     .in_a = {SHARDS_JOIN, 2, 0},
     .in_b = {SHARDS_JOIN, 4, 1},
     .shape = SIZES(2, 16, 32)},
    {.what = "a square, its columns on ranks and transposed",
     .origin = SIZES(2, 32, 32),
     .b = {PERMUTE(1, 0)},
     .in_b = {SHARDS_JOIN, 2, 1},
     .shape = SIZES(2, 32, 32),
     .chosen_by = VALUES},
    {.what = "heads on ranks",
     .origin = SIZES(3, 7, 4, 16),
     .b = {PERMUTE(1, 0, 2)},
     .in_b = {SHARDS_JOIN, 2, 0},
     .shape = SIZES(3, 7, 4, 16)},
    {.what = "partial sums",
     .origin = SIZES(2, 9, 32),
     .in_b = {SHARDS_SUM, 3, 0},
     .shape = SIZES(2, 9, 32),
     .chosen_by = VALUES},
    {.what = "copies", .origin = SIZES(2, 9, 32), .in_b = {SHARDS_COPY, 3, 0}, .shape = SIZES(2, 9, 32)},
    {.what = "copies of A", .origin = SIZES(2, 9, 32), .in_a = {SHARDS_COPY, 2, 0}, .shape = SIZES(2, 9, 32)},

    {.what = "k of a fused block",
     .origin = SIZES(2, 9, 96),
     .a = {SLICE(1, 32, 64)},
     .of_b = {1, 3},
     .shape = SIZES(2, 9, 32)},
    {.what = "v of a fused block in A",
     .origin = SIZES(2, 9, 96),
     .b = {SLICE(1, 64, 96)},
     .of_a = {2, 3},
     .shape = SIZES(2, 9, 32)},
    {.what = "q of a block with fewer heads in k and v",
     .origin = SIZES(2, 9, 64),
     .a = {SLICE(1, 0, 32)},
     .of_b = {0, 3},
     .shape = SIZES(2, 9, 32)},
    {.what = "k of the same",
     .origin = SIZES(2, 9, 64),
     .a = {SLICE(1, 32, 48)},
     .of_b = {1, 3},
     .shape = SIZES(2, 9, 16)},
    {.what = "k fused by head",
     .origin = SIZES(4, 9, 4, 3, 16),
     .a = {SLICE(2, 1, 2), RESHAPE(9, 64)},
     .b = {RESHAPE(9, 192)},
     .of_b = {1, 3},
     .head = 16,
     .shape = SIZES(3, 9, 4, 16)},
    {.what = "q fused by group: q q k v",
     .origin = SIZES(4, 9, 2, 4, 16),
     .a = {SLICE(2, 0, 2), RESHAPE(9, 64)},
     .b = {RESHAPE(9, 128)},
     .of_b = {0, 3},
     .head = 16,
     .shape = SIZES(4, 9, 2, 2, 16)},
    {.what = "v fused by group",
     .origin = SIZES(4, 9, 2, 4, 16),
     .a = {SLICE(2, 3, 4), RESHAPE(9, 32)},
     .b = {RESHAPE(9, 128)},
     .of_b = {2, 3},
     .head = 16,
     .shape = SIZES(3, 9, 2, 16)},
    {.what = "the weight of v fused by head",
     .origin = SIZES(4, 4, 3, 16, 24),
     .a = {SLICE(1, 2, 3), RESHAPE(64, 24)},
     .b = {RESHAPE(192, 24)},
     .of_b = {2, 3},
     .head = 16,
     .shape = SIZES(3, 4, 16, 24)},
    {.what = "up of gate and up",
     .origin = SIZES(2, 9, 64),
     .a = {SLICE(1, 32, 64)},
     .of_b = {1, 2},
     .shape = SIZES(2, 9, 32)},
    {.what = "gate and up channel by channel",
     .origin = SIZES(3, 9, 32, 2),
     .a = {SLICE(2, 1, 2), RESHAPE(9, 32)},
     .b = {RESHAPE(9, 64)},
     .of_b = {1, 2},
     .shape = SIZES(2, 9, 32)},

    {.what = "kv heads repeated in B",
     .origin = SIZES(3, 7, 2, 16),
     .b = {REPEAT(1, 3)},
     .shape = SIZES(4, 7, 2, 3, 16)},
    {.what = "kv heads repeated in A, merged",
     .origin = SIZES(3, 7, 2, 16),
     .a = {REPEAT(1, 2), RESHAPE(7, 64)},
     .b = {RESHAPE(7, 32)},
     .head = 16,
     .shape = SIZES(4, 7, 2, 2, 16)},
    {.what = "padding behind", .origin = SIZES(2, 9, 32), .b = {PAD(0, 0, 3)}, .shape = SIZES(2, 9, 32)},
    {.what = "padding in front", .origin = SIZES(2, 9, 32), .b = {PAD(0, 5, 0)}, .shape = SIZES(2, 9, 32)},
    {.what = "padding in A, of channels",
     .origin = SIZES(2, 9, 32),
     .a = {PAD(1, 0, 16)},
     .shape = SIZES(2, 9, 32)},
    {.what = "the last token alone",
     .origin = SIZES(2, 9, 320),
     .b = {SLICE(0, 8, 9), RESHAPE(320)},
     .shape = SIZES(1, 320)},
};

/* What a row came to, or NULL where that is what is meant. */
static const char *wrong(struct bench *bench, const struct row *row)
{
    static char text[160];
    const struct td_layout *layout = bench_layout(bench, 0);
    struct td_shape meant = row->shape;
    if (meant.ndim < 0)
        return layout ? "lined up" : NULL;
    if (!layout)
        return "no layout";
    struct array a = bench_lined_up(bench, 0, 'a', layout), b = bench_lined_up(bench, 0, 'b', layout);
    snprintf(text, sizeof text, "a: %s", steps_text(&layout->a));
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, ", b: %s, off by %g", steps_text(&layout->b), array_distance(a, b));
    bool same = a.shape.ndim == meant.ndim &&
                memcmp(a.shape.size, meant.size, (size_t)meant.ndim * sizeof meant.size[0]) == 0;
    bool chosen = row->chosen_by == ANY || layout->by_value == (row->chosen_by == VALUES);
    return same && chosen && array_distance(a, b) < 1e-5 ? NULL : text;
}

static void setup(struct bench *bench, const struct row *row, uint64_t seed)
{
    struct array origin = array_random(bench, seed, row->origin);
    bench_add_shards(bench, 'a', "0_query", array_apply(bench, origin, row->a), row->in_a);
    bench_add_shards(bench, 'b', "0_query", array_apply(bench, origin, row->b), row->in_b);
    if (row->head)
        bench->heads = (struct td_head_sizes){.count = 1, .size = {row->head}};
    bench_ready(bench);
    bench_pair_all(bench, row->of_a, row->of_b);
    bench_align(bench);
}

static void one_pair(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench = {0};
        setup(&bench, &rows[i], 11 + i);
        const char *text = wrong(&bench, &rows[i]);
        if (text) {
            print_message("%s: %s\n", rows[i].what, text);
            failed++;
        }
        bench_release(&bench);
    }
    assert_int_equal(failed, 0);
}

/* Where the values have nothing to do with each other, none of the guesses is believed. */
static void unrelated_values_prove_nothing(void **state)
{
    (void)state;
    static const struct {
        struct td_shape a, b;
        struct sharding in_b;
    } table[] = {
        {SIZES(2, 9, 32), SIZES(2, 12, 32), {WHOLE, 0, 0}}, /* padding */
        {SIZES(1, 320), SIZES(2, 9, 320), {WHOLE, 0, 0}},   /* the last token */
        {SIZES(2, 9, 32), SIZES(2, 18, 32), {WHOLE, 0, 0}}, /* a repeat, or padding */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {0};
        bench_add(&bench, 'a', "0_query", array_random(&bench, 1, table[i].a));
        bench_add_shards(&bench, 'b', "0_query", array_random(&bench, 2, table[i].b), table[i].in_b);
        bench_ready(&bench);
        bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
        bench_align(&bench);
        if (bench_layout(&bench, 0))
            fail_msg("row %zu is lined up", i);
        bench_release(&bench);
    }
}

static bool moves(const struct td_layout *layout)
{
    return strstr(steps_text(&layout->a), "permute") || strstr(steps_text(&layout->b), "permute");
}

/* A mistake on top of the layout does not hide it: a wrong scale or offset, a NaN, noise. */
static void a_mistake_does_not_hide_the_layout(void **state)
{
    (void)state;
    for (int mistake = 0; mistake < 4; mistake++) {
        struct bench bench = {0};
        static const struct array_op turn[MOST_OPS] = {PERMUTE(1, 0, 2), RESHAPE(8, 128)};
        struct array a = array_random(&bench, 4, SHAPE(3, 8, 8, 16)), b = array_apply(&bench, a, turn);
        array_blur(&b, 1, mistake == 3 ? 0.3 : 1e-7);
        for (int64_t i = 0; i < b.count; i++)
            b.data[i] = mistake == 0 ? b.data[i] * 40 + 7 : mistake == 1 && i % 50 == 0 ? NAN : b.data[i];
        for (int64_t i = 0; mistake == 2 && i < b.count / 8; i++)
            b.data[i] = 0;
        bench_add(&bench, 'a', "0_query", a);
        bench_add(&bench, 'b', "0_query", b);
        bench_ready(&bench);
        bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
        bench_align(&bench);
        const struct td_layout *layout = bench_layout(&bench, 0);
        assert_non_null(layout);
        if (!moves(layout) || !layout->by_value)
            fail_msg("mistake %d: the wrong layout", mistake);
        bench_release(&bench);
    }
}

/* --- the vote of the layers
 * --------------------------------------------------------------------------------- */

enum { LAYERS = 5 };

/* Halves of each head of 64 interleaved: [.., 2, 32] -> [.., 32, 2], or back. */
#define INTERLEAVE                                                 \
    {                                                              \
        RESHAPE(4, 2, 32, 6), PERMUTE(0, 2, 1, 3), RESHAPE(256, 6) \
    }
#define HALVES                                                     \
    {                                                              \
        RESHAPE(4, 32, 2, 6), PERMUTE(0, 2, 1, 3), RESHAPE(256, 6) \
    }

struct vote_row {
    const char *what;
    struct td_shape origin;
    struct array_op b[MOST_OPS], odd[MOST_OPS]; /* what B is in all layers but `odd_layer`, and there */
    int odd_layer;                              /* -1: none */
    bool other;                                 /* the odd layer is known to fit otherwise */
    bool moved;                                 /* the layers' layout is not the shapes as they stand */
    bool rotary;                                /* of the layers' layout, or of the odd layer's own */
};

static const struct vote_row votes[] = {
    {.what = "all in order", .origin = SIZES(3, 8, 8, 16), .odd_layer = -1},
    {.what = "all turned, with shapes that agree",
     .origin = SIZES(3, 8, 8, 16),
     .b = {PERMUTE(1, 0, 2)},
     .odd_layer = -1,
     .moved = true},
    {.what = "one turned",
     .origin = SIZES(3, 8, 8, 16),
     .odd = {PERMUTE(1, 0, 2)},
     .odd_layer = 2,
     .other = true},
    {.what = "all but one turned",
     .origin = SIZES(3, 8, 8, 16),
     .b = {PERMUTE(1, 0, 2), RESHAPE(8, 128)},
     .odd = {RESHAPE(8, 128)},
     .odd_layer = 3,
     .other = true,
     .moved = true},
    {.what = "squares, all transposed",
     .origin = SIZES(2, 24, 24),
     .b = {PERMUTE(1, 0)},
     .odd_layer = -1,
     .moved = true},
    {.what = "squares, one transposed",
     .origin = SIZES(2, 24, 24),
     .odd = {PERMUTE(1, 0)},
     .odd_layer = 0,
     .other = true},
    {.what = "rotary, interleaved in B",
     .origin = SIZES(2, 256, 6),
     .b = INTERLEAVE,
     .odd_layer = -1,
     .moved = true,
     .rotary = true},
    {.what = "rotary, halves in B",
     .origin = SIZES(2, 256, 6),
     .b = HALVES,
     .odd_layer = -1,
     .moved = true,
     .rotary = true},
    {.what = "rotary in one layer",
     .origin = SIZES(2, 256, 6),
     .odd = INTERLEAVE,
     .odd_layer = 4,
     .other = true,
     .rotary = true},
};

static void check_vote(struct bench *bench, const struct vote_row *row)
{
    const struct td_layout *shared = bench_layout(bench, 0);
    assert_non_null(shared);
    for (size_t i = 0; i < LAYERS; i++) {
        bool odd = (int)i == row->odd_layer;
        const struct td_layout *other = bench_other(bench, i);
        assert_ptr_equal(bench_layout(bench, i), shared); /* one for all */
        if (odd ? (other != NULL) != row->other : other != NULL)
            fail_msg("%s: layer %zu has %s other layout", row->what, i, other ? "an" : "no");
        const struct td_layout *fits = odd && other ? other : shared;
        double off = array_distance(bench_lined_up(bench, i, 'a', fits), bench_lined_up(bench, i, 'b', fits));
        if (off > 0)
            fail_msg("%s: layer %zu is off by %g", row->what, i, off);
        if (odd && other)
            assert_int_equal(other->rotary, row->rotary);
    }
    if (moves(shared) != row->moved)
        fail_msg("%s: the layers have '%s'", row->what, steps_text(&shared->b));
    if (row->odd_layer < 0)
        assert_int_equal(shared->rotary, row->rotary);
}

static void layers_vote(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof votes / sizeof *votes; i++) {
        struct bench bench = {.heads = {.count = 1, .size = {64}}};
        for (int layer = 0; layer < LAYERS; layer++) {
            char name[32];
            struct array x = array_random(&bench, 100 * i + (uint64_t)layer, votes[i].origin);
            snprintf(name, sizeof name, "%d_query", layer);
            bench_add(&bench, 'a', name, x);
            bench_add(&bench, 'b', name,
                      array_apply(&bench, x, layer == votes[i].odd_layer ? votes[i].odd : votes[i].b));
        }
        bench_ready(&bench);
        bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
        bench_align(&bench);
        check_vote(&bench, &votes[i]);
        bench_release(&bench);
    }
}

/* Other stages and other shapes are other code: they have votes of their own. */
static void stages_vote_by_themselves(void **state)
{
    (void)state;
    struct bench bench = {0};
    static const struct array_op turn[MOST_OPS] = {PERMUTE(1, 0, 2)}, none[MOST_OPS] = {{OP_END, 0, {0}}};
    for (int i = 0; i < 6; i++) {
        char name[32];
        struct array x = array_random(&bench, 50 + (uint64_t)i, SHAPE(3, 8, 8, 16));
        snprintf(name, sizeof name, "%d_%s", i / 2, i % 2 ? "key" : "query");
        bench_add(&bench, 'a', name, x);
        bench_add(&bench, 'b', name, array_apply(&bench, x, i % 2 ? turn : none));
    }
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    bench_align(&bench);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(moves(bench_layout(&bench, i)), strcmp(bench.matches[i].a->stage, "key") == 0);
    bench_release(&bench);
}

/* --- other orders ----------------------------------------------------------------------------------------
 */

/* A last axis is a head where another tensor is as wide as all heads together: 64 is one here, and 9, the
 * tokens of a map of attention, is none. */
static void sizes_of_heads(void **state)
{
    (void)state;
    struct bench bench = {0};
    bench_add(&bench, 'a', "0_query", array_random(&bench, 1, SHAPE(3, 9, 4, 64)));
    bench_add(&bench, 'a', "0_post_attn", array_random(&bench, 2, SHAPE(2, 9, 256)));
    bench_add(&bench, 'a', "0_scores", array_random(&bench, 3, SHAPE(4, 1, 4, 9, 9)));
    bench_ready(&bench);
    struct td_head_sizes heads, none;
    const struct td_side *sides[] = {&bench.a.made.side, &bench.b.made.side};
    assert_ok(td_head_sizes_find(&heads, sides, 2, NULL));
    assert_int_equal(heads.count, 1);
    assert_int_equal(heads.size[0], 64);
    assert_false(heads.guessed);
    assert_ok(td_head_sizes_find(&none, sides + 1, 1, NULL));
    assert_true(none.guessed && none.count > 0);
    bench_release(&bench);
}

static void heads_in_another_order(void **state)
{
    (void)state;
    static const int order[] = {3, 0, 2, 1}; /* B's slab k is A's order[k] */
    struct bench bench = {.heads = {.count = 1, .size = {64}}};
    struct array a = array_random(&bench, 1, SHAPE(2, 256, 12)), b = array_copy(&bench, a);
    for (int k = 0; k < 4; k++)
        memcpy(b.data + (size_t)k * 64 * 12, a.data + (size_t)order[k] * 64 * 12, sizeof(float) * 64 * 12);
    bench_add(&bench, 'a', "0_query", a);
    bench_add(&bench, 'b', "0_query", b);
    bench_add(&bench, 'a', "1_query", a);
    bench_add(&bench, 'b', "1_query", array_random(&bench, 2, SHAPE(2, 256, 12)));
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    struct td_layout plain = {.shape = SIZES(2, 256, 12)};
    const struct td_layout *found;
    struct td_arena arena;
    td_arena_init(&arena, TD_MAX_METADATA);
    assert_ok(
        td_reorder_find(&found, bench.matches[0].a, bench.matches[0].b, &plain, &bench.heads, &arena, NULL));
    assert_non_null(found);
    assert_true(
        array_distance(bench_lined_up(&bench, 0, 'a', found), bench_lined_up(&bench, 0, 'b', found)) == 0);
    assert_true(strstr(steps_text(&found->b), "reorder") != NULL);
    assert_ok(
        td_reorder_find(&found, bench.matches[1].a, bench.matches[1].b, &plain, &bench.heads, &arena, NULL));
    assert_null(found); /* no order makes unrelated values fit */
    td_arena_release(&arena);
    bench_release(&bench);
}

static void fits(void **state)
{
    (void)state;
    struct bench bench = {0};
    struct array a = array_random(&bench, 1, SHAPE(2, 64, 16)), far = array_copy(&bench, a);
    for (int64_t i = 0; i < far.count; i++)
        far.data[i] = far.data[i] * 3 + 5;
    bench_add(&bench, 'a', "0_query", a);
    bench_add(&bench, 'a', "1_query", a);
    bench_add(&bench, 'a', "2_query", a);
    bench_add(&bench, 'b', "0_query", far);
    bench_add(&bench, 'b', "1_query", array_random(&bench, 2, SHAPE(2, 64, 16)));
    bench_add(&bench, 'b', "2_query", array_apply(&bench, a, (struct array_op[MOST_OPS]){SLICE(0, 0, 1)}));
    bench_ready(&bench);
    bench_pair_all(&bench, (struct td_fusion){0}, (struct td_fusion){0});
    struct td_layout plain = {.shape = SIZES(2, 64, 16)},
                     impossible = {.a = {1, {{.kind = TD_STEP_PERMUTE, .list = SIZES(3, 0, 1, 2)}}}};
    const struct td_match *m = bench.matches;
    assert_true(td_layout_fit(m[0].a, m[0].b, &plain) > 0.999); /* blind to a scale and an offset */
    assert_true(fabs(td_layout_fit(m[1].a, m[1].b, &plain)) < TD_CONVINCING / 2);
    assert_true(isnan(td_layout_fit(m[0].a, m[0].b, &impossible)));
    bench_release(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pair),
        cmocka_unit_test(unrelated_values_prove_nothing),
        cmocka_unit_test(a_mistake_does_not_hide_the_layout),
        cmocka_unit_test(layers_vote),
        cmocka_unit_test(stages_vote_by_themselves),
        cmocka_unit_test(sizes_of_heads),
        cmocka_unit_test(heads_in_another_order),
        cmocka_unit_test(fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
