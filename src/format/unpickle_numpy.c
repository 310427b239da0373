/* unpickle_numpy.c: numpy arrays and scalars inside pickles.
 *
 *     _reconstruct(class, (0,), b'b'), state ([version,] shape, dtype, is_fortran, bytes)
 *     _frombuffer(bytes, dtype, shape, 'C' or 'F')               protocol 5
 *     scalar(dtype, bytes)
 *     dtype('f4', align, copy), state (version, '<', subarray, names, fields, ...)
 *
 * The type strings are those of .npy files and parsed there. bfloat16 and float8 come from the ml_dtypes
 * package, which names its scalar class instead.
 */
#include "format/unpickle.h"

#include "format/npy_header.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum td_dtype dtype;
} ml_dtypes[] = {
    {"ml_dtypes.bfloat16", TD_BF16},
    {"ml_dtypes.float8_e4m3fn", TD_F8_E4M3FN},
    {"ml_dtypes.float8_e5m2", TD_F8_E5M2},
    {"ml_dtypes.float8_e4m3fnuz", TD_F8_E4M3FNUZ},
    {"ml_dtypes.float8_e5m2fnuz", TD_F8_E5M2FNUZ},
};

struct element {
    enum td_dtype dtype;
    bool swapped;
};

static bool is_none(const struct td_pickle_value *value)
{
    return !value || value->kind == TD_PICKLE_NONE;
}

static tdbg_status parse_class(const struct td_pickle_value *type, struct element *out,
                               struct tdbg_error *error)
{
    for (size_t i = 0; i < sizeof ml_dtypes / sizeof *ml_dtypes; i++)
        if (td_pickle_is(type, TD_PICKLE_GLOBAL, ml_dtypes[i].name)) {
            out->dtype = ml_dtypes[i].dtype;
            return TDBG_OK;
        }
    return td_fail(error, TDBG_UNSUPPORTED, "numpy dtype %.*s", td_unpickle_width(type), type->text);
}

static tdbg_status parse_dtype(const struct td_pickle_value *value, struct element *out,
                               struct tdbg_error *error)
{
    if (!td_unpickle_is_call(value, "numpy.dtype"))
        return td_fail(error, TDBG_CORRUPT, "%s where a numpy dtype belongs",
                       value ? td_pickle_kind_name(value->kind) : "nothing");
    const struct td_pickle_value *type = td_unpickle_arg(value->object, 0), *state = value->object->state;
    if (!is_none(td_unpickle_item(state, 2)) || !is_none(td_unpickle_item(state, 3)))
        return td_fail(error, TDBG_UNSUPPORTED, "a structured numpy array");
    const struct td_pickle_value *order = td_unpickle_item(state, 1);
    out->swapped = td_pickle_is(order, TD_PICKLE_STR, ">");
    if (type && type->kind == TD_PICKLE_GLOBAL)
        return parse_class(type, out, error);

    char text[32];
    if (!type || type->kind != TD_PICKLE_STR || type->count >= sizeof text)
        return td_fail(error, TDBG_CORRUPT, "a numpy dtype without a type");
    snprintf(text, sizeof text, "%.*s", td_unpickle_width(type), type->text);
    struct td_npy_type parsed;
    if (!td_npy_type_parse(&parsed, text))
        return td_fail(error, TDBG_UNSUPPORTED, "numpy dtype '%s'", text);
    if (parsed.reason)
        return td_fail(error, TDBG_UNSUPPORTED, "numpy array: %s", parsed.reason);
    out->dtype = parsed.dtype;
    out->swapped = (out->swapped || parsed.swapped) && td_dtype_size(parsed.dtype) > 1;
    return TDBG_OK;
}

static tdbg_status build(struct td_unpickle *u, struct td_pickle_value *bytes,
                         const struct td_pickle_value *dtype, const struct td_shape *shape, bool fortran,
                         struct td_tensor *out, struct tdbg_error *error)
{
    struct element element = {TD_F32, false};
    const uint8_t *data;
    size_t size;
    uint64_t need;
    TD_TRY(parse_dtype(dtype, &element, error));
    TD_TRY(td_unpickle_bytes(u, bytes, &data, &size, error));
    TD_TRY(td_packed_bytes(element.dtype, shape, &need, error));
    if (need != size)
        return td_fail(error, TDBG_CORRUPT, "needs %llu bytes of data, has %zu", (unsigned long long)need,
                       size);
    struct td_view view;
    TD_TRY(td_view_packed(&view, data, size, element.dtype, shape, error));
    if (fortran) {
        int64_t stride = 1;
        for (int i = 0; i < shape->ndim; i++) {
            view.strides[i] = stride;
            stride *= shape->size[i] ? shape->size[i] : 1;
        }
    }
    view.swapped = element.swapped;
    *out = td_unpickle_dense(u, &view);
    return TDBG_OK;
}

/* The state's entries from the shape on: the version in front of them is missing in the oldest arrays. */
static bool find_state(const struct td_pickle_object *object, struct td_pickle_value **shape)
{
    const struct td_pickle_value *state = object->state;
    if (!state || state->kind != TD_PICKLE_TUPLE || (state->count != 5 && state->count != 4))
        return false;
    for (int i = 0; i < 4; i++)
        shape[i] = state->items[state->count - 4 + (size_t)i];
    return true;
}

tdbg_status td_build_numpy(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                           struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    struct td_pickle_value *state[4];
    struct td_shape shape;
    int64_t fortran;
    if (!find_state(object, state))
        return td_fail(error, TDBG_CORRUPT, "a numpy array without a state");
    TD_TRY(td_unpickle_shape(state[0], "shape", &shape, error));
    TD_TRY(td_unpickle_int(state[2], "is_fortran", &fortran, error));
    return build(u, state[3], state[1], &shape, fortran != 0, out, error);
}

const struct td_pickle_value *td_numpy_objects(const struct td_pickle_object *object)
{
    struct td_pickle_value *state[4];
    return find_state(object, state) && state[3]->kind == TD_PICKLE_LIST ? state[3] : NULL;
}

tdbg_status td_build_numpy_buffer(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                                  struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    struct td_shape shape;
    TD_TRY(td_unpickle_shape(td_unpickle_arg(object, 2), "shape", &shape, error));
    bool fortran = td_pickle_is(td_unpickle_arg(object, 3), TD_PICKLE_STR, "F");
    return build(u, td_unpickle_arg(object, 0), td_unpickle_arg(object, 1), &shape, fortran, out, error);
}

tdbg_status td_build_numpy_scalar(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                                  struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    const struct td_shape shape = {0};
    return build(u, td_unpickle_arg(object, 1), td_unpickle_arg(object, 0), &shape, false, out, error);
}
