/* pairs_layers.h: pairs that are the same in every layer, told once: "blk.{L}.attn_q" with "layers.{L}.q".
 *
 * A template is told only where reading it again gives exactly the pairs it stands for: all layers agree, by
 * one constant between the two numbers, and no tensor that the names would fit as well is in another pair, or
 * alone on both sides. Where that cannot be told, the pairs are told one by one.
 */
#ifndef TD_SESSION_PAIRS_LAYERS_H
#define TD_SESSION_PAIRS_LAYERS_H

#include "compare/match/match.h"

struct td_layer_group {
    size_t first;      /* of its matches */
    const char *a, *b; /* with {L}; b with {L+1} where it counts from elsewhere */
};

struct td_layer_groups {
    struct td_arena arena;
    const struct td_layer_group **of; /* of each match; NULL: it is told by itself */
};

TD_CHECK tdbg_status td_layer_groups_find(struct td_layer_groups *out, const struct td_matches *matches,
                                          struct tdbg_error *error);
void td_layer_groups_release(struct td_layer_groups *groups);

#endif
