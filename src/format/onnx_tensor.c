/* onnx_tensor.c: the elements of a TensorProto. See onnx_tensor.h.
 *
 * Where they are, by what is filled in:
 *
 *     raw_data       the elements, little-endian and packed: viewed where they lie
 *     external_data  location, offset, length: the same, in another file beside this one
 *     float_data     float32, complex64 as pairs            fixed width: viewed where they lie when they came
 *     double_data    float64, complex128 as pairs           in one packed run, else gathered into scratch
 *     int32_data     int32 and everything of 8 and 16 bits, floats as their bit patterns    varints: decoded
 *     int64_data     int64                                                                  into scratch
 *     uint64_data    uint64, uint32
 *
 * Exactly one of them may be filled in, and it must hold exactly the elements the shape asks for.
 */
#include "format/onnx_tensor.h"

#include "base/checked.h"
#include "format/wire.h"

#include <inttypes.h>
#include <string.h>

/* The element types by their number in TensorProto.DataType. The schema of libonnx 1.12 ends at 16. */
struct element {
    const char *name; /* only of those that are not read */
    enum td_dtype dtype;
    enum td_onnx_data field;
};

static const struct element elements[] = {
    [1] = {NULL, TD_F32, TD_ONNX_FLOAT_DATA},
    [2] = {NULL, TD_U8, TD_ONNX_INT32_DATA},
    [3] = {NULL, TD_I8, TD_ONNX_INT32_DATA},
    [4] = {NULL, TD_U16, TD_ONNX_INT32_DATA},
    [5] = {NULL, TD_I16, TD_ONNX_INT32_DATA},
    [6] = {NULL, TD_I32, TD_ONNX_INT32_DATA},
    [7] = {NULL, TD_I64, TD_ONNX_INT64_DATA},
    [8] = {.name = "string"},
    [9] = {NULL, TD_BOOL, TD_ONNX_INT32_DATA},
    [10] = {NULL, TD_F16, TD_ONNX_INT32_DATA},
    [11] = {NULL, TD_F64, TD_ONNX_DOUBLE_DATA},
    [12] = {NULL, TD_U32, TD_ONNX_UINT64_DATA},
    [13] = {NULL, TD_U64, TD_ONNX_UINT64_DATA},
    [14] = {NULL, TD_C64, TD_ONNX_FLOAT_DATA},
    [15] = {NULL, TD_C128, TD_ONNX_DOUBLE_DATA},
    [16] = {NULL, TD_BF16, TD_ONNX_INT32_DATA},
    [17] = {NULL, TD_F8_E4M3FN, TD_ONNX_INT32_DATA},
    [18] = {NULL, TD_F8_E4M3FNUZ, TD_ONNX_INT32_DATA},
    [19] = {NULL, TD_F8_E5M2, TD_ONNX_INT32_DATA},
    [20] = {NULL, TD_F8_E5M2FNUZ, TD_ONNX_INT32_DATA},
    [21] = {.name = "uint4"},
    [22] = {.name = "int4"},
    [23] = {.name = "float4e2m1"},
    [24] = {.name = "float8e8m0"},
    [25] = {.name = "uint2"},
    [26] = {.name = "int2"},
};

static tdbg_status find_element(const Onnx__TensorProto *tensor, const struct element **out,
                                struct tdbg_error *error)
{
    int32_t type = tensor->data_type;
    if (type == 0)
        return td_fail(error, TDBG_CORRUPT, "no element type");
    if (type < 0 || (size_t)type >= sizeof elements / sizeof elements[0])
        return td_fail(error, TDBG_UNSUPPORTED, "elements of unknown type %" PRId32, type);
    if (elements[type].name)
        return td_fail(error, TDBG_UNSUPPORTED, "elements of type %s are not read", elements[type].name);
    *out = &elements[type];
    return TDBG_OK;
}

