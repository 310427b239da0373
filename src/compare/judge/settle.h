/* settle.h: one order of execution for both sides, A's or, where that is not known, B's. */
#ifndef TD_COMPARE_JUDGE_SETTLE_H
#define TD_COMPARE_JUDGE_SETTLE_H

#include "compare/match/match.h"

/* Where A's order is not known, or rests on times and B's on more, the matches are put into it, and A's items
 * get the places and waves of their partners. Before anything is made of the matches. */
TD_CHECK tdbg_status td_order_settle(struct td_matches *matches, struct td_side *a, const struct td_side *b,
                                     struct tdbg_error *error);

#endif
