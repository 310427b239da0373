/* crowds.h: how much is read for prints, and how many prints are compared, whatever a file holds.
 *
 * Every tensor of a width may be the counterpart of every other of that width, so that the work grows with
 * the square of their number. Models stay far below these bounds. What is beyond them has no prints, and its
 * names pair it.
 */
#ifndef TD_COMPARE_MATCH_CROWDS_H
#define TD_COMPARE_MATCH_CROWDS_H

#include "compare/match/scheme.h"

/* Keeps the items at the head of the list whose prints can be afforded; returns how many those are. */
size_t td_crowds_afford(const struct td_schemes *s, size_t *items, size_t count);

/* Takes the prints of the widths that too many tensors have from both sides, the largest crowds first. */
TD_CHECK tdbg_status td_crowds_silence(struct td_schemes s[2], struct td_arena *arena,
                                       struct tdbg_error *error);

#endif
