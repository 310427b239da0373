/* test_evidence.c: the parts of pairing by evidence that are logic alone: the assignment against all orders
 * there are, what words of a name mean, and layers that names alone tell. */
#include "match_support.h"

#include "compare/match/assign.h"
#include "compare/name/guess.h"
#include "compare/name/template.h"

#include <math.h>

/* --- the assignment --------------------------------------------------------------------------------------
 */

enum { MOST = 6 };

/* The most points that rows [row, rows) can have when `taken` columns are gone; a row may stay alone. */
static double best_of(const double *score, int rows, int columns, int row, unsigned taken, double least)
{
    if (row == rows)
        return 0;
    double best = best_of(score, rows, columns, row + 1, taken, least);
    for (int j = 0; j < columns; j++)
        if (!(taken >> j & 1) && score[row * columns + j] >= least)
            best = fmax(best, score[row * columns + j] +
                                  best_of(score, rows, columns, row + 1, taken | 1U << j, least));
    return best;
}

static void assigned_points_are_the_most(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 400; round++) {
        double score[MOST * MOST];
        size_t partner[MOST];
        int rows = 1 + round % MOST, columns = 1 + round / MOST % MOST;
        for (int i = 0; i < rows * columns; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            score[i] = seed >> 60 == 0 ? -INFINITY : (double)(seed >> 40) / (1 << 24) * 10 - 2;
        }
        assert_true(td_assign(score, (size_t)rows, (size_t)columns, 0.9, partner));
        double sum = 0;
        unsigned taken = 0;
        for (int i = 0; i < rows; i++) {
            if (partner[i] == TD_ASSIGNED_TO_NOBODY)
                continue;
            assert_false(taken >> partner[i] & 1);
            taken |= 1U << partner[i];
            assert_true(score[(size_t)(i * columns) + partner[i]] >= 0.9);
            sum += score[(size_t)(i * columns) + partner[i]];
        }
        assert_true(fabs(sum - best_of(score, rows, columns, 0, 0, 0.9)) < 1e-9);
    }
}

/* --- words ------------------------------------------------------------------------------------------------
 */

static void words_tell_roles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool layered;
        enum td_role role;
    } rows[] = {
        {"ffn_g", true, TD_ROLE_MLP_GATE},
        {"mlp.up_lin", true, TD_ROLE_MLP_UP},
        {"attn.k_rot", true, TD_ROLE_ATTN_K_ROPE},
        {"xq", true, TD_ROLE_ATTN_Q},
        {"qkv_out", true, TD_ROLE_ATTN_QKV},
        {"attn_proj", true, TD_ROLE_ATTN_O},
        {"pre_attn_ln", true, TD_ROLE_NORM_ATTN},
        {"ffn_norm_in", true, TD_ROLE_NORM_MLP},
        {"resid1", true, TD_ROLE_STREAM_MID},
        {"h2", true, TD_ROLE_LAYER},
        {"qk_scores", true, TD_ROLE_SCORES},
        {"softmax", true, TD_ROLE_PROBS},
        {"kiwi", true, TD_ROLE_NONE},
        {"tok_emb", false, TD_ROLE_EMBED},
        {"final_ln", false, TD_ROLE_NORM_FINAL},
        {"emb_norm", false, TD_ROLE_NONE},
        {"y_logits", false, TD_ROLE_HEAD},
        {"pos_emb", false, TD_ROLE_EMBED_POSITION},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum td_role other, role = td_role_guess(rows[i].name, strlen(rows[i].name), rows[i].layered, &other);
        if (role != rows[i].role)
            fail_msg("%s is %d, not %d", rows[i].name, (int)role, (int)rows[i].role);
    }
}

/* --- layers ------------------------------------------------------------------------------------------------
 */

static const struct td_item *find(const struct td_side *side, const char *name)
{
    for (size_t i = 0; i < side->count; i++)
        if (strcmp(side->items[i].name, name) == 0)
            return &side->items[i];
    fail_msg("no %s", name);
    return NULL;
}

static void names_alone_tell_layers(void **state)
{
    (void)state;
    const struct {
        const char *const *names;
        const char *asked, *scheme, *stage;
        int64_t layer;
    } rows[] = {
        {NAMES("Qcur-0", "Qcur-1", "Qcur-2", "Kcur-0", "Kcur-1", "Kcur-2"), "Kcur-2", "Kcur-{L}", "Kcur", 2},
        {NAMES("L0.w1.x", "L1.w1.x", "L2.w1.x", "L0.w2.x", "L1.w2.x", "L2.w2.x"), "L1.w2.x", "L{L}.w2.x",
         "L.w2.x", 1},
        {NAMES("dbg/00/q.npy", "dbg/01/q.npy", "dbg/00/k.npy", "dbg/01/k.npy"), "dbg/01/k.npy", "dbg/{L}/k",
         "dbg/k", 1},
        {NAMES("model.layers.0.q", "model.layers.1.q", "rope.output.0", "rope.output.1"), "rope.output.1",
         "rope.output.1", "rope.output.1", -1},
        {NAMES("a1", "b7", "c12", "d99"), "c12", "c12", "c12", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct test_side s;
        side_of_names(&s, rows[i].names);
        const struct td_item *item = find(&s.side, rows[i].asked);
        assert_int_equal(item->layer, rows[i].layer);
        assert_string_equal(item->scheme, rows[i].scheme);
        assert_string_equal(item->stage, rows[i].stage);
        side_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assigned_points_are_the_most),
        cmocka_unit_test(words_tell_roles),
        cmocka_unit_test(names_alone_tell_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
