/* flow.h: what feeds what. In a layer whose stages are known, an error is inherited when something that
 * feeds the stage had already diverged, and born when all of that was right. */
#ifndef TD_COMPARE_JUDGE_FLOW_H
#define TD_COMPARE_JUDGE_FLOW_H

#include "compare/name/item.h"

/* True when the value of `from` goes into the computation of `to`: directly, or, where stages are not known,
 * because it comes earlier. A stage of the user's own in a block of known ones feeds none of them. */
bool td_feeds(const struct td_item *from, const struct td_item *to);

#endif
