/* npy_header.c: the header of a .npy array.
 *
 *     6 bytes   \x93 NUMPY
 *     2 bytes   version: 1.0, 2.0 or 3.0
 *     2 or 4    length of the text, little-endian; 2 bytes in version 1
 *     text      a Python dict, padded with spaces, Latin-1 (UTF-8 since version 3):
 *               {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * A structured type's descr is a list of fields, ('x', '<f4') or ('x', '<f4', (3,)) each, where the name may
 * be a (title, name) pair, the type a list again, and a field without a name is padding.
 *
 * The parser takes exactly that subset of Python: strings, integers, True and False, tuples, lists, with any
 * spacing and trailing commas, the three keys in any order, once each. It walks the text once, left to right;
 * lists nest at most TD_MAX_DEPTH deep.
 */
#include "format/npy_header.h"

#include "base/checked.h"
#include "base/cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_SIZE = 6 };

struct parser {
    const char *text, *at, *end;
    uint64_t offset; /* of the text in the file */
    bool latin1;
    struct td_arena *arena;
    struct tdbg_error *error;
};

/* --- Types --- */

static const struct {
    char kind;
    uint64_t size;
    enum td_dtype dtype;
} plain_types[] = {{'b', 1, TD_BOOL}, {'i', 1, TD_I8},  {'i', 2, TD_I16}, {'i', 4, TD_I32},  {'i', 8, TD_I64},
                   {'u', 1, TD_U8},   {'u', 2, TD_U16}, {'u', 4, TD_U32}, {'u', 8, TD_U64},  {'f', 2, TD_F16},
                   {'f', 4, TD_F32},  {'f', 8, TD_F64}, {'c', 8, TD_C64}, {'c', 16, TD_C128}};

/* Types that are no numbers, or numbers nobody can tell: `unit` bytes per unit of the size given, which is at
 * least `least`. */
static const struct {
    char kind;
    uint8_t unit, least;
    const char *reason;
} other_types[] = {
    {'O', 1, 0, "object array: holds Python objects"},
    {'S', 1, 0, "holds byte strings"},
    {'a', 1, 0, "holds byte strings"},
    {'U', 4, 0, "holds text"},
    {'M', 1, 0, "holds dates (datetime64)"},
    {'m', 1, 0, "holds time spans (timedelta64)"},
    {'V', 1, 0, "raw bytes: the file does not say their type (bfloat16 and float8 are saved like this)"},
    {'f', 1, 10, "long double: its layout differs between machines"},
    {'f', 1, 0,
     "floats of a size that numpy has none of: the file does not say their kind (float8_e5m2 is "
     "saved like this)"},
    {'c', 1, 0, "complex long double: its layout differs between machines"},
};

bool td_npy_type_parse(struct td_npy_type *out, const char *text)
{
    struct td_npy_type type = {.swapped = *text == '>'};
    if (*text && strchr("<>|=", *text))
        text++;
    char kind = *text ? *text++ : 0;
    while (*text >= '0' && *text <= '9')
        if (!td_mul_u64(type.size, 10, &type.size) ||
            !td_add_u64(type.size, (uint64_t)(*text++ - '0'), &type.size))
            return false;
    bool unit_follows = (kind == 'M' || kind == 'm') && *text == '[';
    if (*text && !unit_follows)
        return false;

    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++) {
        if (plain_types[i].kind != kind || plain_types[i].size != type.size)
            continue;
        type.dtype = plain_types[i].dtype;
        type.swapped = type.swapped && type.size > 1;
        *out = type;
        return true;
    }
    for (size_t i = 0; i < sizeof other_types / sizeof *other_types; i++) {
        if (other_types[i].kind != kind || type.size < other_types[i].least)
            continue;
        type.reason = other_types[i].reason;
        type.pickled = kind == 'O';
        if (!td_mul_u64(type.size, other_types[i].unit, &type.size))
            return false;
        *out = type;
        return true;
    }
    return false;
}

/* --- Tokens --- */

static tdbg_status fail(struct parser *p, const char *what)
{
    return td_fail_at(p->error, TDBG_CORRUPT, p->offset + (uint64_t)(p->at - p->text), "npy header: %s",
                      what);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at)
        p->at++;
}

static bool next_is(struct parser *p, char c)
{
    skip_space(p);
    return p->at < p->end && *p->at == c;
}

static bool accept(struct parser *p, char c)
{
    if (!next_is(p, c))
        return false;
    p->at++;
    return true;
}

static tdbg_status expect(struct parser *p, char c)
{
    char what[] = "expected ' '";
    what[10] = c;
    return accept(p, c) ? TDBG_OK : fail(p, what);
}

