/* torch_rebuild.c: from the arguments of torch's rebuild functions to tensor descriptors.
 *
 *     _rebuild_tensor            (storage, offset, size, stride)
 *     _rebuild_tensor_v2         (storage, offset, size, stride, requires_grad, hooks[, metadata])
 *     _rebuild_tensor_v3         (storage, offset, size, stride, requires_grad, hooks, dtype[, metadata])
 *     _rebuild_qtensor           (storage, offset, size, stride, quantizer, requires_grad, hooks)
 *                                quantizer: (per_tensor_affine, scale, zero)
 *                                           (per_channel_affine..., scales, zeros, axis)
 *     _rebuild_parameter         (tensor, requires_grad, hooks[, state])
 *     _rebuild_from_type_v2      (function, class, its arguments, state)
 *     _rebuild_device_tensor_from_numpy  (array, dtype, device, requires_grad); bfloat16 comes as float32
 *
 * Sparse tensors are in torch_sparse.c. Offset and strides count elements. metadata may say that the values
 * are to be conjugated or negated when read: such a tensor is refused, not shown with the wrong sign.
 */
#include "format/unpickle.h"

#include "base/checked.h"

#include <string.h>

/* torch.storage._load_from_bytes(b'...'): how pickle.dump, without torch.save, writes a storage. */
static tdbg_status unpack_storage(struct td_unpickle *u, const struct td_pickle_object *object,
                                  struct td_storage *out, struct tdbg_error *error)
{
    const uint8_t *data;
    size_t size;
    TD_TRY(td_unpickle_bytes(u, td_unpickle_arg(object, 0), &data, &size, error));
    /* Its elements are not gone through, but how many bytes are those only it can tell. */
    uint64_t budget = u->budget;
    TD_TRY(td_unpickle_spend(u, 1, error));
    tdbg_status status = td_torch_legacy_storage(data, size, out, error);
    uint64_t parsed = status == TDBG_OK ? size - out->bytes : size;
    u->budget = budget - (parsed < budget ? parsed : budget);
    return status;
}

static tdbg_status find_storage(struct td_unpickle *u, const struct td_pickle_value *value,
                                struct td_storage *out, struct tdbg_error *error)
{
    if (td_unpickle_is_call(value, "torch.storage._load_from_bytes"))
        return unpack_storage(u, value->object, out, error);
    if (!value || value->kind != TD_PICKLE_PERSID)
        return td_fail(error, TDBG_CORRUPT, "%s where a storage belongs",
                       value ? td_pickle_kind_name(value->kind) : "nothing");
    if (!u->find_storage)
        return td_fail(error, TDBG_UNSUPPORTED, "its storage was kept outside the pickle");
    return u->find_storage(u, value->id, out, error);
}

/* Storage, offset, size and stride: the first four arguments of every rebuild function. */
static tdbg_status build_view(struct td_unpickle *u, const struct td_pickle_object *object,
                              const enum td_dtype *dtype, struct td_view *out, struct tdbg_error *error)
{
    struct td_storage storage;
    struct td_shape shape, strides;
    int64_t offset;
    TD_TRY(td_unpickle_int(td_unpickle_arg(object, 1), "storage offset", &offset, error));
    TD_TRY(td_unpickle_shape(td_unpickle_arg(object, 2), "size", &shape, error));
    TD_TRY(td_unpickle_shape(td_unpickle_arg(object, 3), "stride", &strides, error));
    if (offset < 0)
        return td_fail(error, TDBG_CORRUPT, "storage offset %lld", (long long)offset);
    if (shape.ndim != strides.ndim)
        return td_fail(error, TDBG_CORRUPT, "%d sizes and %d strides", shape.ndim, strides.ndim);
    TD_TRY(find_storage(u, td_unpickle_arg(object, 0), &storage, error));
    enum td_dtype element = dtype ? *dtype : storage.dtype;
    TD_TRY(td_view_strided(out, storage.data, storage.bytes, element, (uint64_t)offset, &shape, strides.size,
                           error));
    out->swapped = storage.swapped && td_dtype_size(element) > 1;
    return TDBG_OK;
}

static bool is_true(const struct td_pickle_value *value)
{
    return value && value->kind != TD_PICKLE_NONE && !(value->kind == TD_PICKLE_BOOL && !value->integer);
}

static tdbg_status check_metadata(const struct td_pickle_value *metadata, struct tdbg_error *error)
{
    if (is_true(td_pickle_get(metadata, "conj")))
        return td_fail(error, TDBG_UNSUPPORTED, "its values are stored unconjugated (a lazy conj view)");
    if (is_true(td_pickle_get(metadata, "neg")))
        return td_fail(error, TDBG_UNSUPPORTED, "its values are stored unnegated (a lazy neg view)");
    return TDBG_OK;
}

