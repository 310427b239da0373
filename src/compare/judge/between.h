/* between.h: tensors without a partner in front of the first divergence: nobody saw whether they are right.
 */
#ifndef TD_COMPARE_JUDGE_BETWEEN_H
#define TD_COMPARE_JUDGE_BETWEEN_H

#include "compare/pair.h"

enum { TD_BETWEEN_NAMES = 8 };

struct td_between {
    size_t count[2]; /* of A, of B */
    const char *names[2][TD_BETWEEN_NAMES];
};

/* What lies between `first` and the last pair before it that agrees. Nothing where the order is not known. */
void td_between_find(struct td_between *out, const struct td_pair *pairs, const struct td_pair *first,
                     enum td_order_evidence order);

#endif
