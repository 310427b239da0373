/* selection.c: see selection.h. */
#include "session/selection.h"

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
    } else if (!s->whole) {
        td_pick_init(&s->pick, &s->loader, &tensor->shape, &s->slice);
    }
    return td_loader_init(&s->loader, &s->part, error);
}

void td_selection_release(struct td_selection *s)
{
    td_loader_release(&s->loader);
    *s = (struct td_selection){0};
}

tdbg_status td_selection_load(const struct td_selection *s, int64_t start, int64_t count, void *out,
                              struct tdbg_error *error)
{
    if (s->whole)
        return td_loader_read(&s->loader, start, count, out, error);
    return td_pick_load(&s->pick, start, count, out, error);
}

static tdbg_status load(const void *context, int64_t start, int64_t count, void *out,
                        struct tdbg_error *error)
{
    return td_selection_load(context, start, count, out, error);
}

struct td_elements td_selection_elements(const struct td_selection *s)
{
    return (struct td_elements){
        .dtype = s->loader.dtype, .count = s->slice.count, .context = s, .load = load};
}
