/* selection.c: see selection.h.
 *
 * Reading without strides: the last kept axis of the selection is a run `first, first + step, …` of the
 * tensor's row-major order. A run without gaps is loaded straight to its place; another one in pieces of the
 * tensor, from which every step-th element is kept.
 */
#include "session/selection.h"

#include <string.h>

enum { PIECE = 4096 }; /* elements of the tensor loaded at once to pick from */

/* The longest runs the slice allows: inner axes kept whole lie without gaps, and so does a range with step 1
 * of the axis before them. */
static void plan_runs(struct td_selection *s)
{
    int axis = s->slice.ndim - 1;
    int64_t inner = 1; /* elements below one index of `axis` */
    for (; s->slice.axis[axis].step == 1 && s->slice.axis[axis].count == s->tensor->shape.size[axis]; axis--)
        inner *= s->tensor->shape.size[axis];
    const struct td_slice_axis *partial = &s->slice.axis[axis];
    if (partial->step != 1 && inner > 1) {
        s->outer = axis + 1;
        s->run = inner;
        s->start = 0;
        s->step = 1;
        return;
    }
    s->outer = axis;
    s->run = partial->count * inner;
    s->start = partial->start * inner;
    s->step = partial->step;
}

tdbg_status td_selection_init(struct td_selection *s, const struct td_tensor *tensor, const char *text,
                              struct tdbg_error *error)
{
    *s = (struct td_selection){.tensor = tensor, .part = *tensor};
    TD_TRY(td_slice_parse(&s->slice, text, &tensor->shape, error));
    bool dense = td_dtype_is_plain(tensor->dtype) && !tensor->sparse && !tensor->affine;
    s->whole = dense || td_slice_is_whole(&s->slice, &tensor->shape);
    if (dense) {
        s->part.view = td_slice_view(&s->slice, &tensor->view);
        s->part.shape = s->slice.shape;
        s->part.count = s->slice.count;
        s->part.bytes = (uint64_t)s->slice.count * td_dtype_size(tensor->dtype);
    } else if (!s->whole && s->slice.count > 0) {
        plan_runs(s);
    }
    return td_loader_init(&s->loader, &s->part, error);
}

void td_selection_release(struct td_selection *s)
{
    td_loader_release(&s->loader);
    *s = (struct td_selection){0};
}

/* `count` elements of the tensor from `first`, s->step apart. */
static tdbg_status load_run(const struct td_selection *s, int64_t first, int64_t count, char *out,
                            struct tdbg_error *error)
{
    if (s->step == 1 || count == 1)
        return td_loader_read(&s->loader, first, count, out, error);
    _Alignas(16) char piece[PIECE * 16];
    size_t size = td_dtype_size(s->loader.dtype);
    int64_t stride = s->step < 0 ? -s->step : s->step;
    int64_t per_piece = (PIECE - 1) / stride + 1;
    while (count > 0) {
        int64_t n = count < per_piece ? count : per_piece, span = (n - 1) * stride + 1;
        int64_t low = s->step < 0 ? first - (span - 1) : first;
        TD_TRY(td_loader_read(&s->loader, low, span, piece, error));
        for (int64_t i = 0; i < n; i++, out += size)
            memcpy(out, piece + (size_t)(first + i * s->step - low) * size, size);
        first += n * s->step;
        count -= n;
    }
    return TDBG_OK;
}

/* Where in the tensor's row-major order element `at` of the selection lies. */
static int64_t locate(const struct td_selection *s, int64_t at)
{
    int64_t position = s->start + at % s->run * s->step, rest = at / s->run, stride = 1;
    for (int i = s->slice.ndim - 1; i >= 0; i--) {
        const struct td_slice_axis *axis = &s->slice.axis[i];
        if (i < s->outer) {
            position += (axis->start + rest % axis->count * axis->step) * stride;
            rest /= axis->count;
        }
        stride *= s->tensor->shape.size[i];
    }
    return position;
}

tdbg_status td_selection_load(const struct td_selection *s, int64_t start, int64_t count, void *out,
                              struct tdbg_error *error)
{
    if (s->whole)
        return td_loader_read(&s->loader, start, count, out, error);
    size_t size = td_dtype_size(s->loader.dtype);
    for (char *at = out; count > 0;) {
        int64_t left = s->run - start % s->run, n = count < left ? count : left;
        TD_TRY(load_run(s, locate(s, start), n, at, error));
        at += (size_t)n * size;
        start += n;
        count -= n;
    }
    return TDBG_OK;
}
