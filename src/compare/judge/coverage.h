/* coverage.h: how much of two sides was compared at all, and whether that bears an answer.
 *
 * "All pairs agree" says nothing about what has no partner: of two dumps under unlike names one pair in a
 * hundred may be found by chance, and agree. So agreement needs a base. Held against the share that is asked
 * for is the side with fewer tensors. The longer one may honestly have more: hooks dump inputs and outputs,
 * where a port dumps the outputs alone, or one layer out of thirty. What is on the shorter side was put there
 * to be compared, and where half of that found nobody, the names were not understood.
 *
 * Half of the share is enough where the result of the model agrees, its logits or what it is named: all that
 * was computed went into it, so that a mistake in what has no partner would show there.
 */
#ifndef TD_COMPARE_JUDGE_COVERAGE_H
#define TD_COMPARE_JUDGE_COVERAGE_H

#include "compare/pair.h"

/* The share that is asked for where nobody says another. */
#define TD_COVERAGE_DEFAULT 0.5

struct td_coverage {
    double a, b; /* share of each side's tensors that have a partner, 0 to 1; of a side without tensors 0 */
    bool enough;
};

/* `items_a` and `items_b` are what the sides hold in all. One tensor under several names is as many items,
 * and all have a partner when one of them has. Fused tensors count once. */
TD_CHECK tdbg_status td_coverage_find(struct td_coverage *out, const struct td_pair *pairs, size_t count,
                                      size_t items_a, size_t items_b, double needed,
                                      struct tdbg_error *error);

#endif
