/* judge.h: what is said of each pair, once: from its measurement and from what else is known of it.
 *
 * td_judge_values is the rule (verdict.h) applied to the values alone, in the layout they were measured in;
 * the fitting tries layouts by it. The ruling follows from that, and from two circumstances that the values
 * of the pair do not show:
 *
 *     remnants  what the longer side has beyond the other (remnant.h): two that agree as far as the shorter
 *               reaches diverge when what is missing is no padding and no share of another rank
 *     weight    the gradient of a bias that is zero but for rounding (vanished.h): two that differ are within
 *               when both lie below the noise of the gradient of the weight beside it
 */
#ifndef TD_COMPARE_JUDGE_JUDGE_H
#define TD_COMPARE_JUDGE_JUDGE_H

#include "compare/layout/fitting.h"

struct td_judgement {
    struct td_ruling ruling;
    enum td_cut cut; /* that the ruling took into account */
};

struct td_ruling td_judge_values(const struct td_policy *policy, const struct td_match *match,
                                 const struct td_fitting *fitting);

/* Of one pair. `weight_norm`: of the gradient of the weight beside a bias, on which both sides agree; NaN
 * where there is none. */
struct td_judgement td_judge(const struct td_policy *policy, const struct td_match *match,
                             const struct td_fitting *fitting, double weight_norm);

/* Of all pairs, in their order; `out` has room for one each. */
TD_CHECK tdbg_status td_judge_all(struct td_judgement *out, const struct td_policy *policy,
                                  const struct td_matches *matches, const struct td_fitting *fittings,
                                  struct tdbg_error *error);

/* Nothing can be said, and why. */
struct td_ruling td_ruling_failed(const char *why);

#endif
