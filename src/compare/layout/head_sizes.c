/* head_sizes.c: how wide a head may be, as candidates.h needs to know: seen where tensors have an axis for
 * it, guessed where all are flat.
 */
#include "compare/layout/candidates.h"

void td_head_sizes_add(struct td_head_sizes *heads, const struct td_shape *shape)
{
    if (shape->ndim < 3)
        return;
    int64_t size = shape->size[shape->ndim - 1];
    /* A head is rarely narrower than 8 or wider than 512. */
    if (size < 8 || size > 512 || heads->count == 16)
        return;
    for (int i = 0; i < heads->count; i++)
        if (heads->size[i] == size)
            return;
    heads->size[heads->count++] = size;
}

void td_head_sizes_guess(struct td_head_sizes *heads)
{
    /* Of published models; 8 and 16 are what tests of them use. */
    static const int64_t usual[] = {64, 128, 256, 32, 80, 96, 112, 160, 192, 40, 48, 16, 8};
    if (heads->count > 0)
        return;
    heads->guessed = true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        heads->size[heads->count++] = usual[i];
}