static bool accept_word(struct parser *p, const char *word)
{
    skip_space(p);
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* Between the elements of a sequence: takes the comma, and says whether another element follows. */
static tdbg_status more(struct parser *p, char close, bool *another)
{
    bool comma = accept(p, ',');
    *another = !accept(p, close);
    return *another && !comma ? fail(p, "expected a comma") : TDBG_OK;
}

/* Names are kept as UTF-8. Of the escapes only quotes and backslashes are undone: others stay readable. */
static tdbg_status parse_string(struct parser *p, const char **out)
{
    skip_space(p);
    char quote = p->at < p->end ? *p->at : 0;
    if (quote != '\'' && quote != '"')
        return fail(p, "expected a string");
    const char *from = ++p->at;
    while (p->at < p->end && *p->at != quote)
        p->at += *p->at == '\\' && p->end - p->at > 1 ? 2 : 1;
    if (p->at >= p->end)
        return fail(p, "a string does not end");

    char *copy = td_arena_array(p->arena, (size_t)(p->at - from) + 1, 2); /* Latin-1 may double */
    if (!copy)
        return td_fail_nomem(p->error);
    char *to = copy;
    for (; from < p->at; from++) {
        if (*from == '\\' && strchr("\\'\"", from[1]))
            from++;
        unsigned char c = (unsigned char)*from;
        if (c == 0)
            return fail(p, "a zero byte in a string");
        if (c >= 0x80 && p->latin1) {
            *to++ = (char)(0xc0 | c >> 6);
            *to++ = (char)(0x80 | (c & 0x3f));
        } else {
            *to++ = *from;
        }
    }
    p->at++;
    *out = copy;
    return TDBG_OK;
}

static tdbg_status parse_size(struct parser *p, int64_t *out)
{
    skip_space(p);
    if (p->at >= p->end || *p->at < '0' || *p->at > '9')
        return fail(p, "expected a size");
    int64_t value = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        if (!td_mul_i64(value, 10, &value) || !td_add_i64(value, *p->at - '0', &value))
            return fail(p, "a size beyond 64 bits");
        p->at++;
    }
    if (p->at < p->end && *p->at == 'L') /* Python 2 wrote long integers so */
        p->at++;
    *out = value;
    return TDBG_OK;
}

static tdbg_status parse_shape(struct parser *p, struct td_shape *out)
{
    *out = (struct td_shape){0};
    TD_TRY(expect(p, '('));
    if (accept(p, ')'))
        return TDBG_OK;
    for (bool another = true; another;) {
        if (out->ndim == TD_MAX_DIMS)
            return td_fail(p->error, TDBG_LIMIT, "more than %d dimensions", TD_MAX_DIMS);
        TD_TRY(parse_size(p, &out->size[out->ndim++]));
        if (out->ndim == 1 && next_is(p, ')'))
            return fail(p, "a shape is not a tuple");
        TD_TRY(more(p, ')', &another));
    }
    return TDBG_OK;
}

/* --- The descr --- */

static tdbg_status parse_type(struct parser *p, struct td_npy_type *out)
{
    const char *text;
    TD_TRY(parse_string(p, &text));
    if (!td_npy_type_parse(out, text))
        return td_fail_at(p->error, TDBG_CORRUPT, p->offset + (uint64_t)(p->at - p->text),
                          "npy header: '%s' is no numpy type", text);
    return TDBG_OK;
}

static tdbg_status parse_fields(struct parser *p, int depth, struct td_npy_field **fields, uint64_t *record);

/* Bytes of a field: of one element times its subarray. */
static tdbg_status field_size(struct parser *p, const struct td_npy_field *field, uint64_t *out)
{
    int64_t count;
    TD_TRY(td_shape_count(&field->shape, &count, p->error));
    return td_mul_u64(field->type.size, (uint64_t)count, out) ? TDBG_OK : fail(p, "a field beyond 64 bits");
}

static tdbg_status parse_field(struct parser *p, int depth, struct td_npy_field *field)
{
    TD_TRY(expect(p, '('));
    if (accept(p, '(')) {
        TD_TRY(parse_string(p, &field->name)); /* the title: the name counts */
        TD_TRY(expect(p, ','));
        TD_TRY(parse_string(p, &field->name));
        accept(p, ',');
        TD_TRY(expect(p, ')'));
    } else {
        TD_TRY(parse_string(p, &field->name));
    }
    TD_TRY(expect(p, ','));
    if (next_is(p, '[')) {
        struct td_npy_field *inner;
        TD_TRY(parse_fields(p, depth + 1, &inner, &field->type.size));
        field->type.reason = "a record within a record";
        for (; inner; inner = inner->next)
            field->type.pickled |= inner->type.pickled;
    } else {
        TD_TRY(parse_type(p, &field->type));
    }
    bool another;
    TD_TRY(more(p, ')', &another));
    if (!another)
        return TDBG_OK;
    TD_TRY(parse_shape(p, &field->shape));
    accept(p, ',');
    return expect(p, ')');
}

