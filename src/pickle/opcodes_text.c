/* opcodes_text.c: the opcodes of pickle protocol 0, whose arguments are lines of text.
 *
 *     I42\n      L42L\n      F1.5\n      S'it\'s'\n      Va\u0301\n      p3\n     g3\n
 *     cmodule\nname\n        (args imodule\nname\n       Pid\n
 *
 * I00 and I01 are False and True. S holds the repr of a Python 2 string, which is bytes; V holds Unicode
 * where \uXXXX and \UXXXXXXXX are escapes and every other byte is Latin-1.
 */
#include "pickle/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Decimal digits with a sign. OK with *fits false when it is a number but no int64. */
static tdbg_status parse_integer(struct td_machine *m, const char *text, size_t size, bool *fits,
                                 int64_t *out)
{
    size_t at = 0;
    bool negative = size > 0 && text[0] == '-';
    if (size > 0 && (text[0] == '-' || text[0] == '+'))
        at = 1;
    if (at == size)
        return td_machine_fail(m, TDBG_CORRUPT, "%s without digits", m->opcode);
    int64_t value = 0;
    *fits = true;
    for (; at < size; at++) {
        if (text[at] < '0' || text[at] > '9')
            return td_machine_fail(m, TDBG_CORRUPT, "%s of something that is no number", m->opcode);
        int digit = negative ? '0' - text[at] : text[at] - '0';
        if (*fits &&
            (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value)))
            *fits = false;
    }
    *out = value;
    return TDBG_OK;
}

static tdbg_status push_decimal(struct td_machine *m, const char *text, size_t size)
{
    bool fits;
    int64_t integer;
    TD_TRY(parse_integer(m, text, size, &fits, &integer));
    if (fits)
        return td_machine_push_integer(m, TD_PICKLE_INT, integer);
    TD_TRY(td_machine_push_text(m, TD_PICKLE_BIGINT, text, size));
    m->stack.values[m->stack.count - 1]->decimal = 1;
    return TDBG_OK;
}

tdbg_status td_op_int(struct td_machine *m)
{
    const char *text;
    size_t size;
    TD_TRY(td_machine_line(m, &text, &size));
    if (size == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
        return td_machine_push(m, text[1] == '1' ? m->yes : m->no);
    return push_decimal(m, text, size);
}

tdbg_status td_op_long(struct td_machine *m)
{
    const char *text;
    size_t size;
    TD_TRY(td_machine_line(m, &text, &size));
    if (size > 0 && text[size - 1] == 'L')
        size--;
    return push_decimal(m, text, size);
}

tdbg_status td_op_float(struct td_machine *m)
{
    const char *text;
    size_t size;
    char copy[128], *end;
    TD_TRY(td_machine_line(m, &text, &size));
    if (size == 0 || size >= sizeof copy)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of something that is no number", m->opcode);
    memcpy(copy, text, size);
    copy[size] = 0;
    if (!m->c_locale)
        m->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!m->c_locale)
        return td_fail_nomem(m->error);
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, TD_PICKLE_FLOAT, &value));
    value->real = strtod_l(copy, &end, m->c_locale);
    if (end != copy + size)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of something that is no number", m->opcode);
    return td_machine_push(m, value);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* `digits` hex digits at `text`, or -1. */
