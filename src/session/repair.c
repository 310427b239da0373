/* repair.c: see repair.h. */
#include "session/repair.h"

#include "compare/judge/flow.h"
#include "compare/layout/reorder.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_QUESTIONS = 20000000 };

struct repair {
    struct td_diff *diff;
    const struct td_judge *judge;
    const struct td_head_sizes *heads;
    struct td_pool *pool;
    struct td_arena *scratch;
    size_t questions; /* that may still be asked of pairs of pairs: names may leave every answer open */
};

static bool diverged(const struct td_pair *p)
{
    return p->ruling.verdict == TD_DIVERGED;
}

/* Measures the pair in another layout, and keeps it when that makes the two agree. */
static bool try_layout(struct repair *r, struct td_pair *p, const struct td_layout *layout)
{
    struct td_pair before = *p;
    struct tdbg_error error;
    p->layout = layout;
    p->repaired = true;
    if (td_judge_pair(r->judge, p, r->pool, &r->scratch[p - r->diff->pairs], &error) == TDBG_OK &&
        p->ruling.verdict <= TD_WITHIN)
        return true;
    *p = before;
    return false;
}

/* --- what follows agrees -------------------------------------------------------------------------------- */

/* Something is computed from it, and all of that is right. */
static bool consumers_agree(struct repair *r, const struct td_pair *p)
{
    const struct td_diff *diff = r->diff;
    size_t fed = 0, after = (size_t)(p - diff->pairs) + 1; /* where most of them are */
    for (size_t i = 0; i < diff->count; i++) {
        if (r->questions == 0)
            return false;
        r->questions--;
        const struct td_pair *q = &diff->pairs[(after + i) % diff->count];
        if (q == p || !q->a || !td_pair_measured(q) || q->a->layer < 0 || !td_feeds(p->a, q->a))
            continue;
        if (diverged(q))
            return false;
        fed++;
    }
    return fed > 0;
}

/* Backwards, so that a chain of stages in one other layout (query, query_final) is unwound from its end. */
static void repair_by_consumers(struct repair *r)
{
    struct td_diff *diff = r->diff;
    for (size_t i = diff->count; i-- > 0;) {
        const struct td_layout *other = diff->alignments.list[i].other;
        struct td_pair *p = &diff->pairs[i];
        if (diverged(p) && other && consumers_agree(r, p))
            try_layout(r, p, other);
    }
}

/* --- every layer needs it ------------------------------------------------------------------------------- */

/* The same tensor of another layer, or the pair itself. */
static bool same_stage(const struct td_pair *p, const struct td_pair *q)
{
    return q->a && q->b && q->layer >= 0 && strcmp(p->stage, q->stage) == 0 && p->layout == q->layout;
}

static bool first_of_stage(const struct td_diff *diff, const struct td_pair *p)
{
    for (const struct td_pair *q = diff->pairs; q < p; q++)
        if (same_stage(p, q))
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
static bool is_fused_by_rank(const struct td_pair *p, const struct td_layout *layout)
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
 * confuses its heads does so in every layer. */
static void reorder_stage(struct repair *r, struct td_pair *first, const struct td_layout *order,
                          struct td_pair *before)
{
    struct td_diff *diff = r->diff;
    struct td_pair *end = diff->pairs + diff->count;
    const struct td_layout *shared = first->layout;
    size_t layers = 0, agreed = 0;
    for (struct td_pair *p = first; p < end; p++) {
        before[p - first] = *p;
        if (p->layout != shared || !same_stage(&before[0], p))
            continue;
        layers++;
        agreed += diverged(p) && (p->a->parameter || is_fused_by_rank(p, order) || consumers_agree(r, p)) &&
                  try_layout(r, p, order);
    }
    for (struct td_pair *p = first; p < end && (layers < 2 || agreed < layers); p++)
        if (p->layout == order)
            *p = before[p - first];
}

/* Only the first layer is searched for an order, so a checkpoint that differs everywhere costs one search for
 * each stage. Backwards, as above. */
static tdbg_status repair_orders(struct repair *r, struct tdbg_error *error)
{
    struct td_diff *diff = r->diff;
    struct td_pair *before = calloc(diff->count + 1, sizeof *before);
    tdbg_status status = before ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = diff->count; status == TDBG_OK && i-- > 0;) {
        struct td_pair *p = &diff->pairs[i];
        const struct td_layout *order = NULL;
        if (!diverged(p) || p->layer < 0 || !first_of_stage(diff, p))
            continue;
        status = td_reorder_find(&order, p->a, p->b, p->layout, r->heads, &diff->arena, error);
        if (order)
            reorder_stage(r, p, order, before);
    }
    free(before);
    return status;
}

tdbg_status td_repair_stored(struct td_diff *diff, const struct td_judge *judge,
                             const struct td_head_sizes *heads, struct td_pool *pool,
                             struct td_arena *scratch, struct tdbg_error *error)
{
    struct repair repair = {diff, judge, heads, pool, scratch, MAX_QUESTIONS};
    repair_by_consumers(&repair);
    return repair_orders(&repair, error);
}
