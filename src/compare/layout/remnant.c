/* remnant.c: see remnant.h. */
#include "compare/layout/remnant.h"

#include "kernel/compare.h"

/* One axis of one side that was cut to the length of the other's. */
struct cut {
    const struct td_work *work; /* the arena: of this look alone */
    const struct td_item *item, *partner;
    bool in_b;
    struct td_steps steps; /* up to the cut, which is the last of them */
    int axis;
    int64_t from, kept, whole;  /* kept: [from, from + kept) of the whole */
    int64_t rest_from, rest_to; /* what was cut off, behind it or in front */
};

static tdbg_status slice(const struct cut *r, int64_t from, int64_t to, struct td_operand *out,
                         struct tdbg_error *error)
{
    struct td_steps steps = r->steps;
    steps.step[steps.count - 1].from = from;
    steps.step[steps.count - 1].to = to;
    return td_operand_make(out, r->item, &steps, r->work->arena, error);
}

/* *found: the side was cut. The parts of a fused tensor are slices too, and lack nothing. */
static tdbg_status find_cut(const struct td_match *match, const struct td_steps *steps, struct cut *r,
                            bool *found, struct tdbg_error *error)
{
    *found = false;
    for (int i = 0; i < steps->count; i++) {
        if (steps->step[i].kind != TD_STEP_SLICE || match->fused_a.of || match->fused_b.of)
            continue;
        struct td_operand before;
        r->steps = *steps;
        r->steps.count = i;
        TD_TRY(td_operand_make(&before, r->item, &r->steps, r->work->arena, error));
        r->steps.count = i + 1;
        r->axis = steps->step[i].axis;
        r->from = steps->step[i].from;
        r->kept = steps->step[i].to - r->from;
        r->whole = before.shape.size[r->axis];
        r->rest_from = r->from ? 0 : r->kept;
        r->rest_to = r->from ? r->from : r->whole;
        *found = true;
        return TDBG_OK;
    }
    return TDBG_OK;
}

/* [from, to) and the same one index later hold the same values: each index repeats the one before it. */
static tdbg_status repeats(const struct cut *r, int64_t from, int64_t to, bool *yes, struct tdbg_error *error)
{
    struct td_operand first, next;
    struct td_metrics m;
    TD_TRY(slice(r, from, to, &first, error));
    TD_TRY(slice(r, from + 1, to + 1, &next, error));
    TD_TRY(td_measure(&first, &next, r->work->pool, r->work->job, &m, error));
    *yes = m.differing == 0;
    return TDBG_OK;
}

/* One value throughout, or one row over and over: its own, or the next that is on both sides. */
static tdbg_status is_padding(const struct cut *r, bool *yes, struct tdbg_error *error)
{
    struct td_operand rest;
    struct td_metrics m;
    TD_TRY(slice(r, r->rest_from, r->rest_to, &rest, error));
    TD_TRY(td_measure(&rest, &rest, r->work->pool, r->work->job, &m, error));
    *yes = m.nan_a == m.count || (m.paired == m.count && m.a.min == m.a.max);
    if (!*yes && r->rest_to - r->rest_from > 1)
        TD_TRY(repeats(r, r->rest_from, r->rest_to - 1, yes, error));
    if (!*yes && r->kept > 0)
        TD_TRY(repeats(r, r->from ? r->rest_from : r->rest_from - 1, r->from ? r->rest_to : r->rest_to - 1,
                       yes, error));
    return TDBG_OK;
}

/* Rows of a vocabulary beyond its size are never looked up, whatever they hold. */
static bool is_vocabulary(const struct cut *r)
{
    return r->item->parameter && (r->item->role == TD_ROLE_EMBED || r->item->role == TD_ROLE_HEAD);
}

/* Ranks share heads or channels out evenly, so one of n holds a whole n-th; and where other ranks left their
 * shards too, those are missing that did not. */
static bool is_part_of_rank(const struct cut *r, int64_t tokens)
{
    bool of_tokens = (r->in_b ? r->kept : r->whole) == tokens;
    return !of_tokens && r->whole % r->kept == 0 && !r->partner->torn;
}

static tdbg_status inspect(const struct cut *r, int64_t tokens, enum td_cut *out, struct tdbg_error *error)
{
    bool padding;
    TD_TRY(is_padding(r, &padding, error));
    *out = padding || is_vocabulary(r)  ? TD_CUT_PADDING
           : is_part_of_rank(r, tokens) ? TD_CUT_RANK
                                        : TD_CUT_MISSING;
    return TDBG_OK;
}

tdbg_status td_remnant_find(struct td_remnant *out, const struct td_match *match,
                            const struct td_layout *layout, bool in_b, int64_t tokens,
                            const struct td_work *work, struct tdbg_error *error)
{
    struct td_arena arena;
    td_arena_init(&arena, TD_MAX_METADATA);
    const struct td_work own = {work->pool, work->job, &arena};
    struct cut r = {.work = &own, .in_b = in_b};
    struct td_remnant found = {0};
    bool is_cut;
    r.item = in_b ? match->b : match->a;
    r.partner = in_b ? match->a : match->b;
    tdbg_status status = find_cut(match, in_b ? &layout->b : &layout->a, &r, &is_cut, error);
    if (status == TDBG_OK && is_cut && r.kept > 0) {
        found = (struct td_remnant){.axis = r.axis, .kept = r.kept, .whole = r.whole};
        status = inspect(&r, tokens, &found.cut, error);
    }
    td_arena_release(&arena);
    if (status == TDBG_OK)
        *out = found;
    return status;
}
