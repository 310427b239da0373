/* model.c: see model.h. */
#include "compare/model.h"

#include "compare/judge/grid.h"

/* The length of the sequence: the size that most activations have in common. The first of four axes counts
 * sequences, and of two that are as frequent a batch is the far smaller one, though tokens may well be fewer
 * than heads: by half at least. */
static int64_t find_tokens(const struct td_side *side)
{
    int64_t sizes[64];
    size_t counts[64] = {0}, known = 0, best = 0;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_shape *shape = &side->items[i].parts[0]->shape;
        int last = side->items[i].parameter ? 0 : shape->ndim - 1; /* which holds channels */
        for (int d = shape->ndim == 4; d < last; d++) {
            size_t k = 0;
            while (k < known && sizes[k] != shape->size[d])
                k++;
            if (k == 64 || shape->size[d] < 2)
                continue;
            if (k == known)
                sizes[known++] = shape->size[d];
            counts[k]++;
        }
    }
    for (size_t k = 1; k < known; k++)
        if (counts[k] > counts[best] || (counts[k] == counts[best] && sizes[k] >= 2 * sizes[best]))
            best = k;
    return known ? sizes[best] : 0;
}

tdbg_status td_model_of_sides(struct td_model *out, const struct td_side *a, const struct td_side *b,
                              struct tdbg_error *error)
{
    struct td_model model = {.tokens = find_tokens(a)};
    const struct td_side *sides[] = {a, b};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++) {
            const struct td_item *item = &sides[s]->items[i];
            if (item->layer + 1 > model.layers)
                model.layers = item->layer + 1;
        }
    TD_TRY(td_head_sizes_find(&model.heads, sides, 2, error));
    for (int s = 0; s < 2; s++)
        model.grid[s] = td_side_grid(sides[s]);
    *out = model;
    return TDBG_OK;
}
