/* reorder.h: B has the slabs of an axis (heads, mostly) in another order than A.
 *
 * The order is found from the values: a few elements of every slab are enough to recognise it. Whether it is
 * how B stores things or a mistake is not decided here (layout/stored.h).
 */
#ifndef TD_COMPARE_LAYOUT_REORDER_H
#define TD_COMPARE_LAYOUT_REORDER_H

#include "compare/layout/align.h"

/* `layout` with one more step for B, from the arena, or NULL when no order makes the two fit. Heads of the
 * likely sizes inside an axis come first, as the simpler story, then the axes as they are. */
TD_CHECK tdbg_status td_reorder_find(const struct td_layout **out, const struct td_item *a,
                                     const struct td_item *b, const struct td_layout *layout,
                                     const struct td_head_sizes *heads, struct td_arena *arena,
                                     struct tdbg_error *error);

#endif
