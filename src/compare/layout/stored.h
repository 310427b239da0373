/* stored.h: pairs that differ only because B stores them in another order.
 *
 * The rule (docs/verdict.md): what every layer needs, or after which what follows agrees, is how B stores
 * things; what a single layer needs is a mistake. The vote of the layers over the orders that the shapes
 * allow is align.h's. Here are the two cases it cannot see: a pair whose consumers agree although it differs
 * itself, and heads that are in the same other order in every layer.
 */
#ifndef TD_COMPARE_LAYOUT_STORED_H
#define TD_COMPARE_LAYOUT_STORED_H

#include "compare/layout/fitting.h"

/* Such pairs get another layout, `repaired`, and are measured anew. */
TD_CHECK tdbg_status td_fit_stored(const struct td_fit *fit, struct tdbg_error *error);

#endif
