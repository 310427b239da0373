/* vanished.h: gradients that are zero but for rounding.
 *
 * A softmax does not change when all keys move alike, so the gradient of the key's bias is zero in theory.
 * What is left of it is the rounding of a sum that cancels, relative to its terms and not to itself: no two
 * runs agree on it. The gradient of its module's weight is a sum over the same terms, and tells their size.
 */
#ifndef TD_COMPARE_JUDGE_VANISHED_H
#define TD_COMPARE_JUDGE_VANISHED_H

#include "compare/judge/judge.h"

/* The gradients of weights on which both sides agree, by their modules. */
struct td_weights {
    struct td_weight *list;
    size_t count;
};

/* The gradient of a bias, under a rule that forgives noise. */
bool td_may_vanish(const struct td_policy *policy, const struct td_match *match);

/* Looks at the judgements of those that may not vanish. A weight never does. */
TD_CHECK tdbg_status td_weights_find(struct td_weights *out, const struct td_policy *policy,
                                     const struct td_matches *matches, const struct td_fitting *fittings,
                                     const struct td_judgement *judgements, struct tdbg_error *error);
void td_weights_release(struct td_weights *weights);

/* The norm of the gradient of the weight beside a bias, on side A; NaN where there is none. */
double td_weight_norm(const struct td_weights *weights, const struct td_match *bias);

#endif