static tdbg_status build_plain(struct td_unpickle *u, const struct td_pickle_object *object,
                               const enum td_dtype *dtype, struct td_tensor *out, struct tdbg_error *error)
{
    struct td_view view;
    TD_TRY(build_view(u, object, dtype, &view, error));
    if (!td_dtype_is_plain(view.dtype))
        return td_fail(error, TDBG_CORRUPT, "%s values without a scale", td_dtype_name(view.dtype));
    *out = td_unpickle_dense(u, &view);
    return TDBG_OK;
}

tdbg_status td_build_torch(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                           struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    TD_TRY(check_metadata(td_unpickle_arg(object, 6), error));
    return build_plain(u, object, NULL, out, error);
}

tdbg_status td_build_torch_v3(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                              struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    enum td_dtype dtype;
    TD_TRY(td_torch_dtype(td_unpickle_arg(object, 6), &dtype, error));
    TD_TRY(check_metadata(td_unpickle_arg(object, 7), error));
    return build_plain(u, object, &dtype, out, error);
}

/* A parameter is its tensor; a tensor of another device is the array it was copied to. */
tdbg_status td_build_inner(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                           struct td_tensor *out, struct tdbg_error *error)
{
    return td_rebuild_tensor(u, td_unpickle_arg(object, 0), depth + 1, out, error);
}

tdbg_status td_build_from_type(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                               struct td_tensor *out, struct tdbg_error *error)
{
    struct td_pickle_value *function = td_unpickle_arg(object, 0), *args = td_unpickle_arg(object, 2);
    if (!function || !args || args->kind != TD_PICKLE_TUPLE)
        return td_fail(error, TDBG_CORRUPT, "a tensor subclass without arguments");
    struct td_pickle_object inner = {.callable = function, .args = args};
    struct td_pickle_value value = {.kind = TD_PICKLE_OBJECT, .object = &inner};
    return td_rebuild_tensor(u, &value, depth + 1, out, error);
}

tdbg_status td_build_meta(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                          struct td_tensor *out, struct tdbg_error *error)
{
    (void)u, (void)object, (void)depth, (void)out;
    return td_fail(error, TDBG_UNSUPPORTED, "meta tensor: has a shape and no values");
}

tdbg_status td_build_wrapper(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                             struct td_tensor *out, struct tdbg_error *error)
{
    (void)u, (void)depth, (void)out;
    const struct td_pickle_value *type = td_unpickle_arg(object, 0);
    bool named = type && type->kind == TD_PICKLE_GLOBAL;
    return td_fail(error, TDBG_UNSUPPORTED, "wrapper tensor of class %.*s: has no values of its own",
                   named ? td_unpickle_width(type) : 7, named ? type->text : "unknown");
}

/* A storage saved by itself is a flat tensor; without a scale, quantised values are the integers they are. */
static tdbg_status flat_tensor(struct td_unpickle *u, const struct td_storage *storage, struct td_tensor *out,
                               struct tdbg_error *error)
{
    enum td_dtype dtype = storage->dtype;
    dtype = dtype == TD_QINT8 ? TD_I8 : dtype == TD_QUINT8 ? TD_U8 : dtype == TD_QINT32 ? TD_I32 : dtype;
    struct td_shape shape = {.ndim = 1, .size = {(int64_t)(storage->bytes / td_dtype_size(dtype))}};
    struct td_view view;
    TD_TRY(td_view_packed(&view, storage->data, storage->bytes, dtype, &shape, error));
    view.swapped = storage->swapped && td_dtype_size(dtype) > 1;
    *out = td_unpickle_dense(u, &view);
    return TDBG_OK;
}

tdbg_status td_build_storage(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                             struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    struct td_storage storage;
    TD_TRY(unpack_storage(u, object, &storage, error));
    return flat_tensor(u, &storage, out, error);
}

tdbg_status td_rebuild_storage(struct td_unpickle *u, const struct td_pickle_value *persid,
                               struct td_tensor *out, struct tdbg_error *error)
{
    struct td_storage storage;
    TD_TRY(find_storage(u, persid, &storage, error));
    return flat_tensor(u, &storage, out, error);
}

/* --- Quantised --- */

