/* vanished.h: gradients that are zero but for rounding.
 *
 * A softmax does not change when all keys move alike, so the gradient of the key's bias is zero in theory.
 * What is left of it is the rounding of a sum that cancels, relative to its terms and not to itself: no two
 * runs agree on it.
 */
#ifndef TD_SESSION_VANISHED_H
#define TD_SESSION_VANISHED_H

#include "session/diff.h"

/* A bias gradient that diverged is within when both sides of it are below the noise of its module's weight
 * gradient, which is a sum over the same terms. */
TD_CHECK tdbg_status td_forgive_vanished(struct td_diff *diff, struct tdbg_error *error);

#endif
