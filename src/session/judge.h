/* judge.h: one pair whose layout is known: measured, and judged by the policy. */
#ifndef TD_SESSION_JUDGE_H
#define TD_SESSION_JUDGE_H

#include "compare/pair.h"
#include "session/reference.h"

struct td_judge {
    struct td_policy policy;
    const struct td_references *references;
    int64_t layers; /* depth of the model, for the noise floor */
    double grid[2]; /* td_side_grid of A and B */
    int top;        /* worst elements to keep */
    struct td_job *job;
};

/* Fills in metrics, ruling and the worst elements, which come from `arena`. A NULL pool is one thread. */
TD_CHECK tdbg_status td_judge_pair(const struct td_judge *judge, struct td_pair *pair, struct td_pool *pool,
                                   struct td_arena *arena, struct tdbg_error *error);

/* The pair could not be compared, and why. */
void td_pair_give_up(struct td_pair *pair, const char *why);

/* No layout fits the shapes of its two sides. */
void td_pair_refuse_shapes(struct td_pair *pair);

#endif
