/* selection.c: see selection.h.
 *
 * Reading without strides: the last axis of the selection is a run `start, start + step, …` of the tensor's
 * row-major order. A dense run is loaded straight to its place; a sparse one in pieces of the tensor, from
 * which every step-th element is kept.
 */
#include "session/selection.h"

#include "kernel/load.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 }; /* elements of the tensor loaded at once to pick from */

tdbg_status td_selection_init(struct td_selection *out, const struct td_tensor *tensor, const char *text,
                              struct tdbg_error *error)
{
    struct td_selection s = {.tensor = tensor};
    TD_TRY(td_slice_parse(&s.slice, text, &tensor->shape, error));
    s.strided = td_dtype_is_plain(tensor->dtype) && !tensor->sparse && !tensor->affine;
    if (s.strided) {
        s.part = *tensor;
        s.part.view = td_slice_view(&s.slice, &tensor->view);
    } else if (td_slice_is_whole(&s.slice, &tensor->shape)) {
        s.part = *tensor;
        s.strided = true;
    }
    if (s.strided) {
        s.part.shape = s.slice.shape;
        s.part.count = s.slice.count;
    }
    *out = s;
    return TDBG_OK;
}

struct sink {
    char *out;
    size_t size; /* bytes per element */
    bool doubles;
};

static tdbg_status load(const struct td_tensor *tensor, int64_t start, int64_t count, void *out, bool doubles,
                        struct tdbg_error *error)
{
    return doubles ? td_load_f64(tensor, start, count, out, error)
                   : td_load(tensor, start, count, out, error);
}

/* `count` elements of the tensor from `first`, `step` apart. */
static tdbg_status load_run(const struct td_tensor *tensor, int64_t first, int64_t step, int64_t count,
                            struct sink *sink, struct tdbg_error *error)
{
    if (step == 1 || count == 1) {
        TD_TRY(load(tensor, first, count, sink->out, sink->doubles, error));
        sink->out += (size_t)count * sink->size;
        return TDBG_OK;
    }
    int64_t stride = step < 0 ? -step : step;
    int64_t per_piece = stride < PIECE ? (PIECE - 1) / stride + 1 : 1;
    _Alignas(16) char piece[PIECE * 16];
    while (count > 0) {
        int64_t n = count < per_piece ? count : per_piece, span = (n - 1) * stride + 1;
        int64_t low = step < 0 ? first - (span - 1) : first;
        TD_TRY(load(tensor, low, span, piece, sink->doubles, error));
        for (int64_t i = 0; i < n; i++, sink->out += sink->size)
            memcpy(sink->out, piece + (size_t)(first + i * step - low) * sink->size, sink->size);
        first += n * step;
        count -= n;
    }
    return TDBG_OK;
}

/* The row-major position in the tensor of element `at` of the selection, and how far the last axis of the
 * selection runs on from there. */
static int64_t locate(const struct td_selection *s, int64_t at, int64_t *step, int64_t *left)
{
    int64_t position = 0, stride = 1;
    *step = 1;
    *left = 1;
    bool last = true;
    for (int i = s->slice.ndim - 1; i >= 0; i--) {
        const struct td_slice_axis *axis = &s->slice.axis[i];
        int64_t index = axis->dropped ? 0 : at % axis->count;
        if (!axis->dropped) {
            at /= axis->count;
            if (last) {
                *step = axis->step * stride;
                *left = axis->count - index;
                last = false;
            }
        }
        position += (axis->start + index * axis->step) * stride;
        stride *= s->tensor->shape.size[i];
    }
    return position;
}

static tdbg_status load_any(const struct td_selection *s, int64_t start, int64_t count, void *out,
                            bool doubles, struct tdbg_error *error)
{
    if (s->strided)
        return load(&s->part, start, count, out, doubles, error);
    struct sink sink = {out, doubles ? sizeof(double) : td_dtype_size(td_value_dtype(s->tensor)), doubles};
    while (count > 0) {
        int64_t step, left, first = locate(s, start, &step, &left);
        int64_t n = count < left ? count : left;
        TD_TRY(load_run(s->tensor, first, step, n, &sink, error));
        start += n;
        count -= n;
    }
    return TDBG_OK;
}

tdbg_status td_selection_load(const struct td_selection *s, int64_t start, int64_t count, void *out,
                              struct tdbg_error *error)
{
    return load_any(s, start, count, out, false, error);
}

tdbg_status td_selection_load_f64(const struct td_selection *s, int64_t start, int64_t count, double *out,
                                  struct tdbg_error *error)
{
    return load_any(s, start, count, out, true, error);
}
