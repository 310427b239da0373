/* reference.h: a third run, more precise than both, as the judge: how far is each side from it?
 *
 * Its tensors are matched and lined up with each side by itself.
 */
#ifndef TD_COMPARE_JUDGE_REFERENCE_H
#define TD_COMPARE_JUDGE_REFERENCE_H

#include "compare/judge/verdict.h"
#include "compare/layout/align.h"

struct td_references {
    const struct td_side *side; /* borrowed; NULL: there is none */
    struct td_matches with_a, with_b;
    struct td_alignments aligned_a, aligned_b;
};

/* Starts out as zeros; of a NULL side nothing is made. To be released when this fails, too. */
TD_CHECK tdbg_status td_references_init(struct td_references *r, const struct td_side *side,
                                        const struct td_side *a, const struct td_side *b,
                                        const struct td_head_sizes *heads, const struct td_work *work,
                                        struct tdbg_error *error);
void td_references_release(struct td_references *r);

/* Fills in the errors of both tensors against the reference, where it has the tensor. NULL: there is none. */
TD_CHECK tdbg_status td_references_apply(const struct td_references *r, const struct td_item *a,
                                         const struct td_item *b, const struct td_work *work,
                                         struct td_circumstances *c, struct tdbg_error *error);

#endif
