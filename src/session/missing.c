/* missing.c: see missing.h. Only what was cut off is read. */
#include "session/missing.h"

#include <inttypes.h>
#include <stdio.h>

/* One axis of one side that was cut to the length of the other's. */
struct remnant {
    const struct td_judge *judge;
    struct td_pool *pool;
    struct td_arena *arena;
    const struct td_item *item, *partner;
    bool in_b;
    struct td_steps steps; /* up to the cut, which is the last of them */
    int axis;
    int64_t from, kept, whole;  /* kept: [from, from + kept) of the whole */
    int64_t rest_from, rest_to; /* what was cut off, behind it or in front */
};

static tdbg_status slice(const struct remnant *r, int64_t from, int64_t to, struct td_operand *out,
                         struct tdbg_error *error)
{
    struct td_steps steps = r->steps;
    steps.step[steps.count - 1].from = from;
    steps.step[steps.count - 1].to = to;
    return td_operand_make(out, r->item, &steps, r->arena, error);
}

/* *found: the side was cut. The parts of a fused tensor are slices too, and lack nothing. */
static tdbg_status find_remnant(const struct td_match *match, const struct td_pair *p, bool in_b,
                                struct remnant *r, bool *found, struct tdbg_error *error)
{
    const struct td_steps *steps = in_b ? &p->layout->b : &p->layout->a;
    *found = false;
    for (int i = 0; i < steps->count; i++) {
        if (steps->step[i].kind != TD_STEP_SLICE || match->fused_a.of || match->fused_b.of)
            continue;
        struct td_operand before;
        r->steps = *steps;
        r->steps.count = i;
        TD_TRY(td_operand_make(&before, r->item, &r->steps, r->arena, error));
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
static tdbg_status repeats(const struct remnant *r, int64_t from, int64_t to, bool *yes,
                           struct tdbg_error *error)
{
    struct td_operand first, next;
    struct td_metrics m;
    TD_TRY(slice(r, from, to, &first, error));
    TD_TRY(slice(r, from + 1, to + 1, &next, error));
    TD_TRY(td_measure(&first, &next, r->pool, r->judge->job, &m, error));
    *yes = m.differing == 0;
    return TDBG_OK;
}

/* One value throughout, or one row over and over: its own, or the next that is on both sides. */
static tdbg_status is_padding(const struct remnant *r, bool *yes, struct tdbg_error *error)
{
    struct td_operand rest;
    struct td_metrics m;
    TD_TRY(slice(r, r->rest_from, r->rest_to, &rest, error));
    TD_TRY(td_measure(&rest, &rest, r->pool, r->judge->job, &m, error));
    *yes = m.nan_a == m.count || (m.paired == m.count && m.a.min == m.a.max);
    if (!*yes && r->rest_to - r->rest_from > 1)
        TD_TRY(repeats(r, r->rest_from, r->rest_to - 1, yes, error));
    if (!*yes && r->kept > 0)
        TD_TRY(repeats(r, r->from ? r->rest_from : r->rest_from - 1, r->from ? r->rest_to : r->rest_to - 1,
                       yes, error));
    return TDBG_OK;
}

/* Rows of a vocabulary beyond its size are never looked up, whatever they hold. */
static bool is_vocabulary(const struct remnant *r)
{
    return r->item->parameter && (r->item->role == TD_ROLE_EMBED || r->item->role == TD_ROLE_HEAD);
}

/* Ranks share heads or channels out evenly, so one of n holds a whole n-th; and where other ranks left their
 * shards too, those are missing that did not. */
static bool is_part_of_rank(const struct remnant *r, int64_t tokens)
{
    bool of_tokens = (r->in_b ? r->kept : r->whole) == tokens;
    return !of_tokens && r->whole % r->kept == 0 && !r->partner->torn;
}

static void report(struct td_pair *p, const struct remnant *r)
{
    p->cut = TD_CUT_MISSING;
    p->ruling.verdict = TD_DIVERGED;
    snprintf(p->ruling.reason, sizeof p->ruling.reason,
             "%c has only %" PRId64 " of %" PRId64
             " of axis %d; they agree, but what is missing is no padding",
             r->in_b ? 'A' : 'B', r->kept, r->whole, r->axis);
}

static tdbg_status inspect(struct td_pair *p, const struct remnant *r, int64_t tokens,
                           struct tdbg_error *error)
{
    bool padding;
    TD_TRY(is_padding(r, &padding, error));
    if (padding || is_vocabulary(r))
        p->cut = TD_CUT_PADDING;
    else if (is_part_of_rank(r, tokens))
        p->cut = TD_CUT_RANK;
    else if (p->ruling.verdict <= TD_WITHIN) /* what diverged already needs no other reason */
        report(p, r);
    return TDBG_OK;
}

tdbg_status td_check_missing(struct td_diff *diff, const struct td_judge *judge, int64_t tokens,
                             struct td_pool *pool, struct td_arena *scratch, struct tdbg_error *error)
{
    for (size_t i = 0; i < diff->count; i++)
        for (int in_b = 0; in_b < 2; in_b++) {
            struct td_pair *p = &diff->pairs[i];
            if (!p->a || !p->b || !p->layout || !td_pair_measured(p))
                continue;
            struct remnant r = {.judge = judge, .pool = pool, .arena = &scratch[i], .in_b = in_b};
            r.item = in_b ? p->b : p->a;
            r.partner = in_b ? p->a : p->b;
            bool found;
            TD_TRY(find_remnant(&diff->matches.pairs[i], p, in_b, &r, &found, error));
            if (found && r.kept > 0)
                TD_TRY(inspect(p, &r, tokens, error));
        }
    return TDBG_OK;
}
