/* torch_storage.c: PyTorch's names for element types, and its persistent ids. See unpickle.h. */
#include "format/unpickle.h"

#include "base/checked.h"

#include <string.h>

/* torch.<storage>Storage was a class per element type until types grew too many; newer files name an untyped
 * storage and, beside it, the type. Types without a storage class were born later than that. */
static const struct {
    const char *storage, *name;
    enum td_dtype dtype;
} types[] = {
    {"FloatStorage", "float32", TD_F32},
    {"BFloat16Storage", "bfloat16", TD_BF16},
    {"HalfStorage", "float16", TD_F16},
    {"DoubleStorage", "float64", TD_F64},
    {"LongStorage", "int64", TD_I64},
    {"IntStorage", "int32", TD_I32},
    {"ShortStorage", "int16", TD_I16},
    {"CharStorage", "int8", TD_I8},
    {"ByteStorage", "uint8", TD_U8},
    {"BoolStorage", "bool", TD_BOOL},
    {"ComplexFloatStorage", "complex64", TD_C64},
    {"ComplexDoubleStorage", "complex128", TD_C128},
    {"QInt8Storage", "qint8", TD_QINT8},
    {"QUInt8Storage", "quint8", TD_QUINT8},
    {"QInt32Storage", "qint32", TD_QINT32},
    {"UntypedStorage", NULL, TD_U8},
    {"_UntypedStorage", NULL, TD_U8},
    {"Float8_e4m3fnStorage", "float8_e4m3fn", TD_F8_E4M3FN},
    {"Float8_e5m2Storage", "float8_e5m2", TD_F8_E5M2},
    {"Float8_e4m3fnuzStorage", "float8_e4m3fnuz", TD_F8_E4M3FNUZ},
    {"Float8_e5m2fnuzStorage", "float8_e5m2fnuz", TD_F8_E5M2FNUZ},
    {"UInt16Storage", "uint16", TD_U16},
    {"UInt32Storage", "uint32", TD_U32},
    {"UInt64Storage", "uint64", TD_U64},
};

static bool equals(const char *text, size_t size, const char *name)
{
    return name && strlen(name) == size && memcmp(text, name, size) == 0;
}

tdbg_status td_torch_dtype(const struct td_pickle_value *value, enum td_dtype *out, struct tdbg_error *error)
{
    static const char module[] = "torch.";
    const size_t skip = sizeof module - 1;
    if (!value || value->kind != TD_PICKLE_GLOBAL || value->count < skip || memcmp(value->text, module, skip))
        return td_fail(error, TDBG_CORRUPT, "%s where a dtype belongs",
                       value ? td_pickle_kind_name(value->kind) : "nothing");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (equals(value->text + skip, value->count - skip, types[i].name)) {
            *out = types[i].dtype;
            return TDBG_OK;
        }
    return td_fail(error, TDBG_UNSUPPORTED, "dtype %.*s", td_unpickle_width(value), value->text);
}

/* The class may come from torch, torch.cuda or torch.storage; only its own name counts, as in torch.load. */
static tdbg_status storage_dtype(const struct td_pickle_value *type, enum td_dtype *out,
                                 struct tdbg_error *error)
{
    if (!type || type->kind != TD_PICKLE_GLOBAL)
        return td_fail(error, TDBG_CORRUPT, "a storage without a type");
    const char *dot = memrchr(type->text, '.', type->count); /* a GLOBAL always has one */
    const char *name = dot ? dot + 1 : type->text;
    size_t size = type->count - (size_t)(name - type->text);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (equals(name, size, types[i].storage)) {
            *out = types[i].dtype;
            return TDBG_OK;
        }
    return td_fail(error, TDBG_UNSUPPORTED, "storage type %.*s", td_unpickle_width(type), type->text);
}

static tdbg_status element_bytes(const struct td_pickle_value *elements, enum td_dtype dtype, uint64_t *out,
                                 struct tdbg_error *error)
{
    int64_t count;
    TD_TRY(td_unpickle_int(elements, "a storage's size", &count, error));
    if (count < 0 || !td_mul_u64((uint64_t)count, td_dtype_size(dtype), out))
        return td_fail(error, TDBG_CORRUPT, "a storage of %lld elements", (long long)count);
    return TDBG_OK;
}

tdbg_status td_storage_id_parse(const struct td_pickle_value *id, struct td_storage_id *out,
                                struct tdbg_error *error)
{
    const struct td_pickle_value *tag = td_unpickle_item(id, 0);
    if (!td_pickle_is(tag, TD_PICKLE_STR, "storage") && !td_pickle_is(tag, TD_PICKLE_BYTES, "storage"))
        return td_fail(error, TDBG_UNSUPPORTED, "a persistent id that is no storage");
    struct td_storage_id found = {.key = td_unpickle_item(id, 2)};
    if (!found.key || (found.key->kind != TD_PICKLE_STR && found.key->kind != TD_PICKLE_BYTES))
        return td_fail(error, TDBG_CORRUPT, "a storage without a key");
    TD_TRY(storage_dtype(td_unpickle_item(id, 1), &found.dtype, error));
    TD_TRY(element_bytes(td_unpickle_item(id, 4), found.dtype, &found.bytes, error));
    found.view_bytes = found.bytes;

    const struct td_pickle_value *view = td_unpickle_item(id, 5);
    if (view && view->kind != TD_PICKLE_NONE) {
        TD_TRY(element_bytes(td_unpickle_item(view, 1), found.dtype, &found.view_offset, error));
        TD_TRY(element_bytes(td_unpickle_item(view, 2), found.dtype, &found.view_bytes, error));
        if (!td_range_within(found.view_offset, found.view_bytes, found.bytes))
            return td_fail(error, TDBG_CORRUPT, "a part of a storage that reaches beyond it");
    }
    *out = found;
    return TDBG_OK;
}
