/* safetensors.c: reads .safetensors.
 *
 *     8 bytes   n, the header's length, little-endian
 *     n bytes   JSON, padded with spaces:
 *               {"__metadata__": {"format": "pt"},
 *                "layers.0.weight": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [0, 8192]}, …}
 *     the rest  the tensors' bytes, little-endian, row-major; data_offsets [begin, end) count from here
 *
 * As strict as the format's own library: ordered by offset, the tensors must cover the rest of the file
 * without hole, overlap or tail, and each range must be exactly what dtype and shape need. A file that was
 * cut short fails as a whole. What the format can say and tdbg cannot show (packed 4- and 6-bit floats, types
 * newer than this code) is skipped by name; its range is checked all the same.
 */
#include "base/cursor.h"
#include "format/json.h"
#include "format/reader.h"
#include "format/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_SIZE = 8 };

static const struct {
    const char *name;
    enum td_dtype dtype;
} dtypes[] = {
    {"F32", TD_F32},
    {"BF16", TD_BF16},
    {"F16", TD_F16},
    {"F64", TD_F64},
    {"F8_E4M3", TD_F8_E4M3FN},
    {"F8_E5M2", TD_F8_E5M2},
    {"F8_E4M3FNUZ", TD_F8_E4M3FNUZ},
    {"F8_E5M2FNUZ", TD_F8_E5M2FNUZ},
    {"I64", TD_I64},
    {"I32", TD_I32},
    {"I16", TD_I16},
    {"I8", TD_I8},
    {"U64", TD_U64},
    {"U32", TD_U32},
    {"U16", TD_U16},
    {"U8", TD_U8},
    {"BOOL", TD_BOOL},
    {"C64", TD_C64},
};

