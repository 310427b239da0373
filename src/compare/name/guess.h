/* guess.h: what an activation is, from the words of a name that no family has: "layer00_ffn_g",
 * "L3.attn.k_rot".
 *
 * Words are a hint and no more: pairing weighs them against values.
 */
#ifndef TD_COMPARE_NAME_GUESS_H
#define TD_COMPARE_NAME_GUESS_H

#include "compare/name/families.h"

/* text[0, length) is the stage, or the name where there is no layer. *other is a second meaning, or none. */
enum td_role td_role_guess(const char *text, size_t length, bool layered, enum td_role *other);

#endif
