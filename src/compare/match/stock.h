/* stock.h: the stored tensors of a side as templates over layers, and how much speaks for two of them.
 *
 *     blk.{L}.attn_q.weight        one matrix in every layer
 *     token_embd.weight            one tensor
 *
 * Points come from values at a few positions in up to four layers (sample.h), from what the names mean and
 * from the words they have in common. A plain role beats a value: where B's key holds A's query, that is the
 * mistake to be found, and no other name of the same tensor.
 */
#ifndef TD_COMPARE_MATCH_STOCK_H
#define TD_COMPARE_MATCH_STOCK_H

#include "compare/match/sample.h"
#include "compare/match/strategy.h"
#include "compare/match/words.h"

#define TD_NO_STOCK SIZE_MAX

struct td_stock {
    const char *name;    /* the template */
    const size_t *items; /* indices of items of the side, by layer */
    size_t count;
    int64_t elements; /* of the first */
    bool layered;
    bool named; /* the name says that it is stored */
    const struct td_identity *id;
    struct td_word_bag words;
    uint64_t module; /* hash of the name without its last part */
    size_t partner;  /* on the other side; TD_NO_STOCK: none */
    bool fused;      /* or with a part of another, or as a whole with its parts */
};

struct td_seen; /* samples of one item */

struct td_stocks {
    struct td_matching *m;
    struct td_stock *list[2];
    size_t count[2];
    struct td_seen **seen[2]; /* by item */
};

struct td_bond {
    double score;
    double equal;       /* points for values that agree; 0: they do not */
    double correlation; /* over the layers that were looked at, in the reading that fits best */
    bool same_role;
};

/* What is free on both sides and stored. Count 0 on a side where there is nothing to do. */
TD_CHECK tdbg_status td_stocks_init(struct td_stocks *out, struct td_matching *m, struct tdbg_error *error);

/* The item of the layer, or SIZE_MAX. */
size_t td_stock_at(const struct td_matching *m, enum td_which which, const struct td_stock *s, int64_t layer);

/* B's item that stands where A's item number `i` of the template does, or SIZE_MAX. */
size_t td_stock_mate(const struct td_matching *m, const struct td_stock *a, size_t i,
                     const struct td_stock *b);

struct td_bond td_bond_of(struct td_stocks *s, const struct td_stock *a, const struct td_stock *b);

/* The layers that are looked at, as numbers of items; their count. */
enum { TD_STOCK_LOOKS = 4 };
int td_stock_looks(const struct td_stock *s, size_t looks[TD_STOCK_LOOKS]);

#endif
