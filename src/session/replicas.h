/* replicas.h: shards that were taken for copies of one tensor, of which only the first was compared.
 *
 * A rank whose copy is wrong computes the wrong thing, so every copy is held against the first. One that
 * differs is judged in its place. Shards that have nothing to do with the first are no copies: then the other
 * side holds the part of one rank only, and that is said.
 */
#ifndef TD_SESSION_REPLICAS_H
#define TD_SESSION_REPLICAS_H

#include "session/diff.h"
#include "session/judge.h"

/* A pair whose copies differ beyond what is allowed gets the layout, metrics and ruling of the first that
 * does. */
TD_CHECK tdbg_status td_check_replicas(struct td_diff *diff, const struct td_judge *judge,
                                       struct td_pool *pool, struct td_arena *scratch,
                                       struct tdbg_error *error);

#endif
