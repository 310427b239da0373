/* reference.h: a third run, more precise than both, as the judge: how far is each side from it? */
#ifndef TD_SESSION_REFERENCE_H
#define TD_SESSION_REFERENCE_H

#include "compare/layout/align.h"
#include "compare/pair.h"
#include "session/input.h"

struct td_references {
    struct td_input *input; /* NULL: there is none */
    struct td_side side;
    struct td_matches with_a, with_b;
    struct td_alignments aligned_a, aligned_b;
};

/* A NULL path opens nothing. */
TD_CHECK tdbg_status td_references_open(struct td_references *r, const char *path, const struct td_side *a,
                                        const struct td_side *b, const struct td_head_sizes *heads,
                                        struct td_pool *pool, struct td_job *job, struct tdbg_error *error);
void td_references_close(struct td_references *r);

/* Fills in the errors of both sides against the reference, where it has the tensor. */
TD_CHECK tdbg_status td_references_apply(const struct td_references *r, const struct td_pair *pair,
                                         struct td_pool *pool, struct td_job *job, struct td_circumstances *c,
                                         struct tdbg_error *error);

#endif
