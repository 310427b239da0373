/* order.h: the order of execution of one side, read from names and from the list they came in. */
#ifndef TD_COMPARE_NAME_ORDER_H
#define TD_COMPARE_NAME_ORDER_H

#include "compare/name/item.h"

/* Sets layer, stage, stage_rank, parameter, role and order of every item; false: no memory. */
bool td_order_find(struct td_side *side);

#endif
