/* test_diagnose_run.c: mistakes that show against other tensors of the run, planted and found.
 *
 * Another tensor in a tensor's place, a rotary embedding that differs, attention that is computed otherwise:
 * the diagnosis needs more of A than the tensor that diverged. The embedding and the attention are written
 * here as the papers have them. As in test_diagnose.c, the kind of the first finding counts, and whether it
 * is complete.
 */
#include "compare_support.h"

#include <math.h>
#include <stdio.h>

/* The floor of float32 some layers deep, and rounding well below it. */
static const double FLOOR = 3e-6, ROUNDING = 3e-7;

enum { TOKENS = 24 };

/* Diagnoses `name` of B against `name` of A. */
static struct td_diagnosis diagnose(struct bench *bench, const char *name, const struct td_shape *shape)
{
    struct td_layout plain = {.shape = *shape};
    bench_ready(bench);
    bench->matches[0] = (struct td_match){.a = item_named(&bench->a.made, name),
                                          .b = item_named(&bench->b.made, name),
                                          .strategy = TD_MATCH_EXACT};
    bench->match_count = 1;
    return bench_diagnose(bench, 0, &plain, NULL, FLOOR, TOKENS);
}

static void another_tensor_in_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *held; /* what B's 1_key really is */
        enum td_kind_of_mistake kind;
    } table[] = {{"1_value", TD_IS_SWAP}, {"0_key", TD_IS_STALE}, {"0_value", TD_IS_UNKNOWN}};
    static const char *const names[] = {"1_key", "0_key", "0_value", "1_value"};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct td_shape shape = SHAPE(3, TOKENS, 6, 16);
        for (size_t n = 0; n < 4; n++) {
            struct array x = array_random(&bench, n, shape);
            bench_add(&bench, 'a', names[n], x);
            if (strcmp(names[n], table[i].held) == 0) {
                x = array_copy(&bench, x);
                array_blur(&x, 5, ROUNDING);
                bench_add(&bench, 'b', "1_key", x);
            }
        }
        struct td_diagnosis d = diagnose(&bench, "1_key", &shape);
        if (!diagnosis_is(&d, table[i].kind, table[i].kind != TD_IS_UNKNOWN))
            fail_msg("%s: %s", table[i].held, diagnosis_text(&d));
        bench_release(&bench);
    }
}

/* Channels turned by an angle for each token and pair: half-split, or neighbours. */
static struct array turned(struct bench *bench, struct array x, double sense, double first, bool neighbours)
{
    struct array y = array_copy(bench, x);
    int64_t size = x.shape.size[2], half = size / 2;
    for (int64_t row = 0; row < x.count / size; row++)
        for (int64_t k = 0; k < half; k++) {
            double angle = sense * ((double)index_along(&x, row * size, 0) + first) *
                           pow(10000, -2.0 * (double)k / (double)size);
            int64_t u = row * size + (neighbours ? 2 * k : k), v = neighbours ? u + 1 : u + half;
            y.data[u] = (float)(cos(angle) * x.data[u] - sin(angle) * x.data[v]);
            y.data[v] = (float)(sin(angle) * x.data[u] + cos(angle) * x.data[v]);
        }
    return y;
}

static void rotary_embeddings(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double sense, first; /* of B; A has 1 and 0 */
        bool neighbours;
    } table[] = {{"left out", 0, 0, false},
                 {"the other way round", -1, 0, false},
                 {"of neighbours", 1, 0, true},
                 {"from token 1 on", 1, 1, false}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct td_shape shape = SHAPE(3, TOKENS, 6, 16);
        struct array x = array_random(&bench, i, shape);
        struct array b = turned(&bench, x, table[i].sense, table[i].first, table[i].neighbours);
        array_blur(&b, i, ROUNDING);
        bench_add(&bench, 'a', "0_query", x);
        bench_add(&bench, 'a', "0_query_final", turned(&bench, x, 1, 0, false));
        bench_add(&bench, 'b', "0_query_final", b);
        struct td_diagnosis d = diagnose(&bench, "0_query_final", &shape);
        if (!diagnosis_is(&d, TD_IS_ROPE, true))
            fail_msg("%s: %s", table[i].what, diagnosis_text(&d));
        bench_release(&bench);
    }
}

/* --- attention replayed ----------------------------------------------------------------------------------
 */

enum { HEADS = 4, KV_HEADS = 2, HEAD = 16 };

struct attention {
    double scale;
    int64_t window, ahead; /* a token sees that many up to itself (0: all), and so many later ones */
    bool tiled;            /* query head h has key head h % KV_HEADS instead of h / 2 */
};

