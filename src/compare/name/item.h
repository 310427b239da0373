/* item.h: what a side brings to a comparison: its tensors as a person would count them.
 *
 * Shards of one tensor (rank0/…, tp_rank_03, mp_rank_03, …-00001-of-00008) are one item with several parts.
 * An item knows its layer and stage when its name tells, and its place in the order of execution.
 */
#ifndef TD_COMPARE_NAME_ITEM_H
#define TD_COMPARE_NAME_ITEM_H

#include "compare/name/families.h"
#include "tensor/tensor.h"

/* Of a mixture: all experts of a layer in one tensor, or one by one and joined to be compared with that. */
enum td_experts_stored { TD_EXPERTS_APART, TD_EXPERTS_STACKED, TD_EXPERTS_JOINED };

/* What tells the order of execution. Behind UNKNOWN the surer come later. */
enum td_order_evidence {
    TD_ORDER_UNKNOWN,
    TD_ORDER_NAMES,    /* layers, and what modules are to them */
    TD_ORDER_TIMES,    /* at which the files were written */
    TD_ORDER_FILE,     /* its list, in a format that keeps the order in which it was written */
    TD_ORDER_STAGES,   /* {layer}_{stage} with the known stages */
    TD_ORDER_SIDECAR,  /* a list of calls beside the tensors */
    TD_ORDER_RECORDED, /* tdbg saw it run */
};

struct td_item {
    const char *name;   /* without the rank when sharded */
    int64_t layer;      /* -1: the name has none */
    const char *stage;  /* "query_final": the name after the layer, all of it where there is none */
    const char *scheme; /* the name with {L} in the place of the layer; the name where it has none */
    int stage_rank;     /* place among the known stages of a layer, or the count of those */
    enum td_role role;  /* what it is to its model, when the name tells */
    bool cross;         /* of attention to another stack */
    size_t order;       /* place in the order of execution */
    size_t wave;        /* grows with the order; of items of one wave nothing tells which came first */
    bool parameter;     /* a weight or bias, by its name: stored, not computed */
    bool torn;          /* a shard of a set that is not whole: other ranks of it are missing */
    enum td_experts_stored experts;
    int part_count;
    const struct td_tensor *const *parts; /* in rank order */
};

/* One side. Borrows the tensors. */
struct td_side {
    struct td_arena arena;
    struct td_item *items;
    size_t count;
    enum td_order_evidence order;
    size_t tensors; /* before shards were joined */
    int64_t
        pipeline_ranks; /* that count their layers anew, whose items have the numbers of the whole; or 0 */
    int64_t second_rank_begins; /* the number that its layer 0 has then */
};

TD_CHECK tdbg_status td_side_init(struct td_side *side, const struct td_tensor *const *tensors, size_t count,
                                  struct tdbg_error *error);
void td_side_release(struct td_side *side);

struct td_shard {
    int64_t rank;
    int64_t of; /* how many there are, when the name tells ("-00001-of-00008"); else 0 */
};

/* The name without its rank marker, and the marker, or false. "rank3/0_query.pth" -> "0_query.pth", 3. `out`
 * holds at least strlen(name) + 1 bytes. */
bool td_shard_name(const char *name, char *out, struct td_shard *shard);

#endif
