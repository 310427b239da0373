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
    int64_t cut;       /* how the parts of a fused tensor lie in it, alike for all of them; 0: not cut */
    bool plain;        /* the same elements in the same order, under another shape at most */
    bool as_it_stands; /* nothing but axes of size 1 dropped: the shapes agree */
    enum td_proof proof;
};

struct td_candidates {
    struct td_candidate *list; /* by cost */
    int count, capacity;
    struct td_arena orders; /* of steps that reorder */
    bool b_in_order;        /* B is quantised or sparse and A is not: whatever must move is moved in A */
};

enum { TD_MOST_HEAD_SIZES = 32 };

/* Sizes that a head may have, to split a merged axis [heads * size]. */
struct td_head_sizes {
    int count; /* what the dump shows, or where it shows nothing what heads usually have */
    int all;   /* and behind those, what else the values may be asked about */
    int64_t size[TD_MOST_HEAD_SIZES];
    bool guessed; /* the dump shows nothing */
};

/* All of them; where the dump shows nothing, every size that a head may have, the likely ones first. Most do
 * not divide a given axis. 0: the size was listed before. */
int td_head_sizes_count(const struct td_head_sizes *heads);
int64_t td_head_size(const struct td_head_sizes *heads, int index);

/* How many there are with every size that a head may have behind those. */
int td_head_sizes_any(const struct td_head_sizes *heads);

/* From the shapes of all sides (head_sizes.c says what counts as evidence). */
TD_CHECK tdbg_status td_head_sizes_find(struct td_head_sizes *out, const struct td_side *const *sides,
                                        int count, struct tdbg_error *error);

/* May come back empty: nothing fits. */
TD_CHECK tdbg_status td_candidates_init(struct td_candidates *out, const struct td_match *match,
                                        const struct td_head_sizes *heads, struct tdbg_error *error);
void td_candidates_release(struct td_candidates *c);

/* For who makes candidates. False: no memory; one too many is left out. */
bool td_candidates_push(struct td_candidates *c, const struct td_candidate *candidate);

/* False: the layout has as many steps as it can have. */
static inline bool td_steps_add(struct td_steps *steps, struct td_step step)
{
    if (steps->count == TD_MAX_STEPS)
        return false;
    steps->step[steps->count++] = step;
    return true;
}

/* A new axis before `axis`. */
static inline void td_shape_insert(struct td_shape *s, int axis, int64_t size)
{
    for (int i = s->ndim; i > axis; i--)
        s->size[i] = s->size[i - 1];
    s->size[axis] = size;
    s->ndim++;
}

#endif
