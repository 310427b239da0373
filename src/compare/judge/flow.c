/* flow.c: see flow.h. Two graphs. What one item alone tells of another follows the table of stages, which is
 * the decoder block that the known stages describe:
 *
 *     post_ln_pre_attn -> query -> query_final -\
 *                      -> key   -> key_final   ---> post_attn -> post_attn_pre_resid -> pre_mlp -> post_mlp
 *                      -> value -> value_final -/                                          (next layer) <-/
 *                         scaling, sliding ----/
 */
#include "compare/judge/flow.h"

#include "compare/name/evidence.h"

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
    return strchr("pqkvs", *stage) && /* few others begin with one of these */
           (feeders(stage) || strcmp(stage, OPENING) == 0);
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
        return from->wave < to->wave;
    if (!is_known(from->stage) && !is_known(to->stage))
        return from->wave < to->wave && !side_by_side(from, to);
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

/* --- the nodes of a layer ------------------------------------------------------------------------------- */

#define NODE(name) (UINT32_C(1) << TD_NODE_##name)

/* Of every node what it is computed from. One that may be missing stands in the way of what feeds it: a dump
 * has q, k and v, or all of them in one tensor. */
static const uint32_t feeding[TD_NODES] = {
    [TD_NODE_NORM_ATTN] = NODE(STREAM),
    [TD_NODE_QKV] = NODE(NORM_ATTN),
    [TD_NODE_Q] = NODE(QKV),
    [TD_NODE_K] = NODE(QKV),
    [TD_NODE_V] = NODE(QKV),
    [TD_NODE_Q_FINAL] = NODE(Q),
    [TD_NODE_K_FINAL] = NODE(K),
    [TD_NODE_V_FINAL] = NODE(V),
    [TD_NODE_MIX] = NODE(Q_FINAL) | NODE(K_FINAL) | NODE(V_FINAL) | NODE(CONSTANT),
    [TD_NODE_ATTN_O] = NODE(MIX),
    [TD_NODE_ATTN] = NODE(ATTN_O),
    [TD_NODE_NORM_ATTN_POST] = NODE(ATTN),
    [TD_NODE_MIDDLE] = NODE(STREAM) | NODE(NORM_ATTN_POST),
    [TD_NODE_NORM_MLP] = NODE(MIDDLE),
    [TD_NODE_ROUTER] = NODE(NORM_MLP),
    [TD_NODE_GATE_UP] = NODE(NORM_MLP),
    [TD_NODE_GATE] = NODE(GATE_UP),
    [TD_NODE_UP] = NODE(GATE_UP),
    [TD_NODE_PRODUCT] = NODE(GATE) | NODE(UP),
    [TD_NODE_DOWN] = NODE(PRODUCT),
    [TD_NODE_MLP] = NODE(DOWN) | NODE(ROUTER),
    [TD_NODE_NORM_MLP_POST] = NODE(MLP),
    [TD_NODE_OUT] = NODE(MIDDLE) | NODE(NORM_MLP_POST),
    [TD_NODE_NORM_FINAL] = NODE(OUT),
    [TD_NODE_HEAD] = NODE(NORM_FINAL),
};

uint32_t td_node_feeders(enum td_node node)
{
    return feeding[node];
}

uint32_t td_node_branches(enum td_node node)
{
    static const uint32_t sets[] = {
        NODE(Q) | NODE(K) | NODE(V) | NODE(QKV) | NODE(Q_FINAL) | NODE(K_FINAL) | NODE(V_FINAL),
        NODE(GATE) | NODE(UP) | NODE(GATE_UP) | NODE(ROUTER),
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (sets[i] >> node & 1)
            return sets[i];
    return UINT32_C(1) << node;
}

static enum td_node node_of_stage(const struct td_item *item)
{
    static const struct {
        const char *stage;
        enum td_node node;
    } stages[] = {
        {"query_final", TD_NODE_Q_FINAL}, {"key_final", TD_NODE_K_FINAL}, {"value_final", TD_NODE_V_FINAL},
        {"post_attn", TD_NODE_MIX},       {"scaling", TD_NODE_CONSTANT},  {"sliding", TD_NODE_CONSTANT},
    };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(stages[i].stage, item->stage) == 0)
            return stages[i].node;
    return TD_NODE_OTHER;
}

