/* reorder.c: see reorder.h.
 *
 * A slab of A takes the slab of B that has the nearest print (slabs.h) and is not taken yet; then the whole
 * is scored like any other layout.
 */
#include "compare/layout/reorder.h"

#include "compare/layout/sampled.h"
#include "compare/layout/slabs.h"
#include "kernel/compare.h"

#include <math.h>
#include <stdlib.h>

/* Slabs of two heads that stay together fit where most pairs do: a fit as good as this leaves none behind. */
static const double COMPLETE = 0.99;

/* More slabs than that are no heads or experts but channels, whose order nobody changes. */
enum { MOST_SLABS = 512 };

static tdbg_status take_prints(const struct td_operand *o, const struct td_slabs *s, double *prints,
                               struct tdbg_error *error)
{
    int64_t indices[TD_SLAB_PROBES];
    for (int64_t k = 0; k < s->size; k++) {
        for (int p = 0; p < TD_SLAB_PROBES; p++)
            indices[p] = td_slab_probe(s, k, p);
        TD_TRY(td_operand_gather(o, indices, TD_SLAB_PROBES, prints + k * TD_SLAB_PROBES, error));
    }
    return TDBG_OK;
}

/* order[i]: which slab of B is A's slab i. */
static tdbg_status find_order(const struct td_item *a, const struct td_item *b,
                              const struct td_layout *layout, int axis, int64_t *order, bool *moved,
                              struct td_arena *arena, struct tdbg_error *error)
{
    struct td_operand x, y;
    struct td_slabs s = td_slabs_of(&layout->shape, axis);
    *moved = false;
    if (s.outer * s.inner == 0 || td_operand_make(&x, a, &layout->a, arena, NULL) != TDBG_OK ||
        td_operand_make(&y, b, &layout->b, arena, NULL) != TDBG_OK)
        return TDBG_OK; /* a view that cannot be had is no candidate */
    double *prints = calloc((size_t)s.size * TD_SLAB_PROBES * 2, sizeof *prints);
    if (!prints)
        return td_fail_nomem(error);
    double *prints_b = prints + s.size * TD_SLAB_PROBES;
    tdbg_status status = take_prints(&x, &s, prints, error);
    if (status == TDBG_OK)
        status = take_prints(&y, &s, prints_b, error);
    if (status == TDBG_OK && !td_slabs_match(prints_b, prints, s.size, order))
        status = td_fail_nomem(error);
    for (int64_t i = 0; i < s.size && status == TDBG_OK; i++)
        *moved = *moved || order[i] != i;
    free(prints);
    return status;
}

/* The layout with slabs of `axis` in the order that fits best, and how well; 0 when that is where they are.
 */
static tdbg_status try_axis(struct td_layout *layout, const struct td_item *a, const struct td_item *b,
                            int axis, double *fit, struct td_arena *arena, struct tdbg_error *error)
{
    int64_t size = layout->shape.size[axis], *order = NULL;
    bool moved = false;
    *fit = 0;
    if (size < 2 || size > MOST_SLABS || layout->b.count == TD_MAX_STEPS)
        return TDBG_OK;
    order = td_arena_array(arena, (size_t)size, sizeof *order);
    if (!order)
        return td_fail_nomem(error);
    TD_TRY(find_order(a, b, layout, axis, order, &moved, arena, error));
    if (!moved)
        return TDBG_OK;
    layout->b.step[layout->b.count++] =
        (struct td_step){.kind = TD_STEP_REORDER, .axis = axis, .to = size, .order = order};
    layout->by_value = true;
    *fit = td_layout_fit(a, b, layout);
    return TDBG_OK;
}

/* [.., heads * size, ..] as [.., heads, size, ..] on both sides. */
static bool split_heads(struct td_layout *layout, int axis, int64_t size)
{
    struct td_shape *shape = &layout->shape;
    if (shape->size[axis] % size || shape->size[axis] == size || shape->ndim == TD_MAX_DIMS ||
        layout->a.count == TD_MAX_STEPS || layout->b.count == TD_MAX_STEPS)
        return false;
    for (int i = shape->ndim++; i > axis + 1; i--)
        shape->size[i] = shape->size[i - 1];
    shape->size[axis] /= size;
    shape->size[axis + 1] = size;
    struct td_step step = {.kind = TD_STEP_RESHAPE, .list = *shape};
    layout->a.step[layout->a.count++] = step;
    layout->b.step[layout->b.count++] = step;
    return true;
}

tdbg_status td_reorder_find(const struct td_layout **out, const struct td_item *a, const struct td_item *b,
                            const struct td_layout *layout, const struct td_head_sizes *heads,
                            struct td_arena *arena, struct tdbg_error *error)
{
    struct td_layout *best = td_arena_alloc(arena, sizeof *best);
    double best_fit = TD_CONVINCING;
    if (!best)
        return td_fail_nomem(error);
    for (int h = 0; h <= heads->count; h++) /* last, the axes as they are */
        for (int axis = 0; axis < layout->shape.ndim && best_fit < COMPLETE; axis++) {
            struct td_layout tried = *layout;
            double fit = 0;
            if (h == heads->count || split_heads(&tried, axis, heads->size[h]))
                TD_TRY(try_axis(&tried, a, b, axis, &fit, arena, error));
            if (!(fit > best_fit))
                continue;
            best_fit = fit;
            *best = tried;
        }
    *out = best_fit > TD_CONVINCING ? best : NULL;
    return TDBG_OK;
}
