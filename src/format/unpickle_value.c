/* unpickle_value.c: reading integers, shapes and bytes out of pickled values. See unpickle.h. */
#include "format/unpickle.h"

#include "base/checked.h"

#include <string.h>

/* Bytes up to this many are decoded into the catalogue, more into scratch space, which comes in pages. */
enum { SMALL = 4096 };

struct td_pickle_value *td_unpickle_item(const struct td_pickle_value *value, size_t index)
{
    bool sequence = value && (value->kind == TD_PICKLE_TUPLE || value->kind == TD_PICKLE_LIST);
    return sequence && index < value->count ? value->items[index] : NULL;
}

bool td_unpickle_is_call(const struct td_pickle_value *value, const char *name)
{
    return value && value->kind == TD_PICKLE_OBJECT &&
           td_pickle_is(value->object->callable, TD_PICKLE_GLOBAL, name);
}

tdbg_status td_unpickle_int(const struct td_pickle_value *value, const char *what, int64_t *out,
                            struct tdbg_error *error)
{
    if (!value || (value->kind != TD_PICKLE_INT && value->kind != TD_PICKLE_BOOL))
        return td_fail(error, TDBG_CORRUPT, "%s is %s where an int belongs", what,
                       value ? td_pickle_kind_name(value->kind) : "missing");
    *out = value->integer;
    return TDBG_OK;
}

tdbg_status td_unpickle_shape(const struct td_pickle_value *value, const char *what, struct td_shape *out,
                              struct tdbg_error *error)
{
    if (td_unpickle_is_call(value, "torch.Size"))
        value = td_unpickle_arg(value->object, 0);
    if (!value || (value->kind != TD_PICKLE_TUPLE && value->kind != TD_PICKLE_LIST))
        return td_fail(error, TDBG_CORRUPT, "%s is %s where a tuple belongs", what,
                       value ? td_pickle_kind_name(value->kind) : "missing");
    if (value->count > TD_MAX_DIMS)
        return td_fail(error, TDBG_LIMIT, "%zu dimensions, %d at most", (size_t)value->count, TD_MAX_DIMS);
    out->ndim = (int)value->count;
    for (size_t i = 0; i < value->count; i++)
        TD_TRY(td_unpickle_int(value->items[i], what, &out->size[i], error));
    return TDBG_OK;
}

/* Number of code points, or SIZE_MAX when one is not Latin-1. The text is known to be UTF-8, where only code
 * points from U+0100 on have a byte of 0xc4 or more. */
static size_t latin1_length(const struct td_pickle_value *text)
{
    size_t length = 0;
    bool other = false;
    for (size_t i = 0; i < text->count; i++) {
        uint8_t byte = (uint8_t)text->text[i];
        other |= byte >= 0xc4;
        length += (byte & 0xc0) != 0x80;
    }
    return other ? SIZE_MAX : length;
}

static tdbg_status take_memory(struct td_unpickle *u, size_t size, void **out, struct tdbg_error *error)
{
    if (size > SMALL)
        return td_bundle_scratch(u->bundle, size, out, error);
    *out = td_arena_alloc(&u->catalog->arena, size);
    return *out ? TDBG_OK : td_fail_nomem(error);
}

tdbg_status td_unpickle_spend(struct td_unpickle *u, uint64_t bytes, struct tdbg_error *error)
{
    if (bytes > u->budget)
        return td_fail(error, TDBG_LIMIT, "the same bytes are gone through over and over");
    u->budget -= bytes;
    return TDBG_OK;
}

/* Makes the value bytes that outlive the graph. */
static void move_bytes(struct td_pickle_value *value, const void *memory, size_t size)
{
    value->kind = TD_PICKLE_BYTES;
    value->text = memory;
    value->count = size & TD_PICKLE_MAX_COUNT;
    value->moved = 1;
}

/* Bytes as they are: where they lie in the pickle; copied when its text had to be decoded to get at them. */
static tdbg_status keep_bytes(struct td_unpickle *u, struct td_pickle_value *value, struct tdbg_error *error)
{
    uintptr_t begin = (uintptr_t)u->data, at = (uintptr_t)value->text;
    if (value->moved)
        return TDBG_OK;
    void *memory = (void *)at;
    if (at < begin || !td_range_within(at - begin, value->count, u->size)) {
        TD_TRY(take_memory(u, value->count, &memory, error));
        if (value->count)
            memcpy(memory, value->text, value->count);
    }
    move_bytes(value, memory, value->count);
    return TDBG_OK;
}

