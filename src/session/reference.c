/* reference.c: see reference.h. The reference is matched and lined up with each side by itself. */
#include "session/reference.h"

#include "session/side.h"

tdbg_status td_references_open(struct td_references *r, const char *path, const struct td_side *a,
                               const struct td_side *b, const struct td_head_sizes *heads,
                               struct td_pool *pool, struct td_job *job, struct tdbg_error *error)
{
    struct td_match_options options = {0};
    if (!path)
        return TDBG_OK;
    tdbg_status opened = td_input_open(&r->input, path, job, error);
    if (opened != TDBG_OK) {
        td_error_prefix(error, path);
        return opened;
    }
    TD_TRY(td_side_of_input(&r->side, r->input, error));
    TD_TRY(td_match_sides(&r->with_a, &r->side, a, &options, &(struct td_work){pool, job, NULL}, error));
    TD_TRY(td_match_sides(&r->with_b, &r->side, b, &options, &(struct td_work){pool, job, NULL}, error));
    TD_TRY(td_align(&r->aligned_a, &r->with_a, heads, pool, job, error));
    return td_align(&r->aligned_b, &r->with_b, heads, pool, job, error);
}

void td_references_close(struct td_references *r)
{
    if (!r->input)
        return;
    td_alignments_release(&r->aligned_a);
    td_alignments_release(&r->aligned_b);
    td_matches_release(&r->with_a);
    td_matches_release(&r->with_b);
    td_side_release(&r->side);
    td_input_close(&r->input);
}

/* The relative error of `item` against its partner in the reference; false when it has none. */
static bool error_of(const struct td_matches *matches, const struct td_alignments *alignments,
                     const struct td_item *item, struct td_pool *pool, struct td_job *job, double *out,
                     tdbg_status *status, struct tdbg_error *error)
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
            *status = td_measure(&reference, &mine, pool, job, &metrics, error);
        if (*status == TDBG_OK)
            *out = metrics.rel_l2;
        td_arena_release(&arena);
        return *status == TDBG_OK;
    }
    return false;
}

tdbg_status td_references_apply(const struct td_references *r, const struct td_pair *pair,
                                struct td_pool *pool, struct td_job *job, struct td_circumstances *c,
                                struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    if (!r->input)
        return TDBG_OK;
    c->has_reference = error_of(&r->with_a, &r->aligned_a, pair->a, pool, job, &c->error_a, &status, error) &&
                       error_of(&r->with_b, &r->aligned_b, pair->b, pool, job, &c->error_b, &status, error);
    return status;
}