tdbg_status td_onnx_shape(size_t ndim, const int64_t *dims, struct td_shape *out, struct tdbg_error *error)
{
    if (ndim > TD_MAX_DIMS)
        return td_fail(error, TDBG_LIMIT, "%zu dimensions, %d at most", ndim, TD_MAX_DIMS);
    struct td_shape shape = {.ndim = (int)ndim};
    for (size_t i = 0; i < ndim; i++)
        shape.size[i] = dims[i];
    *out = shape;
    return TDBG_OK;
}

/* --- External data ------------------------------------------------------------------------------------- */

static tdbg_status parse_number(const char *key, const char *text, uint64_t *out, struct tdbg_error *error)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!td_mul_u64(value, 10, &value) || !td_add_u64(value, (uint64_t)(*at - '0'), &value))
            break;
    if (*at || at == text)
        return td_fail(error, TDBG_CORRUPT, "external data with %s '%.40s'", key, text);
    *out = value;
    return TDBG_OK;
}

/* The bytes of the tensor in the file its external_data names. Without a length: as many as it needs. */
static tdbg_status external_bytes(const struct td_source *source, const Onnx__TensorProto *tensor,
                                  uint64_t need, const uint8_t **data, struct tdbg_error *error)
{
    const char *location = NULL;
    uint64_t offset = 0, length = need;
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const char *key = tensor->external_data[i]->key, *value = tensor->external_data[i]->value;
        if (!key || !value)
            continue;
        if (strcmp(key, "location") == 0)
            location = value;
        else if (strcmp(key, "offset") == 0)
            TD_TRY(parse_number(key, value, &offset, error));
        else if (strcmp(key, "length") == 0)
            TD_TRY(parse_number(key, value, &length, error));
    }
    if (!location)
        return td_fail(error, TDBG_CORRUPT, "external data without a location");
    const struct td_source *sibling;
    tdbg_status status = td_source_sibling(source, location, &sibling, error);
    if (status != TDBG_OK) {
        td_error_prefix(error, location);
        td_error_prefix(error, "external data");
        return status;
    }
    if (length != need)
        return td_fail(error, TDBG_CORRUPT, "%" PRIu64 " bytes of external data, needs %" PRIu64, length,
                       need);
    if (!td_range_within(offset, length, sibling->size))
        return td_fail(error, TDBG_CORRUPT,
                       "external data at bytes %" PRIu64 " to %" PRIu64 " of '%s', which has %zu", offset,
                       offset + (length <= UINT64_MAX - offset ? length : 0), location, sibling->size);
    *data = need ? sibling->data + offset : NULL;
    return TDBG_OK;
}

/* --- Typed data ---------------------------------------------------------------------------------------- */

/* Element after element, as bits, out of a tensor's spans. */
struct values {
    const struct td_onnx_span *spans;
    size_t count;
    int width; /* bytes of a fixed-width element; 0: varints */
    struct td_cursor cursor;
};

/* False at the end, and on damage: then the cursor is bad. */
static bool next_value(struct values *v, uint64_t *out)
{
    while (td_cursor_left(&v->cursor) == 0) {
        if (v->count == 0)
            return false;
        v->cursor = td_cursor_init(v->spans->data, v->spans->size);
        v->spans++;
        v->count--;
    }
    if (v->spans[-1].tagged) {
        struct td_wire_field field;
        bool good = td_wire_next(&v->cursor, &field);
        *out = field.value;
        return good;
    }
    *out = v->width ? td_cursor_uint(&v->cursor, v->width) : td_wire_varint(&v->cursor);
    return !v->cursor.bad;
}

/* Fills `count` elements of `size` bytes; false when there are not exactly that many. */
static bool decode(struct values *values, enum td_dtype dtype, uint64_t count, size_t size, uint8_t *out)
{
    uint64_t value;
    for (uint64_t i = 0; i < count; i++) {
        if (!next_value(values, &value))
            return false;
        if (dtype == TD_BOOL)
            value = value != 0;
        for (size_t b = 0; b < size; b++)
            *out++ = (uint8_t)(value >> 8 * b);
    }
    return !next_value(values, &value) && !values->cursor.bad;
}