/* [tokens, heads * size]: written out as the papers have it. */
static struct array attend(struct bench *bench, struct array q, struct array k, struct array v,
                           struct attention f)
{
    struct array out = array_random(bench, 0, SHAPE(2, TOKENS, HEADS * HEAD));
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t h = 0; h < HEADS; h++) {
            int64_t kh = f.tiled ? h % KV_HEADS : h / (HEADS / KV_HEADS);
            double weight[TOKENS], total = 0;
            for (int64_t s = 0; s < TOKENS; s++) {
                double dot = 0;
                for (int64_t i = 0; i < HEAD; i++)
                    dot +=
                        (double)q.data[(t * HEADS + h) * HEAD + i] * k.data[(s * KV_HEADS + kh) * HEAD + i];
                bool seen = s <= t + f.ahead && (f.window == 0 || t - s < f.window);
                weight[s] = seen ? exp(f.scale * dot) : 0;
                total += weight[s];
            }
            for (int64_t i = 0; i < HEAD; i++) {
                double sum = 0;
                for (int64_t s = 0; s < TOKENS; s++)
                    sum += weight[s] / total * v.data[(s * KV_HEADS + kh) * HEAD + i];
                out.data[(t * HEADS + h) * HEAD + i] = (float)sum;
            }
        }
    return out;
}

static void attention_is_replayed(void **state)
{
    (void)state;
    static const struct attention right = {0.25, 0, 0, false};
    static const struct {
        const char *what;
        struct attention b;
        enum td_kind_of_mistake kind;
    } table[] = {
        {"no mask", {0.25, 0, TOKENS, false}, TD_IS_MASK},
        {"one token ahead", {0.25, 0, 1, false}, TD_IS_MASK},
        {"a window", {0.25, 7, 0, false}, TD_IS_MASK},
        {"no scale", {1, 0, 0, false}, TD_IS_SCALE},
        {"the scale twice", {0.0625, 0, 0, false}, TD_IS_SCALE},
        {"heads tiled", {0.25, 0, 0, true}, TD_IS_PERMUTATION},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bench bench = {.heads = {.count = 1, .size = {HEAD}}};
        struct td_shape shape = SHAPE(2, TOKENS, HEADS * HEAD);
        struct array q = array_random(&bench, 1, SHAPE(3, TOKENS, HEADS, HEAD)),
                     k = array_random(&bench, 2, SHAPE(3, TOKENS, KV_HEADS, HEAD)),
                     v = array_random(&bench, 3, SHAPE(3, TOKENS, KV_HEADS, HEAD)),
                     b = attend(&bench, q, k, v, table[i].b);
        array_blur(&b, i, ROUNDING);
        bench_add(&bench, 'a', "0_query_final", q);
        bench_add(&bench, 'a', "0_key_final", k);
        bench_add(&bench, 'a', "0_value_final", v);
        bench_add(&bench, 'a', "0_post_attn", attend(&bench, q, k, v, right));
        bench_add(&bench, 'b', "0_post_attn", b);
        struct td_diagnosis d = diagnose(&bench, "0_post_attn", &shape);
        if (!diagnosis_is(&d, table[i].kind, true))
            fail_msg("%s: %s", table[i].what, diagnosis_text(&d));
        bench_release(&bench);
    }
}

/* Without q, k and v the shadow of a mask is all there is: tokens up to some place, or from one on. */
static void shadow_of_a_mask(void **state)
{
    (void)state;
    for (int from = 0; from < 2; from++) {
        struct bench bench = {.heads = {.count = 1, .size = {16}}};
        struct td_shape shape = SHAPE(2, TOKENS, 64);
        struct array a = array_random(&bench, 1, shape), b = array_copy(&bench, a),
                     noise = array_random(&bench, 2, shape);
        for (int64_t i = 0; i < a.count; i++)
            if (from ? i / 64 >= 3 : i / 64 < TOKENS - 1)
                b.data[i] += noise.data[i];
        bench_add(&bench, 'a', "0_post_attn", a);
        bench_add(&bench, 'b', "0_post_attn", b);
        struct td_diagnosis d = diagnose(&bench, "0_post_attn", &shape);
        if (!diagnosis_is(&d, TD_IS_MASK, false))
            fail_msg("%s: %s", from ? "from a token on" : "up to a token", diagnosis_text(&d));
        bench_release(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_tensor_in_its_place),
        cmocka_unit_test(rotary_embeddings),
        cmocka_unit_test(attention_is_replayed),
        cmocka_unit_test(shadow_of_a_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
