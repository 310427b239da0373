/* fill.h: one huge value that stands in many places, such as the -1e9 of masked attention scores.
 *
 * It dominates the norm: beside it, scores that are twice too large are no error to speak of. So what is
 * beside it is measured again by itself. And one side may fill with -1e9 where the other has the least number
 * of its type: as long as both mask the same places, that is no difference to anybody.
 */
#ifndef TD_COMPARE_JUDGE_FILL_H
#define TD_COMPARE_JUDGE_FILL_H

#include "kernel/compare.h"

struct td_fill {
    double value;   /* of A; 0: there is none */
    double in_b;    /* another value that B has at the same places and nowhere else, or the same */
    double rel_l2;  /* of the elements beside it */
    double rms;     /* of A's */
    double max_abs; /* the largest difference of those, and A's value there */
    double max_abs_a;
};

/* Looks at a sample, and reads both sides again only where that has a fill. */
TD_CHECK tdbg_status td_fill_find(const struct td_operand *a, const struct td_operand *b,
                                  const struct td_metrics *metrics, struct td_fill *out,
                                  struct tdbg_error *error);

#endif
