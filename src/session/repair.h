/* repair.h: pairs that diverge only because B stores them in another order.
 *
 * The rule (docs/verdict.md): what every layer needs, or after which what follows agrees, is how B stores
 * things; what a single layer needs is a mistake. The vote of the layers over the orders that the shapes
 * allow is align.h's. Here are the two cases it cannot see: a pair whose consumers agree although it differs
 * itself, and heads that are in the same other order in every layer.
 */
#ifndef TD_SESSION_REPAIR_H
#define TD_SESSION_REPAIR_H

#include "session/diff.h"
#include "session/judge.h"

/* Repaired pairs get another layout, `repaired`, and are measured anew. `scratch` has an arena for each pair.
 */
TD_CHECK tdbg_status td_repair_stored(struct td_diff *diff, const struct td_judge *judge,
                                      const struct td_head_sizes *heads, struct td_pool *pool,
                                      struct td_arena *scratch, struct tdbg_error *error);

#endif
