/* layout_text.h: a layout as the user writes it: "b h t d -> t h d".
 *
 * The left side names B's axes, the right side says how they make A's. A name left out on the right must be
 * an axis of size 1. Parentheses merge: "b h t d -> t (h d)" for A [tokens, width], "t (h d) -> h t d"
 * splits, the sizes taken from A.
 */
#ifndef TD_COMPARE_LAYOUT_LAYOUT_TEXT_H
#define TD_COMPARE_LAYOUT_LAYOUT_TEXT_H

#include "compare/layout/layout.h"

/* How many axes the left side has, -1 when the text is no layout. */
int td_layout_text_axes(const char *text);

TD_CHECK tdbg_status td_layout_parse(struct td_layout *out, const char *text, const struct td_shape *a,
                                     const struct td_shape *b, struct tdbg_error *error);

#endif
