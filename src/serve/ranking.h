/* ranking.h: the order in which the pairs of a comparison are shown, kept in its state as "order".
 *
 *     {"order": [3, 0, 1, 2], …}      indices of pairs; those it does not name come after, in their order
 *
 * The state is the page's own (docs/api.md): whatever else is in it stays. An order that makes no sense is
 * none.
 */
#ifndef TD_SERVE_RANKING_H
#define TD_SERVE_RANKING_H

#include "base/buffer.h"
#include "base/status.h"

struct td_ranking {
    size_t *pairs; /* by position: the index of a pair */
    size_t count;
};

/* Of `count` pairs, as the state says. */
TD_CHECK tdbg_status td_ranking_init(struct td_ranking *out, const char *state, size_t count,
                                     struct tdbg_error *error);
void td_ranking_release(struct td_ranking *ranking);

/* Takes the pair at one position out and puts it in at another; both are below count. */
void td_ranking_move(struct td_ranking *ranking, size_t from, size_t to);

/* The state with this order in it, appended to `out`. */
TD_CHECK tdbg_status td_ranking_store(const struct td_ranking *ranking, const char *state,
                                      struct td_buffer *out, struct tdbg_error *error);

#endif
