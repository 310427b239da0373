/* stored.c: see stored.h. */
#include "compare/layout/stored.h"

#include "compare/judge/flow.h"
#include "compare/layout/reorder.h"

#include <stdlib.h>
#include <string.h>

static bool diverged(const struct td_fit *fit, size_t i)
{
    return fit->list[i].by_values == TD_DIVERGED;
}

/* Where the new layout left no single element to look at, reports go on to show those of the layout that the
 * pair diverged in. */
static void keep_worst(struct td_measurement *now, const struct td_measurement *before)
{
    if (now->counted)
        return;
    now->beyond = before->beyond;
    now->worst_count = before->worst_count;
    now->worst = before->worst;
}

/* Measures the pair in another layout, and keeps it when that makes the two agree. */
static bool try_layout(const struct td_fit *fit, size_t i, const struct td_layout *layout)
{
    const struct td_work work = {fit->work->pool, fit->work->job, &fit->arenas[i]};
    struct td_fitting tried = fit->list[i];
    tried.layout = layout;
    tried.repaired = true;
    td_fitting_measure(&tried, &fit->matches->pairs[i], fit->rules, &work);
    if (tried.by_values > TD_WITHIN)
        return false;
    keep_worst(&tried.measurement, &fit->list[i].measurement);
    fit->list[i] = tried;
    return true;
}

/* --- what follows agrees -------------------------------------------------------------------------------- */

/* Something is computed from it, and all of that is right. */
static bool consumers_agree(const struct td_fit *fit, size_t i)
{
    const struct td_item *item = fit->matches->pairs[i].a;
    size_t fed = 0, count = fit->matches->count;
    for (size_t n = 1; n < count; n++) {
        size_t k = (i + n) % count; /* most of what it feeds comes soon */
        if (*fit->questions == 0)
            return false;
        --*fit->questions;
        const struct td_item *other = fit->matches->pairs[k].a;
        if (!td_fitting_measured(&fit->list[k]) || other->layer < 0 || !td_feeds(item, other))
            continue;
        if (diverged(fit, k))
            return false;
        fed++;
    }
    return fed > 0;
}

/* Backwards, so that a chain of stages in one other layout (query, query_final) is unwound from its end. */
static void try_others(const struct td_fit *fit)
{
    for (size_t i = fit->matches->count; i-- > 0;) {
        const struct td_layout *other = fit->list[i].other;
        if (diverged(fit, i) && other && consumers_agree(fit, i))
            try_layout(fit, i, other);
    }
}

/* --- every layer needs it ------------------------------------------------------------------------------- */

/* The same tensor of another layer in the same layout, or the pair itself. */
static bool same_stage(const struct td_fit *fit, size_t i, const struct td_layout *layout, size_t k)
{
    const struct td_match *p = &fit->matches->pairs[i], *q = &fit->matches->pairs[k];
    return q->a && q->b && q->a->layer >= 0 && strcmp(p->a->stage, q->a->stage) == 0 &&
           fit->list[k].layout == layout;
}

static bool first_of_stage(const struct td_fit *fit, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_stage(fit, i, fit->list[i].layout, k))
            return false;
    return true;
}

/* Whether each of the ranks' shares of the new order is in the order of the whole. `place` of slab i is where
 * the other side has it. */
static bool shares_in_order(const int64_t *place, int64_t slabs, int ranks)
{
    if (slabs % ranks)
        return false;
    for (int64_t i = 1; i < slabs; i++)
        if (i % (slabs / ranks) && place[i] < place[i - 1])
            return false;
    return true;
}

/* Ranks that fuse each its own q, k and v leave the heads in another order than a side that fused them whole,
 * and nothing is wrong with that. */
static bool is_fused_by_rank(const struct td_match *p, const struct td_layout *layout)
{
    enum td_role parts[3];
    const struct td_step *last = &layout->b.step[layout->b.count - 1];
    if (!td_role_parts(p->a->role, parts) || (p->a->part_count == 1) == (p->b->part_count == 1))
        return false;
    if (p->a->part_count > 1)
        return shares_in_order(last->order, last->to, p->a->part_count);
    int64_t *place = calloc((size_t)last->to, sizeof *place);
    for (int64_t i = 0; place && i < last->to; i++)
        place[last->order[i]] = i;
    bool in_order = place && shares_in_order(place, last->to, p->b->part_count);
    free(place);
    return in_order;
}

/* One order for all layers, or none. What is computed from an activation must agree too: a model that
 * confuses its heads does so in every layer. `before` has room for all fittings. */
static void reorder_stage(const struct td_fit *fit, size_t first, const struct td_layout *order,
                          struct td_fitting *before)
{
    const struct td_layout *shared = fit->list[first].layout;
    size_t end = fit->matches->count, layers = 0, agreed = 0;
    for (size_t i = first; i < end; i++) {
        const struct td_match *m = &fit->matches->pairs[i];
        before[i] = fit->list[i];
        if (!same_stage(fit, first, shared, i))
            continue;
        layers++;
        agreed += diverged(fit, i) &&
                  (m->a->parameter || is_fused_by_rank(m, order) || consumers_agree(fit, i)) &&
                  try_layout(fit, i, order);
    }
    for (size_t i = first; i < end && (layers < 2 || agreed < layers); i++)
        if (fit->list[i].layout == order)
            fit->list[i] = before[i];
}

/* Only the first layer is searched for an order, so a checkpoint that differs everywhere costs one search for
 * each stage. Backwards, as above. */
static tdbg_status try_orders(const struct td_fit *fit, struct tdbg_error *error)
{
    struct td_fitting *before = calloc(fit->matches->count + 1, sizeof *before);
    tdbg_status status = before ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = fit->matches->count; status == TDBG_OK && i-- > 0;) {
        const struct td_match *m = &fit->matches->pairs[i];
        const struct td_layout *order = NULL;
        if (!diverged(fit, i) || m->a->layer < 0 || !first_of_stage(fit, i))
            continue;
        status = td_reorder_find(&order, m->a, m->b, fit->list[i].layout, &fit->model->heads,
                                 fit->work->arena, error);
        if (order)
            reorder_stage(fit, i, order, before);
    }
    free(before);
    return status;
}

tdbg_status td_fit_stored(const struct td_fit *fit, struct tdbg_error *error)
{
    try_others(fit);
    return try_orders(fit, error);
}
