/* reference.c: see reference.h. */
#include "compare/judge/reference.h"

/* The reference against one side. */
static tdbg_status line_up(const struct td_side *reference, const struct td_side *side,
                           struct td_matches *matches, struct td_alignments *alignments,
                           const struct td_head_sizes *heads, const struct td_work *work,
                           struct tdbg_error *error)
{
    const struct td_match_options options = {0};
    const struct td_work alone = {work->pool, work->job, NULL};
    TD_TRY(td_match_sides(matches, reference, side, &options, &alone, error));
    return td_align(alignments, matches, heads, work->pool, work->job, error);
}

tdbg_status td_references_init(struct td_references *r, const struct td_side *side, const struct td_side *a,
                               const struct td_side *b, const struct td_head_sizes *heads,
                               const struct td_work *work, struct tdbg_error *error)
{
    if (!side)
        return TDBG_OK;
    r->side = side;
    TD_TRY(line_up(side, a, &r->with_a, &r->aligned_a, heads, work, error));
    return line_up(side, b, &r->with_b, &r->aligned_b, heads, work, error);
}

void td_references_release(struct td_references *r)
{
    td_alignments_release(&r->aligned_a);
    td_alignments_release(&r->aligned_b);
    td_matches_release(&r->with_a);
    td_matches_release(&r->with_b);
    r->side = NULL;
}

/* The relative error of `item` against its partner in the reference; false when it has none. */
static bool error_of(const struct td_matches *matches, const struct td_alignments *alignments,
                     const struct td_item *item, const struct td_work *work, double *out, tdbg_status *status,
                     struct tdbg_error *error)
{
    for (size_t i = 0; i < matches->count; i++) {
        const struct td_match *m = &matches->pairs[i];
        const struct td_alignment *al = &alignments->list[i];
        if (m->b != item || !m->a || !al->layout)
            continue;
        struct td_arena arena;
        struct td_operand reference, mine;
        struct td_metrics metrics;
        td_arena_init(&arena, TD_MAX_METADATA);
        *status = td_operand_make(&reference, m->a, &al->layout->a, &arena, error);
        if (*status == TDBG_OK)
            *status = td_operand_make(&mine, m->b, &al->layout->b, &arena, error);
        if (*status == TDBG_OK)
            *status = td_measure(&reference, &mine, work->pool, work->job, &metrics, error);
        if (*status == TDBG_OK)
            *out = metrics.rel_l2;
        td_arena_release(&arena);
        return *status == TDBG_OK;
    }
    return false;
}

tdbg_status td_references_apply(const struct td_references *r, const struct td_item *a,
                                const struct td_item *b, const struct td_work *work,
                                struct td_circumstances *c, struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    if (!r || !r->side)
        return TDBG_OK;
    c->has_reference = error_of(&r->with_a, &r->aligned_a, a, work, &c->error_a, &status, error) &&
                       error_of(&r->with_b, &r->aligned_b, b, work, &c->error_b, &status, error);
    return status;
}
