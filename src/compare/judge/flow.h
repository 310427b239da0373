/* flow.h: what feeds what. In a layer whose stages are known, an error is inherited when something that
 * feeds the stage had already diverged, and born when all of that was right. */
#ifndef TD_COMPARE_JUDGE_FLOW_H
#define TD_COMPARE_JUDGE_FLOW_H

#include "compare/name/item.h"

/* True when the value of `from` goes into the computation of `to`: directly, or, where stages are not known,
 * because it comes earlier. A stage of the user's own in a block of known ones feeds none of them. */
bool td_feeds(const struct td_item *from, const struct td_item *to);

/* Where in its layer an item stands: the graph of a decoder block, through which errors are followed. */
enum td_node {
    TD_NODE_OTHER, /* of no known place */
    TD_NODE_STREAM,
    TD_NODE_NORM_ATTN,
    TD_NODE_QKV,
    TD_NODE_Q,
    TD_NODE_K,
    TD_NODE_V,
    TD_NODE_Q_FINAL,
    TD_NODE_K_FINAL,
    TD_NODE_V_FINAL,
    TD_NODE_CONSTANT,
    TD_NODE_MIX, /* what attention does with q, k and v */
    TD_NODE_ATTN_O,
    TD_NODE_ATTN,
    TD_NODE_NORM_ATTN_POST,
    TD_NODE_MIDDLE, /* the residual stream behind attention */
    TD_NODE_NORM_MLP,
    TD_NODE_ROUTER,
    TD_NODE_GATE_UP,
    TD_NODE_GATE,
    TD_NODE_UP,
    TD_NODE_PRODUCT,
    TD_NODE_DOWN,
    TD_NODE_MLP,
    TD_NODE_NORM_MLP_POST,
    TD_NODE_OUT, /* the residual stream behind the layer, and the next layer's STREAM */
    TD_NODE_NORM_FINAL,
    TD_NODE_HEAD,
    TD_NODES
};

enum td_node td_node_of(const struct td_item *item);

/* The nodes that a node is computed from, one bit for each; all of them come before it in the enumeration. */
uint32_t td_node_feeders(enum td_node node);

/* The nodes that run beside a node, and itself: none of them sees the others. */
uint32_t td_node_branches(enum td_node node);

#endif
