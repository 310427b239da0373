/* doubted.h: layouts that every layer votes for, and that may be a mistake of every layer.
 *
 * A port that splits a fused q, k and v in the wrong way does so everywhere, and so does one that gives the
 * channels of its queries another order than its rotary embedding expects: the layers agree on the layout in
 * which B's tensors equal A's. What is computed from them does not agree then, in no layer. Such a layout
 * (td_alignment.instead) stands when something that is computed from the tensors agrees in one layer at
 * least, or when nothing of that kind is there to ask.
 */
#ifndef TD_COMPARE_LAYOUT_DOUBTED_H
#define TD_COMPARE_LAYOUT_DOUBTED_H

#include "compare/layout/fitting.h"

/* Pairs whose layout nothing bears out are measured in the other one, and diverge; the layout that made them
 * agree becomes `other`, which the diagnosis names. */
void td_fit_doubted(const struct td_fit *fit);

#endif
