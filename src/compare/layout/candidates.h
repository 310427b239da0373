/* candidates.h: the layouts that fit two shapes, most natural first.
 *
 * Shapes alone rarely decide: [1,8,76,64] may be heads first, or a mislabelled [76,8,64]. The generator lists
 * what could be, align.h asks the values. `cost` is the prior: among layouts that explain the values equally
 * well the cheaper one is meant.
 */
#ifndef TD_COMPARE_LAYOUT_CANDIDATES_H
#define TD_COMPARE_LAYOUT_CANDIDATES_H

#include "compare/layout/layout.h"

/* What the values must say of a layout before it is used. */
enum td_proof {
    TD_PROOF_NONE, /* the shapes suffice */
    TD_PROOF_ONCE, /* sizes differ by a factor, which may be chance: one layer fits */
    TD_PROOF_ALL   /* a guess (padding cut off, a sum over ranks): the layers fit on the whole */
};

struct td_candidate {
    struct td_layout layout;
    int cost;
    bool as_it_stands; /* nothing but axes of size 1 dropped: the shapes agree */
    enum td_proof proof;
};

struct td_candidates {
    struct td_candidate *list; /* by cost */
    int count, capacity;
    bool b_in_order; /* B is quantised or sparse and A is not: whatever must move is moved in A */
};

/* Sizes that a head may have, to split a merged axis [heads * size]: those seen as a last axis in 3-d tensors
 * of either side, and the usual ones. */
struct td_head_sizes {
    int count;
    int64_t size[16];
    bool guessed; /* none was seen, and these are what heads usually have */
};

void td_head_sizes_add(struct td_head_sizes *heads, const struct td_shape *shape);

/* After all shapes were added: where every tensor is flat, as in a checkpoint, the values must tell. */
void td_head_sizes_guess(struct td_head_sizes *heads);

/* May come back empty: nothing fits. */
TD_CHECK tdbg_status td_candidates_init(struct td_candidates *out, const struct td_match *match,
                                        const struct td_head_sizes *heads, struct tdbg_error *error);
void td_candidates_release(struct td_candidates *c);

/* For shapes that agree as they stand, at the end of the list: the channels of each head in half-split order
 * on one side and interleaved on the other, along the first or the last axis, for heads of the likely sizes.
 */
TD_CHECK tdbg_status td_candidates_add_rotary(struct td_candidates *c, const struct td_head_sizes *heads,
                                              struct tdbg_error *error);

#endif