/* NULL: it has none. */
static const char *word_for(enum td_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

bool td_safetensors_holds(enum td_dtype dtype, const struct td_shape *shape)
{
    return dtype == TD_C128 ? shape->ndim < TD_MAX_DIMS : word_for(dtype) != NULL;
}

void td_safetensors_put(struct td_json *j, const char *name, enum td_dtype dtype,
                        const struct td_shape *shape, uint64_t begin, uint64_t end)
{
    struct td_shape stored = *shape;
    if (dtype == TD_C128)
        stored.size[stored.ndim++] = 2;
    td_json_key(j, name);
    td_json_begin_object(j);
    td_json_field_string(j, "dtype", word_for(dtype == TD_C128 ? TD_F64 : dtype));
    td_json_key(j, "shape");
    td_json_ints(j, stored.size, (size_t)stored.ndim);
    td_json_key(j, "data_offsets");
    td_json_ints(j, (const int64_t[]){(int64_t)begin, (int64_t)end}, 2);
    td_json_end_object(j);
}

void td_safetensors_put_note(struct td_json *j, const char *name)
{
    struct td_buffer key;
    td_buffer_init(&key, SIZE_MAX);
    td_buffer_printf(&key, TD_SAFETENSORS_PAIRS "%s", name);
    td_json_field_string(j, td_buffer_text(&key), "float64, real and imaginary part in the last axis");
    td_buffer_release(&key);
}

/* Whether the metadata say that the pairs of float64 of `name` are complex numbers. */
static bool has_note(json_t *metadata, const char *name)
{
    struct td_buffer key;
    if (json_object_size(metadata) == 0)
        return false;
    td_buffer_init(&key, SIZE_MAX);
    td_buffer_printf(&key, TD_SAFETENSORS_PAIRS "%s", name);
    bool noted = json_object_get(metadata, td_buffer_text(&key)) != NULL;
    td_buffer_release(&key);
    return noted;
}

/* One tensor of the header, as far as ordering by offset needs it. Strings and arrays are the JSON tree's. */
struct entry {
    const char *name, *dtype;
    json_t *shape;
    uint64_t begin, end;
    size_t place; /* in the header, to order empty tensors at one offset */
};

static bool probe(const struct td_source *source)
{
    if (source->size <= LENGTH_SIZE || source->data[LENGTH_SIZE] != '{')
        return false;
    struct td_cursor c = td_cursor_init(source->data, source->size);
    if (td_cursor_u64(&c) <= source->size - LENGTH_SIZE)
        return true;
    /* Cut short: the name tells whether to explain that, or to take the file for something else. */
    const char *dot = strrchr(source->name, '.');
    return dot && !strcmp(dot, ".safetensors");
}

static bool read_offset(json_t *offsets, size_t i, uint64_t *out)
{
    json_t *value = json_array_get(offsets, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static tdbg_status read_entry(struct entry *entry, const char *name, json_t *info, uint64_t data_size,
                              struct tdbg_error *error)
{
    entry->name = name;
    entry->dtype = json_string_value(json_object_get(info, "dtype"));
    entry->shape = json_object_get(info, "shape");
    json_t *offsets = json_object_get(info, "data_offsets");
    if (!entry->dtype)
        return td_fail(error, TDBG_CORRUPT, "has no dtype");
    if (!json_is_array(entry->shape))
        return td_fail(error, TDBG_CORRUPT, "has no shape");
    if (json_array_size(offsets) != 2 || !read_offset(offsets, 0, &entry->begin) ||
        !read_offset(offsets, 1, &entry->end))
        return td_fail(error, TDBG_CORRUPT, "data_offsets are not two offsets");
    if (entry->begin > entry->end)
        return td_fail(error, TDBG_CORRUPT, "data_offsets run backwards, from %" PRIu64 " to %" PRIu64,
                       entry->begin, entry->end);
    if (entry->end > data_size)
        return td_fail(error, TDBG_CORRUPT, "ends at byte %" PRIu64 " of the data, which has %" PRIu64,
                       entry->end, data_size);
    return TDBG_OK;
}

static tdbg_status check_metadata(json_t *metadata, struct tdbg_error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return td_fail(error, TDBG_CORRUPT, "__metadata__ is not a map of strings");
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return td_fail(
        error, TDBG_CORRUPT, "__metadata__ is not a map of strings");
    return TDBG_OK;
}

static int by_offset(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* All tensors of the header in the order of their bytes. */
static tdbg_status read_entries(json_t *header, uint64_t data_size, struct entry *entries, size_t *count,
                                struct tdbg_error *error)
{
    const char *name;
    json_t *info;
    size_t n = 0;
    json_object_foreach(header, name, info)
    {
        if (!strcmp(name, TD_SAFETENSORS_METADATA)) {
            TD_TRY(check_metadata(info, error));
            continue;
        }
        entries[n].place = n;
        tdbg_status status = read_entry(&entries[n++], name, info, data_size, error);
        if (status != TDBG_OK) {
            td_error_prefix(error, name);
            return status;
        }
    }
    qsort(entries, n, sizeof *entries, by_offset);
    *count = n;
    return TDBG_OK;
}

static tdbg_status check_cover(const struct entry *entries, size_t count, uint64_t data_size,
                               struct tdbg_error *error)
{
    uint64_t expected = 0;
    for (size_t i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        if (e->begin < expected)
            return td_fail(error, TDBG_CORRUPT, "%s: begins at byte %" PRIu64 " of the data, within %s",
                           e->name, e->begin, entries[i - 1].name);
        if (e->begin > expected)
            return td_fail(error, TDBG_CORRUPT, "%s: begins at byte %" PRIu64 " of the data, not at %" PRIu64,
                           e->name, e->begin, expected);
        expected = e->end;
    }
    if (expected != data_size)
        return td_fail(error, TDBG_CORRUPT,
                       "the tensors end at byte %" PRIu64 " of the data, which has %" PRIu64, expected,
                       data_size);
    return TDBG_OK;
}

static tdbg_status read_shape(json_t *array, struct td_shape *out, struct tdbg_error *error)
{
    size_t ndim = json_array_size(array);
    if (ndim > TD_MAX_DIMS)
        return td_fail(error, TDBG_LIMIT, "%zu dimensions, %d at most", ndim, TD_MAX_DIMS);
    out->ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        json_t *size = json_array_get(array, i);
        if (!json_is_integer(size))
            return td_fail(error, TDBG_CORRUPT, "size of axis %zu is not an integer", i);
        out->size[i] = json_integer_value(size);
    }
    return TDBG_OK;
}

static tdbg_status make_view(const struct entry *entry, enum td_dtype dtype, json_t *metadata,
                             const uint8_t *data, struct td_view *out, struct tdbg_error *error)
{
    struct td_shape shape;
    uint64_t need, have = entry->end - entry->begin;
    TD_TRY(read_shape(entry->shape, &shape, error));
    if (dtype == TD_F64 && shape.ndim > 0 && shape.size[shape.ndim - 1] == 2 &&
        has_note(metadata, entry->name)) {
        dtype = TD_C128;
        shape.ndim--;
    }
    TD_TRY(td_packed_bytes(dtype, &shape, &need, error));
    if (need != have)
        return td_fail(error, TDBG_CORRUPT, "%s needs %" PRIu64 " bytes for its shape, has %" PRIu64,
                       entry->dtype, need, have);
    return td_view_packed(out, data + entry->begin, have, dtype, &shape, error);
}

static tdbg_status add_entry(const struct entry *entry, json_t *metadata, const uint8_t *data,
                             struct td_catalog *out, struct tdbg_error *error)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, entry->dtype) != 0)
            continue;
        struct td_view view;
        struct tdbg_error why;
        tdbg_status status = make_view(entry, dtypes[i].dtype, metadata, data, &view, &why);
        if (status == TDBG_OK)
            return td_catalog_add_view(out, entry->name, td_reader_safetensors.name, &view, error);
        if (status == TDBG_LIMIT)
            return td_catalog_skip(out, entry->name, error, "%s", why.message);
        return td_fail(error, status, "%s: %s", entry->name, why.message);
    }
    return td_catalog_skip(out, entry->name, error, "dtype %s is not supported", entry->dtype);
}