/* What goes into a module of that role. */
static enum td_node node_before(enum td_role role)
{
    switch (role) {
    case TD_ROLE_NORM_ATTN:
        return TD_NODE_STREAM;
    case TD_ROLE_ATTN:
    case TD_ROLE_ATTN_Q:
    case TD_ROLE_ATTN_K:
    case TD_ROLE_ATTN_V:
    case TD_ROLE_ATTN_QKV:
        return TD_NODE_NORM_ATTN;
    case TD_ROLE_ATTN_O:
        return TD_NODE_MIX;
    case TD_ROLE_NORM_MLP:
        return TD_NODE_MIDDLE;
    case TD_ROLE_MLP:
    case TD_ROLE_ROUTER:
    case TD_ROLE_MLP_GATE:
    case TD_ROLE_MLP_UP:
    case TD_ROLE_MLP_GATE_UP:
        return TD_NODE_NORM_MLP;
    case TD_ROLE_MLP_DOWN:
        return TD_NODE_PRODUCT;
    default:
        return TD_NODE_OTHER;
    }
}

static enum td_node node_of_role(enum td_role role)
{
    static const enum td_node nodes[TD_ROLES] = {
        [TD_ROLE_NORM_ATTN] = TD_NODE_NORM_ATTN,
        [TD_ROLE_ATTN_Q] = TD_NODE_Q,
        [TD_ROLE_ATTN_K] = TD_NODE_K,
        [TD_ROLE_ATTN_V] = TD_NODE_V,
        [TD_ROLE_ATTN_QKV] = TD_NODE_QKV,
        [TD_ROLE_ATTN_Q_NORM] = TD_NODE_Q_FINAL,
        [TD_ROLE_ATTN_K_NORM] = TD_NODE_K_FINAL,
        [TD_ROLE_ATTN_Q_ROPE] = TD_NODE_Q_FINAL,
        [TD_ROLE_ATTN_K_ROPE] = TD_NODE_K_FINAL,
        [TD_ROLE_SCORES] = TD_NODE_MIX,
        [TD_ROLE_PROBS] = TD_NODE_MIX,
        [TD_ROLE_CONTEXT] = TD_NODE_MIX,
        [TD_ROLE_STREAM] = TD_NODE_STREAM,
        [TD_ROLE_STREAM_MID] = TD_NODE_MIDDLE,
        [TD_ROLE_MLP_ACT] = TD_NODE_PRODUCT,
        [TD_ROLE_MLP_PRODUCT] = TD_NODE_PRODUCT,
        [TD_ROLE_LAYER] = TD_NODE_OUT,
        [TD_ROLE_ATTN_O] = TD_NODE_ATTN_O,
        [TD_ROLE_ATTN] = TD_NODE_ATTN,
        [TD_ROLE_NORM_ATTN_POST] = TD_NODE_NORM_ATTN_POST,
        [TD_ROLE_NORM_MLP] = TD_NODE_NORM_MLP,
        [TD_ROLE_ROUTER] = TD_NODE_ROUTER,
        [TD_ROLE_MLP_GATE] = TD_NODE_GATE,
        [TD_ROLE_MLP_UP] = TD_NODE_UP,
        [TD_ROLE_MLP_GATE_UP] = TD_NODE_GATE_UP,
        [TD_ROLE_MLP_DOWN] = TD_NODE_DOWN,
        [TD_ROLE_MLP] = TD_NODE_MLP,
        [TD_ROLE_NORM_MLP_POST] = TD_NODE_NORM_MLP_POST,
        [TD_ROLE_NORM_FINAL] = TD_NODE_NORM_FINAL,
        [TD_ROLE_HEAD] = TD_NODE_HEAD,
    };
    return nodes[role];
}

/* A post-norm's place, and a second attention's, are not those of the graph. */
enum td_node td_node_of(const struct td_item *item)
{
    if (item->layer < 0)
        return item->role == TD_ROLE_NORM_FINAL || item->role == TD_ROLE_HEAD ? node_of_role(item->role)
                                                                              : TD_NODE_OTHER;
    enum td_node stage = node_of_stage(item);
    if (stage != TD_NODE_OTHER || item->cross)
        return stage;
    struct td_identity id = td_role_of(item->name, item->layer, item->stage);
    if (id.gradient || td_names_backward(item->name))
        return TD_NODE_OTHER;
    if (id.role == TD_ROLE_NONE) {
        if (strcmp(item->stage, "input") == 0)
            return TD_NODE_STREAM;
        if (strcmp(item->stage, "output") == 0)
            return TD_NODE_OUT;
        enum td_role module = td_role_around(item->stage);
        return td_names_norm(item->stage) ? TD_NODE_OTHER
               : module == TD_ROLE_ATTN   ? TD_NODE_MIX
               : module == TD_ROLE_MLP    ? TD_NODE_PRODUCT
                                          : TD_NODE_OTHER;
    }
    return id.kind == TD_PART_INPUT ? node_before(id.role) : node_of_role(id.role);
}