static int64_t parse_hex(const char *text, size_t left, size_t digits)
{
    int64_t value = 0;
    if (left < digits)
        return -1;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* One escape of a Python string literal at `text` (after the backslash): the byte, and how many characters it
 * took; 0 taken means that the backslash stands for itself. */
static size_t parse_escape(const char *text, size_t left, char *out)
{
    static const char names[] = "\\'\"abfnrtv", bytes[] = "\\'\"\a\b\f\n\r\t\v";
    const char *name = memchr(names, text[0], sizeof names - 1);
    if (name) {
        *out = bytes[name - names];
        return 1;
    }
    if (text[0] == 'x') {
        int64_t code = parse_hex(text + 1, left - 1, 2);
        *out = (char)code;
        return code < 0 ? 0 : 3;
    }
    size_t digits = 0;
    int code = 0;
    while (digits < 3 && digits < left && text[digits] >= '0' && text[digits] <= '7')
        code = code * 8 + (text[digits++] - '0');
    *out = (char)code;
    return digits;
}

tdbg_status td_op_string(struct td_machine *m)
{
    const char *text;
    size_t size;
    TD_TRY(td_machine_line(m, &text, &size));
    if (size < 2 || (text[0] != '\'' && text[0] != '"') || text[size - 1] != text[0])
        return td_machine_fail(m, TDBG_CORRUPT, "%s without quotes", m->opcode);
    text++;
    size -= 2;
    if (!memchr(text, '\\', size))
        return td_machine_push_python2(m, text, size);
    char *out = td_machine_text(m, size);
    if (!out)
        return TDBG_LIMIT;
    size_t length = 0;
    for (size_t at = 0; at < size;) {
        size_t taken = 0;
        if (text[at] == '\\' && at + 1 < size)
            taken = parse_escape(text + at + 1, size - at - 1, out + length);
        if (taken == 0)
            out[length] = text[at];
        length++;
        at += taken + 1;
    }
    return td_machine_push_python2(m, out, length);
}

tdbg_status td_machine_push_python2(struct td_machine *m, const char *text, size_t size)
{
    bool valid = td_machine_text_valid(text, size);
    TD_TRY(td_machine_push_text(m, valid ? TD_PICKLE_STR : TD_PICKLE_BYTES, text, size));
    m->stack.values[m->stack.count - 1]->python2 = valid;
    return TDBG_OK;
}

/* Surrogates are written like any other code point of their size. */
static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (char)(lead[more] | code >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

tdbg_status td_op_unicode(struct td_machine *m)
{
    const char *text;
    size_t size;
    TD_TRY(td_machine_line(m, &text, &size));
    bool plain = true;
    for (size_t i = 0; i < size && plain; i++)
        plain = (unsigned char)text[i] < 0x80 && text[i] != '\\';
    if (plain)
        return td_machine_push_text(m, TD_PICKLE_STR, text, size);

    char *out = td_machine_text(m, 2 * size); /* the worst: Latin-1 bytes, two each */
    if (!out)
        return TDBG_LIMIT;
    size_t length = 0;
    for (size_t at = 0; at < size;) {
        size_t digits = text[at] != '\\' || at + 1 == size ? 0
                        : text[at + 1] == 'u'              ? 4
                        : text[at + 1] == 'U'              ? 8
                                                           : 0;
        int64_t code = digits ? parse_hex(text + at + 2, size - at - 2, digits) : (unsigned char)text[at];
        if (code < 0 || code > 0x10ffff)
            return td_machine_fail(m, TDBG_CORRUPT, "%s with a bad escape", m->opcode);
        length += put_utf8(out + length, (uint32_t)code);
        at += digits ? digits + 2 : 1;
    }
    return td_machine_push_text(m, TD_PICKLE_STR, out, length);
}

tdbg_status td_op_persid(struct td_machine *m)
{
    const char *text;
    size_t size;
    struct td_pickle_value *id;
    TD_TRY(td_machine_line(m, &text, &size));
    TD_TRY(td_machine_push_python2(m, text, size));
    TD_TRY(td_machine_pop(m, &id));
    return td_machine_push_persid(m, id);
}

static tdbg_status parse_index(struct td_machine *m, uint64_t *index)
{
    const char *text;
    size_t size;
    bool fits;
    int64_t value;
    TD_TRY(td_machine_line(m, &text, &size));
    TD_TRY(parse_integer(m, text, size, &fits, &value));
    if (!fits || value < 0)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of a memo entry that cannot be", m->opcode);
    *index = (uint64_t)value;
    return TDBG_OK;
}

tdbg_status td_op_get(struct td_machine *m)
{
    uint64_t index;
    TD_TRY(parse_index(m, &index));
    return td_machine_recall(m, index);
}

tdbg_status td_op_put(struct td_machine *m)
{
    uint64_t index;
    TD_TRY(parse_index(m, &index));
    return td_machine_remember(m, index);
}

tdbg_status td_op_global(struct td_machine *m)
{
    const char *module, *name;
    size_t module_size, name_size;
    TD_TRY(td_machine_line(m, &module, &module_size));
    TD_TRY(td_machine_line(m, &name, &name_size));
    return td_machine_push_global(m, module, module_size, name, name_size);
}

tdbg_status td_op_inst(struct td_machine *m)
{
    struct td_pickle_value **values, *callable, *args;
    size_t count;
    TD_TRY(td_machine_pop_mark(m, &values, &count));
    TD_TRY(td_machine_push_items(m, TD_PICKLE_TUPLE, values, count));
    TD_TRY(td_machine_pop(m, &args));
    TD_TRY(td_op_global(m));
    TD_TRY(td_machine_pop(m, &callable));
    return td_machine_push_object(m, callable, args, NULL);
}