/* Text whose code points are bytes. */
static tdbg_status decode_latin1(struct td_unpickle *u, struct td_pickle_value *text,
                                 struct tdbg_error *error)
{
    TD_TRY(td_unpickle_spend(u, text->count, error));
    size_t length = latin1_length(text);
    if (length == SIZE_MAX)
        return td_fail(error, TDBG_CORRUPT, "text that is not Latin-1 where bytes belong");
    if (length == text->count)
        return keep_bytes(u, text, error);
    void *memory;
    TD_TRY(take_memory(u, length, &memory, error));
    uint8_t *out = memory;
    for (const char *at = text->text, *end = at + text->count; at < end; at++) {
        uint8_t byte = (uint8_t)*at;
        *out++ = byte < 0x80 ? byte : (uint8_t)(byte << 6 | ((uint8_t) * ++at & 0x3f));
    }
    move_bytes(text, memory, length);
    return TDBG_OK;
}

bool td_unpickle_makes_bytes(const struct td_pickle_value *callable)
{
    static const char *const names[] = {"_codecs.encode", "builtins.bytes", "__builtin__.bytes",
                                        "builtins.bytearray", "__builtin__.bytearray"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (td_pickle_is(callable, TD_PICKLE_GLOBAL, names[i]))
            return true;
    return false;
}

tdbg_status td_unpickle_bytes(struct td_unpickle *u, struct td_pickle_value *value, const uint8_t **data,
                              size_t *size, struct tdbg_error *error)
{
    if (value && value->kind == TD_PICKLE_OBJECT && td_unpickle_makes_bytes(value->object->callable)) {
        if (value->object->args->count == 0) {
            *data = (const uint8_t *)"";
            *size = 0;
            return TDBG_OK;
        }
        const struct td_pickle_value *encoding = td_unpickle_arg(value->object, 1);
        if (encoding && !td_pickle_is(encoding, TD_PICKLE_STR, "latin1") &&
            !td_pickle_is(encoding, TD_PICKLE_STR, "latin-1"))
            return td_fail(error, TDBG_UNSUPPORTED, "bytes written in an encoding other than Latin-1");
        value = td_unpickle_arg(value->object, 0);
    }
    if (value && value->kind == TD_PICKLE_BUFFER)
        return td_fail(error, TDBG_UNSUPPORTED, "its bytes were kept outside the pickle");
    if (!value || (value->kind != TD_PICKLE_BYTES && value->kind != TD_PICKLE_STR))
        return td_fail(error, TDBG_CORRUPT, "%s where bytes belong",
                       value ? td_pickle_kind_name(value->kind) : "nothing");
    bool encoded = value->kind == TD_PICKLE_STR && !value->python2;
    TD_TRY(encoded ? decode_latin1(u, value, error) : keep_bytes(u, value, error));
    *data = (const uint8_t *)value->text;
    *size = value->count;
    return TDBG_OK;
}

tdbg_status td_unpickle_scalar(struct td_unpickle *u, enum td_dtype dtype, const void *value,
                               struct td_tensor *out, struct tdbg_error *error)
{
    size_t size = td_dtype_size(dtype);
    void *copy = td_arena_alloc(&u->catalog->arena, size);
    if (!copy)
        return td_fail(error, TDBG_LIMIT, "more scalars than tdbg takes on");
    memcpy(copy, value, size);
    struct td_view view;
    const struct td_shape shape = {0};
    TD_TRY(td_view_packed(&view, copy, size, dtype, &shape, error));
    *out = td_unpickle_dense(u, &view);
    return TDBG_OK;
}

struct td_tensor td_unpickle_dense(const struct td_unpickle *u, const struct td_view *view)
{
    return (struct td_tensor){
        .format = u->format,
        .dtype = view->dtype,
        .shape = view->shape,
        .count = view->count,
        .bytes = (uint64_t)view->count * td_dtype_size(view->dtype),
        .view = *view,
    };
}