static tdbg_status in_place(const struct td_onnx_span *span, uint64_t need, const uint8_t **data,
                            struct tdbg_error *error)
{
    if (span->size != need)
        return td_fail(error, TDBG_CORRUPT, "needs %" PRIu64 " bytes of data, has %zu", need, span->size);
    *data = span->data;
    return TDBG_OK;
}

static tdbg_status typed_bytes(const struct td_source *source, const struct element *element,
                               const struct td_onnx_span *spans, size_t span_count, uint64_t need,
                               const uint8_t **data, struct tdbg_error *error)
{
    const enum td_dtype dtype = element->dtype;
    bool fixed = element->field == TD_ONNX_FLOAT_DATA || element->field == TD_ONNX_DOUBLE_DATA;
    if (fixed && span_count == 1 && !spans->tagged)
        return in_place(spans, need, data, error);
    size_t size = td_dtype_size(dtype);
    if (td_dtype_facts(dtype)->kind == TD_COMPLEX)
        size /= 2;
    uint64_t count = need / size, have = 0;
    for (size_t i = 0; i < span_count; i++)
        have += spans[i].size;
    /* An element takes a byte at least: what is allocated, the file has paid for. */
    if (count > have || count == 0)
        return td_fail(error, TDBG_CORRUPT, "needs %" PRIu64 " values, has %" PRIu64 " bytes of them", count,
                       have);
    void *scratch;
    TD_TRY(td_bundle_scratch(source->bundle, need, &scratch, error));
    struct values values = {.spans = spans, .count = span_count, .width = fixed ? (int)size : 0};
    if (!decode(&values, dtype, count, size, scratch))
        return td_fail(error, TDBG_CORRUPT, "not the %" PRIu64 " values its shape asks for", count);
    *data = scratch;
    return TDBG_OK;
}

/* --- All of it ----------------------------------------------------------------------------------------- */

static tdbg_status stored_bytes(const struct td_source *source, const struct td_onnx_file *file,
                                const Onnx__TensorProto *tensor, const struct element *element, uint64_t need,
                                const uint8_t **data, struct tdbg_error *error)
{
    const struct td_onnx_span *spans;
    size_t count = td_onnx_spans(file, tensor, &spans);
    if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        if (count)
            return td_fail(error, TDBG_CORRUPT, "data both here and in another file");
        return external_bytes(source, tensor, need, data, error);
    }
    for (size_t i = 1; i < count; i++)
        if (spans[i].field != spans[0].field)
            return td_fail(error, TDBG_CORRUPT, "data in more than one field");
    if (count && spans->field == TD_ONNX_RAW_DATA)
        return in_place(spans, need, data, error);
    if (count && spans->field != element->field)
        return td_fail(error, TDBG_CORRUPT, "elements of type %s in a field for another type",
                       td_dtype_name(element->dtype));
    if (need == 0 && count == 0) {
        *data = NULL;
        return TDBG_OK;
    }
    return typed_bytes(source, element, spans, count, need, data, error);
}

tdbg_status td_onnx_view(const struct td_source *source, const struct td_onnx_file *file,
                         const Onnx__TensorProto *tensor, struct td_view *out, struct tdbg_error *error)
{
    const struct element *element = NULL;
    struct td_shape shape;
    uint64_t need;
    const uint8_t *data = NULL;
    TD_TRY(find_element(tensor, &element, error));
    if (tensor->segment)
        return td_fail(error, TDBG_UNSUPPORTED, "a segment of a larger tensor");
    TD_TRY(td_onnx_shape(tensor->n_dims, tensor->dims, &shape, error));
    TD_TRY(td_packed_bytes(element->dtype, &shape, &need, error));
    TD_TRY(stored_bytes(source, file, tensor, element, need, &data, error));
    return td_view_packed(out, data, need, element->dtype, &shape, error);
}