static tdbg_status parse_fields(struct parser *p, int depth, struct td_npy_field **fields, uint64_t *record)
{
    struct td_npy_field **last = fields;
    uint64_t offset = 0;
    *fields = NULL;
    if (depth > TD_MAX_DEPTH)
        return td_fail(p->error, TDBG_LIMIT, "npy header nests deeper than %d", TD_MAX_DEPTH);
    TD_TRY(expect(p, '['));
    for (bool another = !accept(p, ']'); another;) {
        uint64_t size;
        struct td_npy_field *field = td_arena_alloc(p->arena, sizeof *field);
        if (!field)
            return td_fail_nomem(p->error);
        TD_TRY(parse_field(p, depth, field));
        TD_TRY(field_size(p, field, &size));
        field->offset = offset;
        if (!td_add_u64(offset, size, &offset))
            return fail(p, "a record beyond 64 bits");
        *last = field;
        last = &field->next;
        TD_TRY(more(p, ']', &another));
    }
    *record = offset;
    return TDBG_OK;
}

static tdbg_status parse_descr(struct parser *p, struct td_npy_header *out)
{
    out->structured = next_is(p, '[');
    if (out->structured)
        return parse_fields(p, 0, &out->fields, &out->record);
    out->fields = td_arena_alloc(p->arena, sizeof *out->fields);
    if (!out->fields)
        return td_fail_nomem(p->error);
    out->fields->name = "";
    TD_TRY(parse_type(p, &out->fields->type));
    out->record = out->fields->type.size;
    return TDBG_OK;
}

/* --- The dict --- */

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static tdbg_status parse_item(struct parser *p, struct td_npy_header *out, int *seen)
{
    const char *key;
    TD_TRY(parse_string(p, &key));
    int which = !strcmp(key, "descr")           ? DESCR
                : !strcmp(key, "fortran_order") ? ORDER
                : !strcmp(key, "shape")         ? SHAPE
                                                : 0;
    if (!which)
        return fail(p, "a key that is not descr, fortran_order or shape");
    if (*seen & which)
        return fail(p, "a key that occurs twice");
    *seen |= which;
    TD_TRY(expect(p, ':'));
    if (which == DESCR)
        return parse_descr(p, out);
    if (which == SHAPE)
        return parse_shape(p, &out->shape);
    out->fortran_order = accept_word(p, "True");
    return out->fortran_order || accept_word(p, "False") ? TDBG_OK : fail(p, "expected True or False");
}

static tdbg_status parse_dict(struct parser *p, struct td_npy_header *out)
{
    int seen = 0;
    TD_TRY(expect(p, '{'));
    for (bool another = !accept(p, '}'); another;) {
        TD_TRY(parse_item(p, out, &seen));
        TD_TRY(more(p, '}', &another));
    }
    if (seen != ALL)
        return fail(p, "descr, fortran_order or shape is missing");
    skip_space(p);
    return p->at == p->end ? TDBG_OK : fail(p, "something follows the dict");
}

bool td_npy_probe(const uint8_t *data, size_t size)
{
    return size >= MAGIC_SIZE && !memcmp(data, magic, MAGIC_SIZE);
}

tdbg_status td_npy_header_parse(struct td_npy_header *out, const uint8_t *data, size_t size,
                                struct td_arena *arena, struct tdbg_error *error)
{
    if (!td_npy_probe(data, size))
        return td_fail_at(error, TDBG_CORRUPT, 0, "not a .npy array");
    struct td_cursor c = td_cursor_init(data, size);
    td_cursor_take(&c, MAGIC_SIZE);
    unsigned major = td_cursor_u8(&c), minor = td_cursor_u8(&c);
    if (!c.bad && (major < 1 || major > 3 || minor != 0))
        return td_fail_at(error, TDBG_UNSUPPORTED, MAGIC_SIZE, "npy version %u.%u is not supported", major,
                          minor);
    uint64_t length = td_cursor_uint(&c, major == 1 ? 2 : 4);
    if (!c.bad && length > TD_MAX_NPY_HEADER)
        return td_fail_at(error, TDBG_LIMIT, c.at, "npy header of %" PRIu64 " bytes, %" PRIu64 " at most",
                          length, TD_MAX_NPY_HEADER);
    const char *text = (const char *)td_cursor_take(&c, length);
    if (!text)
        return td_fail_at(error, TDBG_CORRUPT, c.at, "npy header is cut short");

    struct parser p = {.text = text,
                       .at = text,
                       .end = text + length,
                       .offset = c.at - length,
                       .latin1 = major < 3,
                       .arena = arena,
                       .error = error};
    struct td_npy_header header = {.size = c.at};
    TD_TRY(parse_dict(&p, &header));
    *out = header;
    return TDBG_OK;
}
