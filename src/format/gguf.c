/* gguf.c: reads GGUF, the files of ggml and llama.cpp, versions 2 and 3.
 *
 *     "GGUF"   u32 version   u64 tensors   u64 pairs
 *     pairs    string key, u32 type, value        a string is u64 length and bytes;
 *                                                 an array is u32 type, u64 count and elements
 *     tensors  string name, u32 axes, u64 size of each axis (the fastest first), u32 type, u64 offset
 *     padding to general.alignment (32 unless a pair says otherwise)
 *     data     each tensor at its offset from here, a multiple of the alignment
 *
 * All little-endian; a version 3 file of a big-endian machine has everything after the magic swapped, which
 * its version number shows. Axes are turned around: the last one is contiguous, as everywhere in tdbg.
 *
 * Of the pairs only general.alignment matters here: the rest is stepped over, within bounds. The tensor table
 * is walked twice, first to find where the data begins, then to make views; both walks check every step, so
 * nothing has to be kept in between.
 */
#include "base/checked.h"
#include "base/cursor.h"
#include "format/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGNMENT = 32, STRING = 8, ARRAY = 9, U32 = 4 };

/* The least a pair and a tensor can take: an empty name, a byte or no axes. */
enum { LEAST_PAIR = 8 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8 };

/* Bytes of a value by its type; strings and arrays are not of one size. */
static const uint8_t value_sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { VALUE_TYPES = sizeof value_sizes };

/* ggml's types by number. Those without `known` are listed so that the message can name them. */
static const struct {
    const char *name;
    bool known;
    enum td_dtype dtype;
} types[] = {
    [0] = {"f32", true, TD_F32},     [1] = {"f16", true, TD_F16},     [2] = {"q4_0", true, TD_Q4_0},
    [3] = {"q4_1", true, TD_Q4_1},   [4] = {"q4_2", false, 0},        [5] = {"q4_3", false, 0},
    [6] = {"q5_0", true, TD_Q5_0},   [7] = {"q5_1", true, TD_Q5_1},   [8] = {"q8_0", true, TD_Q8_0},
    [9] = {"q8_1", false, 0},        [10] = {"q2_k", true, TD_Q2_K},  [11] = {"q3_k", true, TD_Q3_K},
    [12] = {"q4_k", true, TD_Q4_K},  [13] = {"q5_k", true, TD_Q5_K},  [14] = {"q6_k", true, TD_Q6_K},
    [15] = {"q8_k", false, 0},       [16] = {"iq2_xxs", false, 0},    [17] = {"iq2_xs", false, 0},
    [18] = {"iq3_xxs", false, 0},    [19] = {"iq1_s", false, 0},      [20] = {"iq4_nl", true, TD_IQ4_NL},
    [21] = {"iq3_s", false, 0},      [22] = {"iq2_s", false, 0},      [23] = {"iq4_xs", true, TD_IQ4_XS},
    [24] = {"i8", true, TD_I8},      [25] = {"i16", true, TD_I16},    [26] = {"i32", true, TD_I32},
    [27] = {"i64", true, TD_I64},    [28] = {"f64", true, TD_F64},    [29] = {"iq1_m", false, 0},
    [30] = {"bf16", true, TD_BF16},  [31] = {"q4_0_4_4", false, 0},   [32] = {"q4_0_4_8", false, 0},
    [33] = {"q4_0_8_8", false, 0},   [34] = {"tq1_0", false, 0},      [35] = {"tq2_0", false, 0},
    [36] = {"iq4_nl_4_4", false, 0}, [37] = {"iq4_nl_4_8", false, 0}, [38] = {"iq4_nl_8_8", false, 0},
    [39] = {"mxfp4", false, 0},      [40] = {"nvfp4", false, 0},      [41] = {"q1_0", false, 0},
};
enum { TYPES = sizeof types / sizeof *types };

struct file {
    struct td_cursor c;
    bool swapped;
    uint64_t alignment;
};

struct info {
    const char *name; /* not terminated */
    uint64_t name_length, offset;
    uint32_t type;
    struct td_shape shape;
};

static uint64_t read_uint(struct file *f, int width)
{
    uint64_t value = td_cursor_uint(&f->c, width);
    return f->swapped ? __builtin_bswap64(value) >> (64 - 8 * width) : value;
}

static tdbg_status cut_short(const struct file *f, const char *where, struct tdbg_error *error)
{
    return td_fail_at(error, TDBG_CORRUPT, f->c.at, "the file ends within %s", where);
}

