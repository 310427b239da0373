/* measure.c: see measure.h. */
#include "compare/judge/measure.h"

#include <inttypes.h>

/* A single element is a constant of the model, but for one behind its layers, which was computed from them: a
 * loss. */
static bool is_constant(const struct td_rules *rules, const struct td_item *item, const struct td_operand *a)
{
    return a->count == 1 && (rules->layers == 0 || item->layer >= 0 || item->parameter);
}

static struct td_circumstances circumstances(const struct td_rules *rules, const struct td_item *a,
                                             const struct td_item *b, const struct td_operand *operand)
{
    struct td_circumstances c = {
        .a = a->parts[0]->dtype,
        .b = b->parts[0]->dtype,
        .scalar = is_constant(rules, a, operand),
        .count = operand->count,
        .roundings = td_roundings(a, rules->layers),
    };
    const struct td_item *items[] = {a, b};
    for (int side = 0; side < 2; side++) /* a weight should be a copy, and a whole number is exact */
        if (!items[side]->parameter && td_unit_roundoff(items[side]->parts[0]->dtype) > 0)
            c.grid[side] = rules->grid[side];
    for (int i = 0; i < operand->shape.ndim; i++)
        if (operand->shape.size[i] > c.longest_axis)
            c.longest_axis = operand->shape.size[i];
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

/* Both sides lined up. */
struct lined_up {
    const struct td_item *item_a, *item_b;
    struct td_operand a, b;
};

static tdbg_status take(struct td_measurement *m, const struct td_rules *rules, const struct lined_up *l,
                        const struct td_work *work, struct tdbg_error *error)
{
    enum td_policy_kind kind = rules->policy.kind;
    struct td_circumstances *c = &m->circumstances;
    TD_TRY(td_measure(&l->a, &l->b, work->pool, work->job, &m->metrics, error));
    *c = circumstances(rules, l->item_a, l->item_b, &l->a);
    if (kind == TD_POLICY_NOISE || kind == TD_POLICY_REFERENCE)
        TD_TRY(td_fill_find(&l->a, &l->b, &m->metrics, &c->fill, error));
    TD_TRY(td_references_apply(rules->references, l->item_a, l->item_b, work, c, error));
    struct td_ruling ruling;
    bool needs_count;
    td_rule(&rules->policy, c, &m->metrics, &ruling, &needs_count);
    if (!needs_count)
        return TDBG_OK;
    struct td_examination x;
    TD_TRY(td_examine(&l->a, &l->b, ruling.tolerance, rules->top, work->pool, work->job, work->arena, &x,
                      error));
    m->counted = true;
    m->beyond = x.beyond;
    m->worst = x.worst;
    m->worst_count = x.worst_count;
    return TDBG_OK;
}

tdbg_status td_measurement_take(struct td_measurement *out, const struct td_rules *rules,
                                const struct td_item *a, const struct td_item *b,
                                const struct td_layout *layout, const struct td_work *work,
                                struct tdbg_error *error)
{
    struct td_measurement m = {0};
    struct lined_up l = {.item_a = a, .item_b = b};
    struct td_arena operands;
    TD_TRY(check_size(a, error));
    TD_TRY(check_size(b, error));
    td_arena_init(&operands, TD_MAX_METADATA);
    tdbg_status status = td_operand_make(&l.a, a, &layout->a, &operands, error);
    if (status == TDBG_OK)
        status = td_operand_make(&l.b, b, &layout->b, &operands, error);
    if (status == TDBG_OK)
        status = take(&m, rules, &l, work, error);
    td_arena_release(&operands);
    if (status == TDBG_OK)
        *out = m;
    return status;
}

struct td_measurement td_measurement_failed(const char *why, struct td_arena *arena)
{
    const char *kept = td_arena_strdup(arena, why);
    return (struct td_measurement){.failure = kept ? kept : "out of memory"};
}
