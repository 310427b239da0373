/* fusion.h: one fused tensor on one side (qkv, gate_up), its parts on the other, under whatever names.
 *
 * The even grams of parts add up to that of the whole, in whatever order its channels stand. Where a mistake
 * spoils every layer, names tell: q, k, v and qkv, and widths that add up.
 */
#ifndef TD_COMPARE_MATCH_FUSION_H
#define TD_COMPARE_MATCH_FUSION_H

#include "compare/match/kinship.h"

/* Pairs what adds up among the templates that have no partner yet. Partners of all are set. */
TD_CHECK tdbg_status td_match_fusions(struct td_matching *m, const struct td_kin *kin,
                                      struct tdbg_error *error);

#endif
