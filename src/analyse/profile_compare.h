/* profile_compare.h: the scopes of two profiles side by side: which became slower, beyond the noise?
 *
 * Scopes pair by path. Each has a time in every step; the two series of times are compared by ranks
 * (shift.h). A scope is slower or faster when that cannot be chance (p < 0.05 shared among all scopes
 * compared), and the difference is worth a word: 2 % of its time, and 0.1 % of a step.
 *
 * Several ranks: the same, each rank against the median of the others.
 */
#ifndef TD_ANALYSE_PROFILE_COMPARE_H
#define TD_ANALYSE_PROFILE_COMPARE_H

#include "analyse/profile.h"
#include "analyse/shift.h"

enum td_change {
    TD_CHANGE_NONE, /* within the noise */
    TD_CHANGE_SLOWER,
    TD_CHANGE_FASTER,
    TD_CHANGE_UNKNOWN, /* too few steps to tell noise from change */
    TD_CHANGE_ONLY_A,
    TD_CHANGE_ONLY_B,
};

struct td_profile_pair {
    uint32_t a, b; /* nodes; TD_PROFILE_NONE on one side at most; both the root: the steps */
    uint32_t depth;
    enum td_change change;
    struct td_shift shift; /* per step */
};

struct td_profile_comparison {
    struct td_profile_pair *pairs; /* the steps as a whole, then scopes: parents before their children */
    size_t count;
    size_t slower, faster, tested;
};

TD_CHECK tdbg_status td_profile_compare(struct td_profile_comparison *out, const struct td_profile *a,
                                        const struct td_profile *b, struct tdbg_error *error);
void td_profile_comparison_release(struct td_profile_comparison *comparison);

const char *td_change_name(enum td_change change);

/* A scope in which one rank takes longer than the others. */
struct td_straggler {
    size_t rank;        /* its place among the profiles */
    uint32_t node;      /* in its profile; the root: the whole step */
    double own, others; /* medians a step, nanoseconds */
    bool explained;     /* by a scope below it, while they are looked for */
};

enum { TD_STRAGGLERS = 16 };

/* The worst first: 10 % beyond the median of the other ranks, and 1 % of a step. Of scopes within each other
 * the innermost that explains it. */
TD_CHECK tdbg_status td_profile_stragglers(const struct td_profile *const *profiles, size_t count,
                                           struct td_straggler out[TD_STRAGGLERS], size_t *found,
                                           struct tdbg_error *error);

#endif
