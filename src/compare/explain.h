/* explain.h: the divergences that are worth a diagnosis, each given one.
 *
 * The first that diverged is the one that matters; a few more that were born elsewhere help. Those that were
 * inherited have no cause of their own.
 */
#ifndef TD_COMPARE_EXPLAIN_H
#define TD_COMPARE_EXPLAIN_H

#include "compare/compare.h"
#include "compare/layout/fitting.h"

/* Fills in `profile` and `diagnosis` of those pairs. `fittings` has one for each. */
TD_CHECK tdbg_status td_explain(struct td_comparison *comparison, const struct td_fitting *fittings,
                                const struct td_side *a, const struct td_work *work,
                                struct tdbg_error *error);

#endif
