/* flow.c: see flow.h. The table is the decoder block that the known stages describe:
 *
 *     post_ln_pre_attn -> query -> query_final -\
 *                      -> key   -> key_final   ---> post_attn -> post_attn_pre_resid -> pre_mlp -> post_mlp
 *                      -> value -> value_final -/                                          (next layer) <-/
 *                         scaling, sliding ----/
 */
#include "compare/judge/flow.h"

#include <string.h>

static const char OPENING[] = "post_ln_pre_attn";

static const struct {
    const char *stage, *from[5];
} block[] = {
    {"query", {"post_ln_pre_attn"}},
    {"query_final", {"query"}},
    {"key", {"post_ln_pre_attn"}},
    {"key_final", {"key"}},
    {"value", {"post_ln_pre_attn"}},
    {"value_final", {"value"}},
    {"post_attn", {"query_final", "key_final", "value_final", "scaling", "sliding"}},
    {"scaling", {NULL}},
    {"sliding", {NULL}},
    {"post_attn_pre_resid", {"post_attn"}},
    {"pre_mlp", {"post_attn_pre_resid"}},
    {"post_mlp", {"pre_mlp"}},
};

/* NULL: the stage is not in the table. */
static const char *const *feeders(const char *stage)
{
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        if (strcmp(block[i].stage, stage) == 0)
            return block[i].from;
    return NULL;
}

static bool is_known(const char *stage)
{
    return feeders(stage) || strcmp(stage, OPENING) == 0;
}

/* Branches of one layer that run side by side: none of them sees the other. */
static bool side_by_side(const struct td_item *x, const struct td_item *y)
{
    static const int branch[TD_ROLES] = {
        [TD_ROLE_ATTN_Q] = 1,   [TD_ROLE_ATTN_K] = 1, [TD_ROLE_ATTN_V] = 1,      [TD_ROLE_ATTN_QKV] = 1,
        [TD_ROLE_MLP_GATE] = 2, [TD_ROLE_MLP_UP] = 2, [TD_ROLE_MLP_GATE_UP] = 2,
    };
    return x->layer == y->layer && x->cross == y->cross && x->role != y->role && branch[x->role] &&
           branch[x->role] == branch[y->role];
}

bool td_feeds(const struct td_item *from, const struct td_item *to)
{
    if (from->parameter || to->parameter)
        return false;
    if (from->layer < 0 || to->layer < 0)
        return from->order < to->order;
    if (!is_known(from->stage) && !is_known(to->stage))
        return from->order < to->order && !side_by_side(from, to);
    if (!is_known(from->stage) || !is_known(to->stage))
        return false; /* a stage of the user's own: nobody knows where in the block it stands */
    if (strcmp(to->stage, OPENING) == 0) /* the block's input: everything the layer before left behind */
        return from->layer == to->layer - 1 && strcmp(from->stage, "scaling") != 0 &&
               strcmp(from->stage, "sliding") != 0;
    const char *const *list = feeders(to->stage);
    bool sums_up = strcmp(to->stage, "pre_mlp") == 0; /* the residual stream comes in beside the attention */
    if (sums_up && from->layer == to->layer - 1)
        return strcmp(from->stage, "post_mlp") == 0;
    if (from->layer != to->layer)
        return false;
    for (int i = 0; i < 5 && list[i]; i++)
        if (strcmp(list[i], from->stage) == 0)
            return true;
    return false;
}
