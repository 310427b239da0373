/* regroup.h: layouts of one fused q, k and v against another, of which one lies in blocks and the other in
 * groups.
 *
 *     blocks   q0 q1 q2 q3 | k0 k1 | v0 v1
 *     groups   q0 q1 k0 v0 | q2 q3 k1 v1       each key-value head with the queries that use it
 */
#ifndef TD_COMPARE_LAYOUT_REGROUP_H
#define TD_COMPARE_LAYOUT_REGROUP_H

#include "compare/layout/candidates.h"

/* At the end of the list: in both directions, for every size that a head may have. */
TD_CHECK tdbg_status td_candidates_add_regrouped(struct td_candidates *c, const struct td_head_sizes *heads,
                                                 struct tdbg_error *error);

#endif
