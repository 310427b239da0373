/* origins.h: which divergences were born where they show, and which came in from elsewhere. */
#ifndef TD_COMPARE_JUDGE_ORIGINS_H
#define TD_COMPARE_JUDGE_ORIGINS_H

#include "compare/pair.h"

/* Sets `origin` of every divergence; NONE where nothing tells it. The first divergence in the order of
 * execution; where that is unknown the largest, as a multiple of its floor. NULL: there is none. */
struct td_pair *td_origins_find(struct td_pair *pairs, size_t count, enum td_order_evidence order);

#endif