static tdbg_status build_numbers(struct td_unpickle *u, const struct td_pickle_value *list,
                                 struct td_view *out, struct tdbg_error *error)
{
    TD_TRY(td_unpickle_spend(u, list->count * sizeof(double), error));
    double *values = td_arena_array(&u->catalog->arena, list->count, sizeof *values);
    if (!values)
        return td_fail_nomem(error);
    for (size_t i = 0; i < list->count; i++) {
        const struct td_pickle_value *item = list->items[i];
        if (item->kind != TD_PICKLE_FLOAT && item->kind != TD_PICKLE_INT)
            return td_fail(error, TDBG_CORRUPT, "%s among scales", td_pickle_kind_name(item->kind));
        values[i] = item->kind == TD_PICKLE_FLOAT ? item->real : (double)item->integer;
    }
    struct td_shape shape = {.ndim = 1, .size = {(int64_t)list->count}};
    return td_view_packed(out, values, list->count * sizeof *values, TD_F64, &shape, error);
}

/* Scales or zero points, one for each index of an axis of this size: a tensor, in old files a list. */
static tdbg_status build_channel(struct td_unpickle *u, const struct td_pickle_value *value, int64_t size,
                                 int depth, struct td_view *out, struct tdbg_error *error)
{
    if (value && value->kind == TD_PICKLE_LIST) {
        TD_TRY(build_numbers(u, value, out, error));
    } else {
        struct td_tensor tensor;
        TD_TRY(td_rebuild_tensor(u, value, depth + 1, &tensor, error));
        enum td_kind kind = td_dtype_facts(tensor.dtype)->kind;
        if (tensor.sparse || tensor.affine || (kind != TD_FLOAT && kind != TD_INT))
            return td_fail(error, TDBG_CORRUPT, "scales of type %s", td_dtype_name(tensor.dtype));
        *out = tensor.view;
    }
    if (out->shape.ndim != 1 || out->shape.size[0] != size)
        return td_fail(error, TDBG_CORRUPT, "scales do not fit an axis of %lld", (long long)size);
    return TDBG_OK;
}

static tdbg_status build_per_tensor(struct td_unpickle *u, const struct td_pickle_value *params,
                                    struct td_affine *out, struct tdbg_error *error)
{
    const struct td_pickle_value *scale = td_unpickle_item(params, 1);
    int64_t zero;
    struct td_tensor tensor;
    TD_TRY(td_unpickle_int(td_unpickle_item(params, 2), "zero point", &zero, error));
    if (!scale || scale->kind != TD_PICKLE_FLOAT)
        return td_fail(error, TDBG_CORRUPT, "a quantised tensor without a scale");
    float single = (float)scale->real; /* what torch multiplies by */
    TD_TRY(td_unpickle_scalar(u, TD_F32, &single, &tensor, error));
    out->scale = tensor.view;
    TD_TRY(td_unpickle_scalar(u, TD_I64, &zero, &tensor, error));
    out->zero = tensor.view;
    out->axis = -1;
    return TDBG_OK;
}

static tdbg_status build_per_channel(struct td_unpickle *u, const struct td_pickle_value *params,
                                     const struct td_shape *shape, int depth, struct td_affine *out,
                                     struct tdbg_error *error)
{
    int64_t axis;
    TD_TRY(td_unpickle_int(td_unpickle_item(params, 3), "quantised axis", &axis, error));
    if (axis < 0 || axis >= shape->ndim)
        return td_fail(error, TDBG_CORRUPT, "quantised along axis %lld of %d", (long long)axis, shape->ndim);
    out->axis = (int)axis;
    TD_TRY(build_channel(u, td_unpickle_item(params, 1), shape->size[axis], depth, &out->scale, error));
    return build_channel(u, td_unpickle_item(params, 2), shape->size[axis], depth, &out->zero, error);
}

tdbg_status td_build_quantized(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                               struct td_tensor *out, struct tdbg_error *error)
{
    struct td_view view;
    TD_TRY(build_view(u, object, NULL, &view, error));
    if (td_dtype_facts(view.dtype)->kind != TD_AFFINE)
        return td_fail(error, TDBG_CORRUPT, "a quantised tensor of type %s", td_dtype_name(view.dtype));
    struct td_affine *affine = td_arena_alloc(&u->catalog->arena, sizeof *affine);
    if (!affine)
        return td_fail_nomem(error);
    const struct td_pickle_value *params = td_unpickle_arg(object, 4), *scheme = td_unpickle_item(params, 0);
    if (td_pickle_is(scheme, TD_PICKLE_GLOBAL, "torch.per_tensor_affine"))
        TD_TRY(build_per_tensor(u, params, affine, error));
    else if (td_pickle_is(scheme, TD_PICKLE_GLOBAL, "torch.per_channel_affine") ||
             td_pickle_is(scheme, TD_PICKLE_GLOBAL, "torch.per_channel_affine_float_qparams"))
        TD_TRY(build_per_channel(u, params, &view.shape, depth, affine, error));
    else
        return td_fail(error, TDBG_UNSUPPORTED, "a quantisation scheme other than affine");
    *out = td_unpickle_dense(u, &view);
    out->affine = affine;
    return TDBG_OK;
}
