/* evidence.h: what the list of a side says of the order of execution, apart from the names in it. */
#ifndef TD_COMPARE_NAME_EVIDENCE_H
#define TD_COMPARE_NAME_EVIDENCE_H

#include "compare/name/item.h"

/* rank[i] of every item, by what is returned: RECORDED, SIDECAR, FILE or TIMES; all 0 with UNKNOWN. Needs
 * layer, role and parameter of the items. False: no memory. */
TD_CHECK bool td_evidence_find(const struct td_side *side, uint64_t *rank, enum td_order_evidence *out);

/* It belongs to the backward pass: a gradient, or what the call of a backward function took or gave. */
bool td_names_backward(const char *name);

#endif
