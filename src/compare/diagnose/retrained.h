/* retrained.h: two checkpoints of one architecture: every weight differs, and none is the mistake. */
#ifndef TD_COMPARE_DIAGNOSE_RETRAINED_H
#define TD_COMPARE_DIAGNOSE_RETRAINED_H

#include "compare/pair.h"

enum { TD_MOST_ODD = 8 };

struct td_retrained {
    bool further;             /* trained on from common values; false: the two have nothing in common */
    size_t weights, changed;  /* that tell anything; of those, how many differ */
    double low, middle, high; /* correlation of those that changed, without the odd ones */
    size_t odd_count;         /* that correlate far less than the others */
    const struct td_pair *odd[TD_MOST_ODD]; /* the first ones */
};

/* False: the two differ in some other way. Sets *out only when true. False as well without memory. */
bool td_retrained_find(struct td_retrained *out, const struct td_pair *pairs, size_t count);

#endif