static tdbg_status read_tensors(json_t *header, const uint8_t *data, uint64_t data_size,
                                struct td_catalog *out, struct tdbg_error *error)
{
    size_t count;
    json_t *metadata = json_object_get(header, TD_SAFETENSORS_METADATA);
    struct entry *entries = calloc(json_object_size(header) + 1, sizeof *entries);
    if (!entries)
        return td_fail_nomem(error);
    tdbg_status status = read_entries(header, data_size, entries, &count, error);
    if (status == TDBG_OK)
        status = check_cover(entries, count, data_size, error);
    for (size_t i = 0; status == TDBG_OK && i < count; i++)
        status = add_entry(&entries[i], metadata, data, out, error);
    free(entries);
    return status;
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct td_cursor c = td_cursor_init(source->data, source->size);
    uint64_t length = td_cursor_u64(&c);
    if (length > TD_MAX_SAFETENSORS_HEADER)
        return td_fail_at(error, TDBG_LIMIT, 0, "header of %" PRIu64 " bytes, %" PRIu64 " at most", length,
                          TD_MAX_SAFETENSORS_HEADER);
    const uint8_t *text = td_cursor_take(&c, length);
    if (!text)
        return td_fail_at(error, TDBG_CORRUPT, 0, "header of %" PRIu64 " bytes in a file of %zu", length,
                          source->size);
    json_t *header;
    TD_TRY(td_json_parse_object(&header, "header", text, (size_t)length, LENGTH_SIZE, error));
    tdbg_status status = read_tensors(header, text + length, td_cursor_left(&c), out, error);
    json_decref(header);
    return status;
}

const struct td_reader td_reader_safetensors = {.name = "safetensors", .probe = probe, .open = open_source};
