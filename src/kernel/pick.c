/* pick.c: see pick.h. */
#include "kernel/pick.h"

#include <string.h>

enum { PIECE = 4096 }; /* elements of the tensor loaded at once to pick from */

/* The longest runs the slice allows: inner axes kept whole lie without gaps, and so does a range with step 1
 * of the axis before them. */
void td_pick_init(struct td_pick *pick, const struct td_loader *loader, const struct td_shape *shape,
                  const struct td_slice *slice)
{
    int axis = slice->ndim - 1;
    int64_t inner = 1; /* elements below one index of `axis` */
    for (; axis >= 0 && slice->axis[axis].step == 1 && slice->axis[axis].count == shape->size[axis]; axis--)
        inner *= shape->size[axis];
    *pick = (struct td_pick){.loader = loader, .slice = slice, .shape = shape, .run = inner, .step = 1};
    if (axis < 0)
        return;
    const struct td_slice_axis *partial = &slice->axis[axis];
    if (partial->step != 1 && inner > 1) {
        pick->outer = axis + 1;
        return;
    }
    pick->outer = axis;
    pick->run = partial->count * inner;
    pick->start = partial->start * inner;
    pick->step = partial->step;
}

/* `count` elements of the tensor from `first`, pick->step apart. */
static tdbg_status load_run(const struct td_pick *pick, int64_t first, int64_t count, char *out,
                            struct tdbg_error *error)
{
    if (pick->step == 1 || count == 1)
        return td_loader_read(pick->loader, first, count, out, error);
    _Alignas(16) char piece[PIECE * 16];
    size_t size = td_dtype_size(pick->loader->dtype);
    int64_t stride = pick->step < 0 ? -pick->step : pick->step;
    int64_t per_piece = (PIECE - 1) / stride + 1;
    while (count > 0) {
        int64_t n = count < per_piece ? count : per_piece, span = (n - 1) * stride + 1;
        int64_t low = pick->step < 0 ? first - (span - 1) : first;
        TD_TRY(td_loader_read(pick->loader, low, span, piece, error));
        for (int64_t i = 0; i < n; i++, out += size)
            memcpy(out, piece + (size_t)(first + i * pick->step - low) * size, size);
        first += n * pick->step;
        count -= n;
    }
    return TDBG_OK;
}

/* Where in the tensor's row-major order element `at` of the slice lies. */
static int64_t locate(const struct td_pick *pick, int64_t at)
{
    int64_t position = pick->start + at % pick->run * pick->step, rest = at / pick->run, stride = 1;
    for (int i = pick->slice->ndim - 1; i >= 0; i--) {
        const struct td_slice_axis *axis = &pick->slice->axis[i];
        if (i < pick->outer) {
            position += (axis->start + rest % axis->count * axis->step) * stride;
            rest /= axis->count;
        }
        stride *= pick->shape->size[i];
    }
    return position;
}

tdbg_status td_pick_load(const struct td_pick *pick, int64_t start, int64_t count, void *out,
                         struct tdbg_error *error)
{
    size_t size = td_dtype_size(pick->loader->dtype);
    for (char *at = out; count > 0;) {
        int64_t left = pick->run - start % pick->run, n = count < left ? count : left;
        TD_TRY(load_run(pick, locate(pick, start), n, at, error));
        at += (size_t)n * size;
        start += n;
        count -= n;
    }
    return TDBG_OK;
}
