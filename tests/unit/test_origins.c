/* test_origins.c: who inherits an error from whom, and what the list of a side says of the order. */
#include "match_support.h"

#include "compare/judge/between.h"
#include "compare/judge/origins.h"

#include <math.h>

/* One line of a table: a tensor, its error (below 1e-3 it agrees), and what is to be found. */
struct line {
    const char *name;
    double error;
    enum td_origin origin;
};

struct table {
    struct test_side side;
    struct td_pair pairs[32];
    size_t count;
};

/* The pairs of a side with itself, in its order. */
static void make_table(struct table *t, const struct line *lines, size_t count, bool kept)
{
    struct td_tensor tensors[32];
    *t = (struct table){.count = count};
    for (size_t i = 0; i < count; i++) {
        tensors[i] = float_tensor(lines[i].name, SHAPE(2, 8, 8), NULL);
        tensors[i].sequence = (struct td_sequence){.list = 1, .kept = kept, .at = i};
    }
    side_of_tensors(&t->side, tensors, count);
    for (size_t i = 0; i < count; i++) {
        const struct td_item *item = item_named(&t->side, lines[i].name);
        bool diverged = lines[i].error > 1e-3;
        t->pairs[item->order] = (struct td_pair){
            .a = item,
            .b = item,
            .layer = item->layer,
            .stage = item->stage,
            .name = item->name,
            .outcome.metrics = {.count = 64, .paired = 64, .rel_l2 = lines[i].error},
            .outcome.ruling = {.verdict = diverged ? TD_DIVERGED : TD_WITHIN, .floor = 1e-3},
        };
        t->pairs[item->order].outcome.metrics.a.norm = 1 + (double)i; /* no two hold the same values */
        t->pairs[item->order].outcome.metrics.b.norm = 1 + (double)i;
    }
}

static void assert_origins(const struct line *lines, size_t count, bool kept, const char *first)
{
    struct table t;
    make_table(&t, lines, count, kept);
    const struct td_pair *found = td_origins_find(t.pairs, count, t.side.side.order);
    for (size_t i = 0; i < count; i++) {
        const struct td_pair *p = &t.pairs[item_named(&t.side, lines[i].name)->order];
        if (p->outcome.origin != lines[i].origin)
            fail_msg("%s: origin %d, not %d", lines[i].name, (int)p->outcome.origin, (int)lines[i].origin);
    }
    assert_string_equal(found ? found->name : "none", first);
    side_free(&t.side);
}

#define ORIGINS(kept, first, ...)                                         \
    do {                                                                  \
        const struct line lines[] = {__VA_ARGS__};                        \
        assert_origins(lines, sizeof lines / sizeof *lines, kept, first); \
    } while (0)

static void a_chain(void **state)
{
    (void)state;
    ORIGINS(true, "stem", {"stem", .1, TD_BORN}, {"body", .2, TD_INHERITED}, {"act", .9, TD_BORN},
            {"head", .5, TD_INHERITED});
    ORIGINS(true, "stem", {"stem", .1, TD_BORN}, {"body", 0, TD_ORIGIN_NONE}, {"act", .1, TD_BORN});
    /* A mask stands beside the flow. */
    ORIGINS(true, "stem", {"stem", .1, TD_BORN}, {"mask", 0, TD_ORIGIN_NONE}, {"act", .1, TD_INHERITED});
}

static void modules_with_their_inputs(void **state)
{
    (void)state;
    /* An output is judged by what went into its module; an input that is no copy, by what came before it. */
    ORIGINS(true, "left.output", {"left.input", 0, TD_ORIGIN_NONE}, {"left.output", .2, TD_BORN},
            {"aside.input", 0, TD_ORIGIN_NONE}, {"aside.output", 0, TD_ORIGIN_NONE},
            {"add.input.0", .2, TD_BORN}, {"add.output", .2, TD_INHERITED});
    ORIGINS(true, "fc.weight", {"z.output", 0, TD_ORIGIN_NONE}, {"fc.input", 0, TD_ORIGIN_NONE},
            {"fc.weight", .1, TD_BORN}, {"fc.output", .1, TD_INHERITED});
}

static void a_decoder(void **state)
{
    (void)state;
    ORIGINS(false, "h.0.attn.q_proj", {"h.0.input_layernorm", 0, TD_ORIGIN_NONE},
            {"h.0.attn.q_proj", .1, TD_BORN}, {"h.0.attn.k_proj", 0, TD_ORIGIN_NONE},
            {"h.0.attn.v_proj", .1, TD_BORN}, {"h.0.attn.o_proj", .2, TD_INHERITED},
            {"h.0.mlp.gate_proj", .2, TD_INHERITED}, {"h.0.mlp.down_proj", .2, TD_INHERITED},
            {"h.1.attn.q_proj", .2, TD_INHERITED}, {"h.1.attn.o_proj", .9, TD_BORN});
    /* What is not in the dump lets errors through; a layer that agrees does not. */
    ORIGINS(false, "1_query.npy", {"0_query.npy", 0, TD_ORIGIN_NONE}, {"1_query.npy", .1, TD_BORN},
            {"1_post_mlp.npy", .1, TD_INHERITED}, {"2_query.npy", 0, TD_ORIGIN_NONE},
            {"2_post_mlp.npy", 0, TD_ORIGIN_NONE}, {"3_query.npy", .1, TD_BORN});
}

static void no_order(void **state)
{
    (void)state;
    ORIGINS(false, "c", {"a", .1, TD_ORIGIN_NONE}, {"b", .2, TD_ORIGIN_NONE}, {"c", .3, TD_ORIGIN_NONE});
    ORIGINS(false, "c", {"a", .1, TD_ORIGIN_NONE}, {"b", .1, TD_ORIGIN_NONE}, {"c", .9, TD_BORN});
    ORIGINS(false, "b", {"a", 0, TD_ORIGIN_NONE}, {"b", .1, TD_BORN}, {"c", 0, TD_ORIGIN_NONE});
    ORIGINS(false, "none", {"a", 0, TD_ORIGIN_NONE});
}

static void lists(void **state)
{
    (void)state;
    static const struct {
        bool kept;
        enum td_order_evidence order;
        const char *names[8];
    } sides[] = {
        {true, TD_ORDER_FILE, {"a", "b", "c"}},
        {false, TD_ORDER_UNKNOWN, {"a", "b", "c"}},
        {false, TD_ORDER_FILE, {"a", "c", "b"}},
        {true, TD_ORDER_UNKNOWN, {"a", "b", "c", "d", "e", "f"}},
        {true, TD_ORDER_FILE, {"m0", "m1", "m2", "m3", "m4", "m5"}},
        {true, TD_ORDER_UNKNOWN, {"z.weight", "y.weight"}},
        {false, TD_ORDER_NAMES, {"layers.0.a", "layers.1.a"}},
        {false, TD_ORDER_STAGES, {"0_query.npy", "0_key.npy"}},
    };
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct line lines[8] = {{0}};
        struct table t;
        size_t n = 0;
        for (; n < 8 && sides[i].names[n]; n++)
            lines[n].name = sides[i].names[n];
        make_table(&t, lines, n, sides[i].kept);
        if (t.side.side.order != sides[i].order)
            fail_msg("side %zu: %d, not %d", i, (int)t.side.side.order, (int)sides[i].order);
        side_free(&t.side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain),   cmocka_unit_test(modules_with_their_inputs),
        cmocka_unit_test(a_decoder), cmocka_unit_test(no_order),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
