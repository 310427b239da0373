/* torch_sparse.c: torch's sparse tensors as descriptors; densified only when values are read.
 *
 *     _rebuild_sparse_tensor      (layout, (indices, values, size[, is_coalesced]))          sparse_coo
 *                                 (layout, (offsets, indices, values, size))                 sparse_csr, _csc
 *     _rebuild_sparse_csr_tensor  (layout, (offsets, indices, values, size))
 *
 * Shapes are checked against each other here; whether an index lies within the shape shows only in the
 * values, so whoever reads them checks that.
 */
#include "format/unpickle.h"

#include <string.h>

/* A dense tensor that is part of a sparse one. */
static tdbg_status build_part(struct td_unpickle *u, const struct td_pickle_value *value, int depth,
                              bool indices, struct td_view *out, struct tdbg_error *error)
{
    struct td_tensor tensor;
    TD_TRY(td_rebuild_tensor(u, value, depth + 1, &tensor, error));
    if (tensor.sparse || tensor.affine)
        return td_fail(error, TDBG_UNSUPPORTED, "a sparse tensor of parts that are not dense");
    if (indices && tensor.dtype != TD_I64 && tensor.dtype != TD_I32)
        return td_fail(error, TDBG_CORRUPT, "sparse indices of type %s", td_dtype_name(tensor.dtype));
    *out = tensor.view;
    return TDBG_OK;
}

static tdbg_status misfit(struct tdbg_error *error)
{
    return td_fail(error, TDBG_CORRUPT, "sparse indices and values do not fit the shape");
}

/* indices [sparse axes, n], values [n, dense axes...] */
static tdbg_status check_coo(const struct td_sparse *s, struct tdbg_error *error)
{
    if (s->indices.shape.ndim != 2 || s->values.shape.ndim < 1 ||
        s->indices.shape.size[1] != s->values.shape.size[0])
        return misfit(error);
    int64_t sparse_axes = s->indices.shape.size[0];
    int dense_axes = s->values.shape.ndim - 1;
    if (sparse_axes + dense_axes != s->shape.ndim)
        return misfit(error);
    for (int i = 0; i < dense_axes; i++)
        if (s->values.shape.size[1 + i] != s->shape.size[sparse_axes + i])
            return misfit(error);
    return TDBG_OK;
}

/* offsets [batch..., rows or columns + 1], indices and values [batch..., n] */
static tdbg_status check_compressed(const struct td_sparse *s, struct tdbg_error *error)
{
    int batch = s->shape.ndim - 2;
    if (s->values.shape.ndim > s->indices.shape.ndim)
        return td_fail(error, TDBG_UNSUPPORTED, "a compressed sparse tensor with dense axes");
    if (batch < 0 || s->offsets.shape.ndim != batch + 1 || s->indices.shape.ndim != batch + 1 ||
        s->values.shape.ndim != batch + 1)
        return misfit(error);
    for (int i = 0; i < batch; i++)
        if (s->offsets.shape.size[i] != s->shape.size[i] || s->indices.shape.size[i] != s->shape.size[i] ||
            s->values.shape.size[i] != s->shape.size[i])
            return misfit(error);
    int64_t lines = s->shape.size[s->kind == TD_CSR ? batch : batch + 1];
    if (s->offsets.shape.size[batch] != lines + 1 ||
        s->indices.shape.size[batch] != s->values.shape.size[batch])
        return misfit(error);
    return TDBG_OK;
}

/* A layout is written as torch.serialization._get_layout("torch.sparse_coo"). */
static bool layout_is(const struct td_pickle_value *layout, const char *name)
{
    if (td_unpickle_is_call(layout, "torch.serialization._get_layout"))
        return td_pickle_is(td_unpickle_arg(layout->object, 0), TD_PICKLE_STR, name);
    return td_pickle_is(layout, TD_PICKLE_GLOBAL, name);
}

static uint64_t stored_bytes(const struct td_view *view)
{
    return (uint64_t)view->count * td_dtype_size(view->dtype);
}

tdbg_status td_build_sparse(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                            struct td_tensor *out, struct tdbg_error *error)
{
    const struct td_pickle_value *layout = td_unpickle_arg(object, 0), *data = td_unpickle_arg(object, 1);
    struct td_sparse *s = td_arena_alloc(&u->catalog->arena, sizeof *s);
    if (!s)
        return td_fail_nomem(error);
    size_t part = 0;
    if (layout_is(layout, "torch.sparse_coo"))
        s->kind = TD_COO;
    else if (layout_is(layout, "torch.sparse_csr"))
        s->kind = TD_CSR;
    else if (layout_is(layout, "torch.sparse_csc"))
        s->kind = TD_CSC;
    else
        return td_fail(error, TDBG_UNSUPPORTED, "a sparse layout other than COO, CSR and CSC");
    if (s->kind != TD_COO)
        TD_TRY(build_part(u, td_unpickle_item(data, part++), depth, true, &s->offsets, error));
    TD_TRY(build_part(u, td_unpickle_item(data, part++), depth, true, &s->indices, error));
    TD_TRY(build_part(u, td_unpickle_item(data, part++), depth, false, &s->values, error));
    TD_TRY(td_unpickle_shape(td_unpickle_item(data, part), "size", &s->shape, error));

    struct td_tensor tensor = {.format = u->format, .dtype = s->values.dtype, .shape = s->shape, .sparse = s};
    TD_TRY(td_shape_count(&s->shape, &tensor.count, error));
    TD_TRY(s->kind == TD_COO ? check_coo(s, error) : check_compressed(s, error));
    tensor.bytes = stored_bytes(&s->indices) + stored_bytes(&s->values);
    if (s->kind != TD_COO)
        tensor.bytes += stored_bytes(&s->offsets);
    *out = tensor;
    return TDBG_OK;
}
