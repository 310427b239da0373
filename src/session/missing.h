/* missing.h: pairs of which one side is longer, and agrees with the other as far as that reaches.
 *
 * What has no partner is harmless when it is padding, or when the other side holds the part of one
 * tensor-parallel rank. Else tokens, heads or channels are missing, and the two do not agree.
 */
#ifndef TD_SESSION_MISSING_H
#define TD_SESSION_MISSING_H

#include "session/diff.h"
#include "session/judge.h"

/* Sets `cut` of every pair that was cut; one that lacks something diverges. `tokens` is the length of A's
 * sequence. */
TD_CHECK tdbg_status td_check_missing(struct td_diff *diff, const struct td_judge *judge, int64_t tokens,
                                      struct td_pool *pool, struct td_arena *scratch,
                                      struct tdbg_error *error);

#endif
