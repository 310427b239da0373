/* judge.c: see judge.h. */
#include "session/judge.h"

#include <inttypes.h>
#include <stdio.h>

/* A single element is a constant of the model, but for one behind its layers, which was computed from them: a
 * loss. */
static bool is_constant(const struct td_judge *judge, const struct td_pair *p, const struct td_operand *a)
{
    return a->count == 1 && (judge->layers == 0 || p->a->layer >= 0 || p->a->parameter);
}

static struct td_circumstances circumstances(const struct td_judge *judge, const struct td_pair *p,
                                             const struct td_operand *a)
{
    struct td_circumstances c = {
        .a = p->a->parts[0]->dtype,
        .b = p->b->parts[0]->dtype,
        .scalar = is_constant(judge, p, a),
        .count = a->count,
        .roundings = td_roundings(p->a, judge->layers),
    };
    const struct td_item *items[] = {p->a, p->b};
    for (int side = 0; side < 2; side++) /* a weight should be a copy, and a whole number is exact */
        if (!items[side]->parameter && td_unit_roundoff(items[side]->parts[0]->dtype) > 0)
            c.grid[side] = judge->grid[side];
    for (int i = 0; i < a->shape.ndim; i++)
        if (a->shape.size[i] > c.longest_axis)
            c.longest_axis = a->shape.size[i];
    return c;
}

/* Sparse and expanded tensors have more elements than bytes, and a comparison goes over all of them. */
static tdbg_status check_size(const struct td_item *item, struct tdbg_error *error)
{
    for (int i = 0; i < item->part_count; i++) {
        const struct td_tensor *t = item->parts[i];
        if (t->count > TD_MAX_LOOK && (t->sparse || td_view_overlaps(&t->view)))
            return td_fail(error, TDBG_LIMIT,
                           "%" PRId64
                           " elements that are not stored one by one: no more than 2^34 of such are "
                           "compared",
                           t->count);
    }
    return TDBG_OK;
}

tdbg_status td_judge_pair(const struct td_judge *judge, struct td_pair *p, struct td_pool *pool,
                          struct td_arena *arena, struct tdbg_error *error)
{
    struct td_operand a, b;
    TD_TRY(check_size(p->a, error));
    TD_TRY(check_size(p->b, error));
    TD_TRY(td_operand_make(&a, p->a, &p->layout->a, arena, error));
    TD_TRY(td_operand_make(&b, p->b, &p->layout->b, arena, error));
    TD_TRY(td_measure(&a, &b, pool, judge->job, &p->metrics, error));
    struct td_circumstances c = circumstances(judge, p, &a);
    if (judge->policy.kind == TD_POLICY_NOISE || judge->policy.kind == TD_POLICY_REFERENCE)
        TD_TRY(td_fill_find(&a, &b, &p->metrics, &c.fill, error));
    TD_TRY(td_references_apply(judge->references, p, pool, judge->job, &c, error));
    bool needs_count;
    td_rule(&judge->policy, &c, &p->metrics, &p->ruling, &needs_count);
    if (!needs_count)
        return TDBG_OK;
    struct td_examination x;
    TD_TRY(td_examine(&a, &b, p->ruling.tolerance, judge->top, pool, judge->job, arena, &x, error));
    p->beyond = x.beyond;
    p->worst = x.worst;
    p->worst_count = x.worst_count;
    td_ruling_count(&p->ruling, x.beyond, p->metrics.count);
    return TDBG_OK;
}

void td_pair_give_up(struct td_pair *p, const char *why)
{
    p->ruling = (struct td_ruling){.verdict = TD_ERROR};
    snprintf(p->ruling.reason, sizeof p->ruling.reason, "%.190s", why);
}

void td_pair_refuse_shapes(struct td_pair *p)
{
    char text[2][80] = {"", ""};
    const struct td_item *items[] = {p->a, p->b};
    int64_t counts[2];
    for (int s = 0; s < 2; s++) {
        const struct td_tensor *t = items[s]->parts[0];
        size_t at = (size_t)snprintf(text[s], sizeof text[s], "[");
        for (int i = 0; i < t->shape.ndim && at + 24 < sizeof text[s]; i++)
            at += (size_t)snprintf(text[s] + at, sizeof text[s] - at, "%s%" PRId64, i ? ", " : "",
                                   t->shape.size[i]);
        snprintf(text[s] + at, sizeof text[s] - at, "]");
        counts[s] = t->count * items[s]->part_count;
    }
    p->ruling = (struct td_ruling){.verdict = TD_ERROR};
    snprintf(p->ruling.reason, sizeof p->ruling.reason,
             "shapes %s and %s do not line up (%" PRId64 " and %" PRId64 " elements)", text[0], text[1],
             counts[0], counts[1]);
}
