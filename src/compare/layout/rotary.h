/* rotary.h: layouts in which the channels of each head stand in another order.
 *
 * A rotary embedding turns pairs of channels. Some engines keep the two of a pair side by side (interleaved),
 * others in the two halves of the head, and permute the weights of queries and keys to match. Some models
 * turn the first channels of a head only.
 */
#ifndef TD_COMPARE_LAYOUT_ROTARY_H
#define TD_COMPARE_LAYOUT_ROTARY_H

#include "compare/layout/candidates.h"

/* At the end of the list: the channels of each head in half-split order on one side and interleaved on the
 * other, for the first `sizes` sizes of a head; `partly` also where only the first channels of a head are
 * rotated. `cut`: only for candidates cut so. */
TD_CHECK tdbg_status td_candidates_add_rotary(struct td_candidates *c, int64_t cut, int sizes, bool partly,
                                              const struct td_head_sizes *heads, struct tdbg_error *error);

#endif