static bool probe(const struct td_source *source)
{
    return source->size >= 4 && !memcmp(source->data, "GGUF", 4);
}

/* --- Pairs --- */

static tdbg_status skip_value(struct file *f, uint32_t type, int depth, struct tdbg_error *error);

/* Elements of a fixed size go in one step, others one by one; each takes at least eight bytes, so a count
 * that lies ends with the file. */
static tdbg_status skip_array(struct file *f, int depth, struct tdbg_error *error)
{
    uint32_t type = (uint32_t)read_uint(f, 4);
    uint64_t count = read_uint(f, 8), bytes;
    if (depth >= TD_MAX_DEPTH)
        return td_fail_at(error, TDBG_LIMIT, f->c.at, "metadata nests deeper than %d", TD_MAX_DEPTH);
    if (type < VALUE_TYPES && value_sizes[type]) {
        if (!td_mul_u64(count, value_sizes[type], &bytes))
            return cut_short(f, "its metadata", error);
        td_cursor_take(&f->c, bytes);
        return TDBG_OK;
    }
    for (uint64_t i = 0; i < count && !f->c.bad; i++)
        TD_TRY(skip_value(f, type, depth + 1, error));
    return TDBG_OK;
}

static tdbg_status skip_value(struct file *f, uint32_t type, int depth, struct tdbg_error *error)
{
    if (type >= VALUE_TYPES)
        return td_fail_at(error, TDBG_CORRUPT, f->c.at, "metadata of unknown type %" PRIu32, type);
    if (type == ARRAY)
        return skip_array(f, depth, error);
    td_cursor_take(&f->c, type == STRING ? read_uint(f, 8) : value_sizes[type]);
    return TDBG_OK;
}

static tdbg_status read_alignment(struct file *f, uint32_t type, struct tdbg_error *error)
{
    if (type != U32)
        return td_fail_at(error, TDBG_CORRUPT, f->c.at, "general.alignment is not a u32");
    f->alignment = read_uint(f, 4);
    if (!f->c.bad && (f->alignment == 0 || (f->alignment & (f->alignment - 1))))
        return td_fail_at(error, TDBG_CORRUPT, f->c.at - 4, "an alignment of %" PRIu64 ", not a power of two",
                          f->alignment);
    return TDBG_OK;
}

static tdbg_status read_pairs(struct file *f, uint64_t count, struct tdbg_error *error)
{
    static const char alignment[] = "general.alignment";
    if (count > td_cursor_left(&f->c) / LEAST_PAIR)
        return cut_short(f, "its metadata", error);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = read_uint(f, 8);
        const uint8_t *key = td_cursor_take(&f->c, length);
        uint32_t type = (uint32_t)read_uint(f, 4);
        if (f->c.bad)
            return cut_short(f, "its metadata", error);
        if (length == sizeof alignment - 1 && !memcmp(key, alignment, length))
            TD_TRY(read_alignment(f, type, error));
        else
            TD_TRY(skip_value(f, type, 0, error));
        if (f->c.bad)
            return cut_short(f, "its metadata", error);
    }
    return TDBG_OK;
}

/* --- Tensors --- */

static tdbg_status read_info(struct file *f, struct info *out, struct tdbg_error *error)
{
    uint64_t start = f->c.at;
    *out = (struct info){.name_length = read_uint(f, 8)};
    out->name = (const char *)td_cursor_take(&f->c, out->name_length);
    uint64_t ndim = read_uint(f, 4);
    if (!f->c.bad && ndim > TD_MAX_DIMS)
        return td_fail_at(error, TDBG_LIMIT, start, "a tensor of %" PRIu64 " dimensions, %d at most", ndim,
                          TD_MAX_DIMS);
    for (uint64_t i = 0; i < ndim && !f->c.bad; i++) {
        uint64_t size = read_uint(f, 8);
        if (size > INT64_MAX)
            return td_fail_at(error, TDBG_LIMIT, start, "a tensor of more than 2^48 elements");
        out->shape.size[ndim - 1 - i] = (int64_t)size;
    }
    out->shape.ndim = (int)ndim;
    out->type = (uint32_t)read_uint(f, 4);
    out->offset = read_uint(f, 8);
    return f->c.bad ? cut_short(f, "its table of tensors", error) : TDBG_OK;
}

