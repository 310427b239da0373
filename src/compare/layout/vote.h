/* vote.h: one layout for the pairs that one line of code wrote.
 *
 * The pairs of a group differ in nothing but the layer: the same stage, the same shapes. They get the layout
 * with the most evidence over all of them. The parts of one fused tensor are groups of one set: each has
 * shapes of its own, but all are cut in one way, the one with the most evidence over all parts and layers.
 */
#ifndef TD_COMPARE_LAYOUT_VOTE_H
#define TD_COMPARE_LAYOUT_VOTE_H

#include "compare/layout/align.h"
#include "compare/layout/candidates.h"

/* What one pair has to say. */
struct td_ballot {
    struct td_candidates candidates;
    double *scores; /* NULL when there was nothing to choose */
    char *group;    /* alike in the pairs of a group; NULL: no pair */
    char *set;      /* alike in the parts of fused tensors of one stage; NULL: no part */
    int64_t cut;    /* how all of these are cut; 0: not cut */
};

/* Fills in `cut` of the ballots. */
TD_CHECK tdbg_status td_vote_on_cuts(const struct td_matches *matches, struct td_ballot *ballots,
                                     struct tdbg_error *error);

/* Fills in out->list. */
TD_CHECK tdbg_status td_vote(struct td_alignments *out, const struct td_matches *matches,
                             const struct td_ballot *ballots, struct tdbg_error *error);

#endif
