/* rotary.c: see rotary.h.
 *
 * Each is one of the candidates there are, with steps more. A head that is turned whole is split into
 * [2, half] on one side and [half, 2] on the other, whose axes are then exchanged: views only. The first
 * channels alone are reordered one by one.
 */
#include "compare/layout/rotary.h"

/* What another order costs on top. */
enum { COST_ORDER = 4 };

/* Adds `step` to the side that can be read in any order. */
static bool move(const struct td_candidates *c, struct td_layout *layout, struct td_step step)
{
    return td_steps_add(c->b_in_order ? &layout->a : &layout->b, step);
}

static bool push(struct td_candidates *c, struct td_candidate *made)
{
    made->cost += COST_ORDER;
    made->plain = made->as_it_stands = false;
    made->layout.rotary = true;
    return td_candidates_push(c, made);
}

/* [.., n, ..] as [.., n / head, 2, head / 2, ..], halves first, or the last two the other way round. */
static struct td_shape split_heads(const struct td_shape *shape, int axis, int64_t head, bool halves_first)
{
    struct td_shape out = *shape;
    out.size[axis] /= head;
    td_shape_insert(&out, axis + 1, halves_first ? 2 : head / 2);
    td_shape_insert(&out, axis + 2, halves_first ? head / 2 : 2);
    return out;
}

static bool push_whole(struct td_candidates *c, const struct td_candidate *base, int axis, int64_t head,
                       bool halves_in_b)
{
    struct td_candidate made = *base;
    struct td_layout *layout = &made.layout;
    struct td_shape a = split_heads(&layout->shape, axis, head, !halves_in_b);
    struct td_shape b = split_heads(&layout->shape, axis, head, halves_in_b);
    struct td_shape order = {.ndim = a.ndim};
    for (int i = 0; i < order.ndim; i++)
        order.size[i] = i;
    order.size[axis + 1] = axis + 2;
    order.size[axis + 2] = axis + 1;
    layout->shape = c->b_in_order ? b : a;
    if (!td_steps_add(&layout->a, (struct td_step){.kind = TD_STEP_RESHAPE, .list = a}) ||
        !td_steps_add(&layout->b, (struct td_step){.kind = TD_STEP_RESHAPE, .list = b}) ||
        !move(c, layout, (struct td_step){.kind = TD_STEP_PERMUTE, .list = order}))
        return true;
    return push(c, &made);
}

/* order[i]: where the channel that one side has at i of a head stands on the other, when the first n of the
 * head are rotated and the others not. */
static int64_t *partial_order(struct td_candidates *c, int64_t head, int64_t n, bool to_halves)
{
    int64_t *order = td_arena_array(&c->orders, (size_t)head, sizeof *order);
    for (int64_t i = 0; order && i < head; i++)
        order[i] = i >= n ? i : to_halves ? i % 2 * (n / 2) + i / 2 : i % (n / 2) * 2 + i / (n / 2);
    return order;
}

static bool push_partial(struct td_candidates *c, const struct td_candidate *base, int axis, int64_t head,
                         int64_t n, bool halves_in_b)
{
    struct td_candidate made = *base;
    struct td_layout *layout = &made.layout;
    if (layout->shape.size[axis] != head) {
        layout->shape.size[axis] /= head;
        td_shape_insert(&layout->shape, ++axis, head);
        struct td_step split = {.kind = TD_STEP_RESHAPE, .list = layout->shape};
        if (!td_steps_add(&layout->a, split) || !td_steps_add(&layout->b, split))
            return true;
    }
    int64_t *order = partial_order(c, head, n, halves_in_b != c->b_in_order);
    if (!order)
        return false;
    struct td_step step = {.kind = TD_STEP_REORDER, .axis = axis, .to = head, .order = order};
    return !move(c, layout, step) || push(c, &made);
}

/* The shares of a head that models rotate, in 20ths: of GPT-NeoX, of Phi-2, of GLM, of others. */
static bool push_partials(struct td_candidates *c, const struct td_candidate *base, int axis, int64_t head)
{
    static const int64_t shares[] = {5, 8, 10, 15};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        int64_t n = head * shares[i] / 20;
        if (head * shares[i] % 20 == 0 && n % 2 == 0 && n > 2 &&
            (!push_partial(c, base, axis, head, n, true) || !push_partial(c, base, axis, head, n, false)))
            return false;
    }
    return true;
}

/* Heads along the first or the last axis; where the heads have an axis of their own they end the last. */
static bool rotate_base(struct td_candidates *c, const struct td_candidate *base, int sizes, bool partly,
                        const struct td_head_sizes *heads)
{
    const struct td_shape *shape = &base->layout.shape;
    int last = shape->ndim - 1;
    if (last < 0 || shape->ndim + 2 > TD_MAX_DIMS)
        return true;
    for (int axis = 0; axis <= last; axis += last ? last : 1)
        for (int h = 0; h < sizes; h++) {
            int64_t head = td_head_size(heads, h);
            if (head == 0 || head % 2 || shape->size[axis] % head)
                continue;
            if (!push_whole(c, base, axis, head, true) || !push_whole(c, base, axis, head, false) ||
                (partly && h < heads->count && !push_partials(c, base, axis, head)))
                return false;
        }
    return true;
}

tdbg_status td_candidates_add_rotary(struct td_candidates *c, int64_t cut, int sizes, bool partly,
                                     const struct td_head_sizes *heads, struct tdbg_error *error)
{
    enum { MAX_BASES = 4 };
    int bases = 0, count = c->count;
    for (int i = 0; i < count && bases < MAX_BASES; i++) {
        const struct td_candidate base = c->list[i];
        if (base.proof != TD_PROOF_NONE || (cut != 0 && base.cut != cut))
            continue;
        if (!rotate_base(c, &base, sizes, partly, heads))
            return td_fail_nomem(error);
        bases++;
    }
    return TDBG_OK;
}