static tdbg_status make_view(const struct file *f, const struct info *info, const uint8_t *data,
                             uint64_t data_size, struct td_view *out, struct tdbg_error *error)
{
    enum td_dtype dtype = types[info->type].dtype;
    uint64_t need;
    TD_TRY(td_packed_bytes(dtype, &info->shape, &need, error));
    if (info->offset % f->alignment)
        return td_fail(error, TDBG_CORRUPT, "offset %" PRIu64 " is no multiple of %" PRIu64, info->offset,
                       f->alignment);
    if (!td_range_within(info->offset, need, data_size))
        return td_fail(error, TDBG_CORRUPT,
                       "%" PRIu64 " bytes at offset %" PRIu64 " reach beyond the data, which has %" PRIu64,
                       need, info->offset, data_size);
    TD_TRY(td_view_packed(out, data + info->offset, need, dtype, &info->shape, error));
    out->swapped = f->swapped;
    return TDBG_OK;
}

static tdbg_status add_tensor(const struct file *f, const struct info *info, const uint8_t *data,
                              uint64_t data_size, struct td_catalog *out, struct tdbg_error *error)
{
    if (info->name_length > TD_MAX_NAME)
        return td_fail(error, TDBG_LIMIT, "a name of %" PRIu64 " bytes, %d at most", info->name_length,
                       TD_MAX_NAME);
    char name[TD_MAX_NAME + 1];
    memcpy(name, info->name, info->name_length);
    name[info->name_length] = 0;
    if (info->type >= TYPES)
        return td_catalog_skip(out, name, error, "unknown type %" PRIu32, info->type);
    if (!types[info->type].known)
        return td_catalog_skip(out, name, error, "block format %s is not supported", types[info->type].name);
    if (f->swapped && !td_dtype_is_plain(types[info->type].dtype))
        return td_catalog_skip(out, name, error, "block format %s in a big-endian file is not supported",
                               types[info->type].name);
    struct td_view view;
    tdbg_status status = make_view(f, info, data, data_size, &view, error);
    if (status != TDBG_OK) {
        td_error_prefix(error, name);
        return status;
    }
    return td_catalog_add_view(out, name, td_reader_gguf.name, &view, error);
}

static int by_name(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

static tdbg_status check_names(const struct td_catalog *catalog, struct tdbg_error *error)
{
    const char **names = calloc(catalog->count + 1, sizeof *names);
    if (!names)
        return td_fail_nomem(error);
    for (size_t i = 0; i < catalog->count; i++)
        names[i] = catalog->tensors[i].name;
    qsort(names, catalog->count, sizeof *names, by_name);
    tdbg_status status = TDBG_OK;
    for (size_t i = 1; status == TDBG_OK && i < catalog->count; i++)
        if (!strcmp(names[i - 1], names[i]))
            status = td_fail(error, TDBG_CORRUPT, "two tensors are named %s", names[i]);
    free(names);
    return status;
}

static tdbg_status read_tensors(struct file *f, uint64_t count, struct td_catalog *out,
                                struct tdbg_error *error)
{
    struct info info;
    if (count > td_cursor_left(&f->c) / LEAST_TENSOR)
        return cut_short(f, "its table of tensors", error);
    struct file table = *f;
    for (uint64_t i = 0; i < count; i++)
        TD_TRY(read_info(f, &info, error));
    uint64_t start = (f->c.at + f->alignment - 1) / f->alignment * f->alignment;
    if (start > f->c.size) /* nothing but empty tensors will fit */
        start = f->c.size;
    uint64_t data_size = f->c.size - start;
    const uint8_t *data = f->c.data + start;
    for (uint64_t i = 0; i < count; i++) {
        TD_TRY(read_info(&table, &info, error));
        TD_TRY(add_tensor(f, &info, data, data_size, out, error));
    }
    return check_names(out, error);
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    struct file f = {.c = td_cursor_init(source->data, source->size), .alignment = DEFAULT_ALIGNMENT};
    td_cursor_take(&f.c, 4);
    uint32_t version = td_cursor_u32(&f.c);
    if ((version & 0xffff) == 0) {
        f.swapped = true;
        version = __builtin_bswap32(version);
    }
    uint64_t tensors = read_uint(&f, 8), pairs = read_uint(&f, 8);
    if (f.c.bad)
        return cut_short(&f, "its first fields", error);
    if (version != 2 && version != 3)
        return td_fail_at(error, TDBG_UNSUPPORTED, 4, "gguf version %" PRIu32 " is not supported", version);
    TD_TRY(read_pairs(&f, pairs, error));
    return read_tensors(&f, tensors, out, error);
}

const struct td_reader td_reader_gguf = {
    .name = "gguf", .probe = probe, .open = open_source, .keeps_order = true};
