/* regroup.c: see regroup.h. Heads are slabs of the last axis; one side's are read in the order of the
 * other's.
 *
 * How many queries share a key is not known: every number is tried that makes whole groups. A wrong one fits
 * no values.
 */
#include "compare/layout/regroup.h"

/* What another order costs on top, as for rotary orders. */
enum { COST_ORDER = 4 };

/* More heads than that in one tensor are none. */
enum { MOST_HEADS = 1024, MOST_SHARED = 64 };

/* Where the head that stands at i in groups stands in blocks. */
static int64_t in_blocks(int64_t i, int64_t groups, int64_t queries)
{
    int64_t group = i / (queries + 2), slot = i % (queries + 2);
    if (slot < queries)
        return group * queries + slot;
    return groups * queries + (slot - queries) * groups + group;
}

static int64_t *order_of(struct td_candidates *c, int64_t heads, int64_t queries, bool to_groups)
{
    int64_t *order = td_arena_array(&c->orders, (size_t)heads, sizeof *order), groups = heads / (queries + 2);
    for (int64_t i = 0; order && i < heads; i++)
        *(to_groups ? &order[i] : &order[in_blocks(i, groups, queries)]) =
            to_groups ? in_blocks(i, groups, queries) : i;
    return order;
}

static bool push(struct td_candidates *c, const struct td_candidate *base, int64_t size, int64_t queries,
                 bool to_groups)
{
    struct td_candidate made = *base;
    struct td_layout *layout = &made.layout;
    int axis = layout->shape.ndim - 1;
    int64_t heads = layout->shape.size[axis] / size, *order = order_of(c, heads, queries, to_groups);
    if (!order)
        return false;
    layout->shape.size[axis] = heads;
    td_shape_insert(&layout->shape, axis + 1, size);
    struct td_step split = {.kind = TD_STEP_RESHAPE, .list = layout->shape};
    struct td_step step = {.kind = TD_STEP_REORDER, .axis = axis, .to = heads, .order = order};
    if (!td_steps_add(&layout->a, split) || !td_steps_add(&layout->b, split) ||
        !td_steps_add(c->b_in_order ? &layout->a : &layout->b, step))
        return true;
    made.cost += COST_ORDER;
    made.plain = made.as_it_stands = false;
    return td_candidates_push(c, &made);
}

tdbg_status td_candidates_add_regrouped(struct td_candidates *c, const struct td_head_sizes *heads,
                                        struct tdbg_error *error)
{
    const struct td_candidate base = c->list[0];
    const struct td_shape *shape = &base.layout.shape;
    if (shape->ndim < 1 || shape->ndim + 1 > TD_MAX_DIMS)
        return TDBG_OK;
    for (int h = 0; h < td_head_sizes_any(heads); h++) {
        int64_t size = td_head_size(heads, h), width = shape->size[shape->ndim - 1];
        int64_t count = size && width % size == 0 ? width / size : 0;
        for (int64_t queries = 1; count >= 6 && count <= MOST_HEADS && queries <= MOST_SHARED; queries++) {
            if (count % (queries + 2) || count / (queries + 2) < 2) /* one group lies as blocks do */
                continue;
            if (!push(c, &base, size, queries, true) || !push(c, &base, size, queries, false))
                return td_fail_nomem(error);
        }
    }
    return TDBG_OK;
}
