/* layout.h: ways in which one side's elements may be laid out as the other's.
 *
 * A layout is a short list of steps for each side after which both have the same shape. All steps are views:
 * they change shapes and strides, never bytes.
 */
#ifndef TD_COMPARE_LAYOUT_LAYOUT_H
#define TD_COMPARE_LAYOUT_LAYOUT_H

#include "compare/name/item.h"
#include "compare/match/match.h"
#include "tensor/operand.h"

enum td_step_kind {
    TD_STEP_JOIN,    /* shards concatenated along `axis`; experts where `from` is not 0 */
    TD_STEP_SUM,     /* shards, or the indices of `axis`, added up */
    TD_STEP_FIRST,   /* replicated shards: the first, or number `from`, stands for all */
    TD_STEP_TAKE,    /* index `from` of `axis`; the axis goes */
    TD_STEP_SLICE,   /* [from, to) of `axis` */
    TD_STEP_SQUEEZE, /* every axis of size 1 goes */
    TD_STEP_RESHAPE, /* to `list`, the same elements in the same order */
    TD_STEP_PERMUTE, /* new axis i is old axis list[i] */
    TD_STEP_REPEAT,  /* a new axis of size `to` before `axis`, all its indices alike */
    TD_STEP_REORDER  /* index i of `axis` is what stood at order[i]; there are `to` of them */
};

struct td_step {
    enum td_step_kind kind;
    int axis;
    int64_t from, to;
    struct td_shape list;
    const int64_t *order; /* borrowed from the arena the layout was made in */
};

enum { TD_MAX_STEPS = 8 };

struct td_steps {
    int count;
    struct td_step step[TD_MAX_STEPS];
};

struct td_layout {
    struct td_steps a, b;
    struct td_shape shape; /* after the steps, on both sides */
    bool by_value;         /* the values chose among several that fit the shapes */
    bool rotary;           /* the two halves of each head interleaved on one side only */
    bool part;             /* a part of a fused tensor, cut in one of several ways */
};

/* "b: permute 1,0,2" */
void td_step_print(char *out, size_t size, char side, const struct td_step *step);

/* The item with the steps applied. Parts are allocated from the arena. MISMATCH when the steps do not fit. */
TD_CHECK tdbg_status td_operand_make(struct td_operand *out, const struct td_item *item,
                                     const struct td_steps *steps, struct td_arena *arena,
                                     struct tdbg_error *error);

#endif
