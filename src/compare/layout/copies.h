/* copies.h: shards that were taken for copies of one tensor, of which only the first was compared.
 *
 * A rank whose copy is wrong computes the wrong thing, so every copy is held against the first. One that
 * differs is compared in its place. Shards that have nothing to do with the first are no copies: then the
 * other side holds the part of one rank only, and that is said.
 */
#ifndef TD_COMPARE_LAYOUT_COPIES_H
#define TD_COMPARE_LAYOUT_COPIES_H

#include "compare/layout/fitting.h"

/* Of pairs that agree: one whose copies differ beyond what is allowed gets the layout of the first that does,
 * and its measurement. */
TD_CHECK tdbg_status td_fit_copies(const struct td_fit *fit, struct tdbg_error *error);

#endif
