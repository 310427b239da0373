/* opcodes.c: the binary opcodes of pickle protocols 1 to 5, and the table of all.
 *
 * An opcode is one byte, then its argument: a fixed number of bytes, a length and that many bytes, or (those
 * of protocol 0, in opcodes_text.c) lines of text.
 */
#include "pickle/machine.h"

#include <string.h>

/* --- Plain values --- */

static tdbg_status op_proto(struct td_machine *m)
{
    uint8_t version = td_cursor_u8(&m->in);
    if (version > 5)
        return td_machine_fail(m, TDBG_UNSUPPORTED, "protocol %d, 5 is the newest known", version);
    return TDBG_OK;
}

static tdbg_status op_frame(struct td_machine *m)
{
    uint64_t size = td_cursor_u64(&m->in);
    if (!m->in.bad && size > td_cursor_left(&m->in))
        return td_machine_fail(m, TDBG_CORRUPT, "a frame of %llu bytes with %zu left",
                               (unsigned long long)size, td_cursor_left(&m->in));
    return TDBG_OK;
}

static tdbg_status op_stop(struct td_machine *m)
{
    m->stopped = true;
    return TDBG_OK;
}

static tdbg_status op_none(struct td_machine *m)
{
    return td_machine_push(m, m->none);
}

static tdbg_status op_newtrue(struct td_machine *m)
{
    return td_machine_push(m, m->yes);
}

static tdbg_status op_newfalse(struct td_machine *m)
{
    return td_machine_push(m, m->no);
}

static tdbg_status op_binint(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_INT, (int32_t)td_cursor_u32(&m->in));
}

static tdbg_status op_binint1(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_INT, td_cursor_u8(&m->in));
}

static tdbg_status op_binint2(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_INT, td_cursor_u16(&m->in));
}

/* Two's complement, little-endian, as many bytes as it needs. */
static tdbg_status push_long(struct td_machine *m, uint64_t size)
{
    const uint8_t *bytes = td_cursor_take(&m->in, size);
    if (!bytes)
        return td_machine_truncated(m);
    if (size > 8)
        return td_machine_push_text(m, TD_PICKLE_BIGINT, bytes, (size_t)size);
    uint64_t value = size && bytes[size - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return td_machine_push_integer(m, TD_PICKLE_INT, (int64_t)value);
}

static tdbg_status op_long1(struct td_machine *m)
{
    return push_long(m, td_cursor_u8(&m->in));
}

static tdbg_status op_long4(struct td_machine *m)
{
    uint32_t size = td_cursor_u32(&m->in);
    if (size > INT32_MAX)
        return td_machine_fail(m, TDBG_CORRUPT, "an integer of negative length");
    return push_long(m, size);
}

static tdbg_status op_binfloat(struct td_machine *m)
{
    const uint8_t *bytes = td_cursor_take(&m->in, 8);
    if (!bytes)
        return td_machine_truncated(m);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, TD_PICKLE_FLOAT, &value));
    memcpy(&value->real, &bits, sizeof bits);
    return td_machine_push(m, value);
}

/* --- Text and bytes --- */

static tdbg_status push_bytes(struct td_machine *m, uint64_t size)
{
    const uint8_t *bytes = td_cursor_take(&m->in, size);
    return bytes ? td_machine_push_text(m, TD_PICKLE_BYTES, bytes, (size_t)size) : td_machine_truncated(m);
}

static tdbg_status push_unicode(struct td_machine *m, uint64_t size)
{
    const char *text = (const char *)td_cursor_take(&m->in, size);
    if (!text)
        return td_machine_truncated(m);
    if (!td_machine_text_valid(text, (size_t)size))
        return td_machine_fail(m, TDBG_CORRUPT, "%s of text that is not UTF-8", m->opcode);
    return td_machine_push_text(m, TD_PICKLE_STR, text, (size_t)size);
}

static tdbg_status push_string(struct td_machine *m, uint64_t size)
{
    const char *text = (const char *)td_cursor_take(&m->in, size);
    return text ? td_machine_push_python2(m, text, (size_t)size) : td_machine_truncated(m);
}

static tdbg_status op_short_binbytes(struct td_machine *m)
{
    return push_bytes(m, td_cursor_u8(&m->in));
}

static tdbg_status op_binbytes(struct td_machine *m)
{
    return push_bytes(m, td_cursor_u32(&m->in));
}

static tdbg_status op_binbytes8(struct td_machine *m)
{
    return push_bytes(m, td_cursor_u64(&m->in));
}

static tdbg_status op_short_binunicode(struct td_machine *m)
{
    return push_unicode(m, td_cursor_u8(&m->in));
}

static tdbg_status op_binunicode(struct td_machine *m)
{
    return push_unicode(m, td_cursor_u32(&m->in));
}

static tdbg_status op_binunicode8(struct td_machine *m)
{
    return push_unicode(m, td_cursor_u64(&m->in));
}

static tdbg_status op_short_binstring(struct td_machine *m)
{
    return push_string(m, td_cursor_u8(&m->in));
}

static tdbg_status op_binstring(struct td_machine *m)
{
    uint32_t size = td_cursor_u32(&m->in);
    if (size > INT32_MAX)
        return td_machine_fail(m, TDBG_CORRUPT, "a string of negative length");
    return push_string(m, size);
}

static tdbg_status op_next_buffer(struct td_machine *m)
{
    return td_machine_push_new(m, TD_PICKLE_BUFFER);
}

/* The buffer on top is read-only from here on: no difference to us. */
static tdbg_status op_readonly_buffer(struct td_machine *m)
{
    struct td_pickle_value *value;
    return td_machine_top(m, &value);
}

/* --- Containers --- */

static tdbg_status op_empty_list(struct td_machine *m)
{
    return td_machine_push_new(m, TD_PICKLE_LIST);
}

static tdbg_status op_empty_dict(struct td_machine *m)
{
    return td_machine_push_new(m, TD_PICKLE_DICT);
}

static tdbg_status op_empty_set(struct td_machine *m)
{
    return td_machine_push_new(m, TD_PICKLE_SET);
}

static tdbg_status op_empty_tuple(struct td_machine *m)
{
    return td_machine_push(m, m->empty_tuple);
}

static tdbg_status push_marked(struct td_machine *m, enum td_pickle_kind kind)
{
    struct td_pickle_value **values;
    size_t count;
    TD_TRY(td_machine_pop_mark(m, &values, &count));
    if (kind == TD_PICKLE_DICT && count % 2)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of a key without a value", m->opcode);
    return td_machine_push_items(m, kind, values, count);
}

static tdbg_status op_list(struct td_machine *m)
{
    return push_marked(m, TD_PICKLE_LIST);
}

static tdbg_status op_dict(struct td_machine *m)
{
    return push_marked(m, TD_PICKLE_DICT);
}

static tdbg_status op_tuple(struct td_machine *m)
{
    return push_marked(m, TD_PICKLE_TUPLE);
}

static tdbg_status op_frozenset(struct td_machine *m)
{
    return push_marked(m, TD_PICKLE_SET);
}

static tdbg_status push_small_tuple(struct td_machine *m, size_t count)
{
    struct td_pickle_value *values[3];
    for (size_t i = count; i-- > 0;)
        TD_TRY(td_machine_pop(m, &values[i]));
    return td_machine_push_items(m, TD_PICKLE_TUPLE, values, count);
}

static tdbg_status op_tuple1(struct td_machine *m)
{
    return push_small_tuple(m, 1);
}

static tdbg_status op_tuple2(struct td_machine *m)
{
    return push_small_tuple(m, 2);
}

static tdbg_status op_tuple3(struct td_machine *m)
{
    return push_small_tuple(m, 3);
}

/* Adds to what is on top of the stack: a container of the kind, or an object that Python would ask to. */
static tdbg_status add_to_top(struct td_machine *m, enum td_pickle_kind kind, struct td_pickle_value **values,
                              size_t count)
{
    struct td_pickle_value *top;
    TD_TRY(td_machine_top(m, &top));
    if (top->kind == TD_PICKLE_OBJECT)
        return td_machine_extend(m, kind == TD_PICKLE_DICT ? &top->object->set : &top->object->appended,
                                 values, count);
    if (top->kind != (unsigned)kind)
        return td_machine_fail(m, TDBG_CORRUPT, "%s on a %s", m->opcode, td_pickle_kind_name(top->kind));
    if (kind == TD_PICKLE_LIST && m->taker)
        count = td_machine_take(m, top, values, count);
    return td_machine_extend(m, top, values, count);
}

static tdbg_status add_marked(struct td_machine *m, enum td_pickle_kind kind)
{
    struct td_pickle_value **values;
    size_t count;
    TD_TRY(td_machine_pop_mark(m, &values, &count));
    if (kind == TD_PICKLE_DICT && count % 2)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of a key without a value", m->opcode);
    return add_to_top(m, kind, values, count);
}

static tdbg_status op_append(struct td_machine *m)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_pop(m, &value));
    return add_to_top(m, TD_PICKLE_LIST, &value, 1);
}

static tdbg_status op_appends(struct td_machine *m)
{
    return add_marked(m, TD_PICKLE_LIST);
}

static tdbg_status op_setitem(struct td_machine *m)
{
    struct td_pickle_value *pair[2];
    TD_TRY(td_machine_pop(m, &pair[1]));
    TD_TRY(td_machine_pop(m, &pair[0]));
    return add_to_top(m, TD_PICKLE_DICT, pair, 2);
}

static tdbg_status op_setitems(struct td_machine *m)
{
    return add_marked(m, TD_PICKLE_DICT);
}

static tdbg_status op_additems(struct td_machine *m)
{
    return add_marked(m, TD_PICKLE_SET);
}

/* --- The stack and the memo --- */

static tdbg_status op_pop(struct td_machine *m)
{
    struct td_pickle_value **values, *value;
    size_t count;
    if (m->mark_count > 0 && m->stack.count == m->floor)
        return td_machine_pop_mark(m, &values, &count);
    return td_machine_pop(m, &value);
}

static tdbg_status op_pop_mark(struct td_machine *m)
{
    struct td_pickle_value **values;
    size_t count;
    return td_machine_pop_mark(m, &values, &count);
}

static tdbg_status op_dup(struct td_machine *m)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_top(m, &value));
    return td_machine_push(m, value);
}

static tdbg_status op_binput(struct td_machine *m)
{
    return td_machine_remember(m, td_cursor_u8(&m->in));
}

static tdbg_status op_long_binput(struct td_machine *m)
{
    return td_machine_remember(m, td_cursor_u32(&m->in));
}

static tdbg_status op_binget(struct td_machine *m)
{
    return td_machine_recall(m, td_cursor_u8(&m->in));
}

static tdbg_status op_long_binget(struct td_machine *m)
{
    return td_machine_recall(m, td_cursor_u32(&m->in));
}

/* --- What Python would import and call --- */

static tdbg_status op_binpersid(struct td_machine *m)
{
    struct td_pickle_value *id;
    TD_TRY(td_machine_pop(m, &id));
    return td_machine_push_persid(m, id);
}

static tdbg_status op_stack_global(struct td_machine *m)
{
    struct td_pickle_value *module, *name;
    TD_TRY(td_machine_pop(m, &name));
    TD_TRY(td_machine_pop(m, &module));
    if (module->kind != TD_PICKLE_STR || name->kind != TD_PICKLE_STR)
        return td_machine_fail(m, TDBG_CORRUPT, "%s of names that are not text", m->opcode);
    return td_machine_push_global(m, module->text, module->count, name->text, name->count);
}

static tdbg_status op_ext1(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_EXT, td_cursor_u8(&m->in));
}

static tdbg_status op_ext2(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_EXT, td_cursor_u16(&m->in));
}

static tdbg_status op_ext4(struct td_machine *m)
{
    return td_machine_push_integer(m, TD_PICKLE_EXT, td_cursor_u32(&m->in));
}

/* REDUCE, and NEWOBJ, which differs only in how Python would make the object. */
static tdbg_status op_reduce(struct td_machine *m)
{
    struct td_pickle_value *callable, *args;
    TD_TRY(td_machine_pop(m, &args));
    TD_TRY(td_machine_pop(m, &callable));
    return td_machine_push_object(m, callable, args, NULL);
}

static tdbg_status op_newobj_ex(struct td_machine *m)
{
    struct td_pickle_value *callable, *args, *kwargs;
    TD_TRY(td_machine_pop(m, &kwargs));
    TD_TRY(td_machine_pop(m, &args));
    TD_TRY(td_machine_pop(m, &callable));
    if (kwargs->kind != TD_PICKLE_DICT)
        return td_machine_fail(m, TDBG_CORRUPT, "%s with a %s where keywords belong", m->opcode,
                               td_pickle_kind_name(kwargs->kind));
    return td_machine_push_object(m, callable, args, kwargs);
}

static tdbg_status op_obj(struct td_machine *m)
{
    struct td_pickle_value **values;
    size_t count;
    TD_TRY(td_machine_pop_mark(m, &values, &count));
    if (count == 0)
        return td_machine_fail(m, TDBG_CORRUPT, "%s without a class", m->opcode);
    struct td_pickle_value *callable = values[0], *args;
    TD_TRY(td_machine_push_items(m, TD_PICKLE_TUPLE, values + 1, count - 1));
    TD_TRY(td_machine_pop(m, &args));
    return td_machine_push_object(m, callable, args, NULL);
}

static tdbg_status op_build(struct td_machine *m)
{
    struct td_pickle_value *state, *top;
    TD_TRY(td_machine_pop(m, &state));
    TD_TRY(td_machine_top(m, &top));
    if (top->kind != TD_PICKLE_OBJECT)
        return td_machine_fail(m, TDBG_CORRUPT, "%s on a %s", m->opcode, td_pickle_kind_name(top->kind));
    top->object->state = state;
    return TDBG_OK;
}

const struct opcode td_pickle_opcodes[256] = {
    ['('] = {"MARK", td_machine_mark},
    ['.'] = {"STOP", op_stop},
    ['0'] = {"POP", op_pop},
    ['1'] = {"POP_MARK", op_pop_mark},
    ['2'] = {"DUP", op_dup},
    ['F'] = {"FLOAT", td_op_float},
    ['I'] = {"INT", td_op_int},
    ['J'] = {"BININT", op_binint},
    ['K'] = {"BININT1", op_binint1},
    ['L'] = {"LONG", td_op_long},
    ['M'] = {"BININT2", op_binint2},
    ['N'] = {"NONE", op_none},
    ['P'] = {"PERSID", td_op_persid},
    ['Q'] = {"BINPERSID", op_binpersid},
    ['R'] = {"REDUCE", op_reduce},
    ['S'] = {"STRING", td_op_string},
    ['T'] = {"BINSTRING", op_binstring},
    ['U'] = {"SHORT_BINSTRING", op_short_binstring},
    ['V'] = {"UNICODE", td_op_unicode},
    ['X'] = {"BINUNICODE", op_binunicode},
    ['a'] = {"APPEND", op_append},
    ['b'] = {"BUILD", op_build},
    ['c'] = {"GLOBAL", td_op_global},
    ['d'] = {"DICT", op_dict},
    ['}'] = {"EMPTY_DICT", op_empty_dict},
    ['e'] = {"APPENDS", op_appends},
    ['g'] = {"GET", td_op_get},
    ['h'] = {"BINGET", op_binget},
    ['i'] = {"INST", td_op_inst},
    ['j'] = {"LONG_BINGET", op_long_binget},
    ['l'] = {"LIST", op_list},
    [']'] = {"EMPTY_LIST", op_empty_list},
    ['o'] = {"OBJ", op_obj},
    ['p'] = {"PUT", td_op_put},
    ['q'] = {"BINPUT", op_binput},
    ['r'] = {"LONG_BINPUT", op_long_binput},
    ['s'] = {"SETITEM", op_setitem},
    ['t'] = {"TUPLE", op_tuple},
    [')'] = {"EMPTY_TUPLE", op_empty_tuple},
    ['u'] = {"SETITEMS", op_setitems},
    ['G'] = {"BINFLOAT", op_binfloat},
    /* protocol 2 */
    [0x80] = {"PROTO", op_proto},
    [0x81] = {"NEWOBJ", op_reduce},
    [0x82] = {"EXT1", op_ext1},
    [0x83] = {"EXT2", op_ext2},
    [0x84] = {"EXT4", op_ext4},
    [0x85] = {"TUPLE1", op_tuple1},
    [0x86] = {"TUPLE2", op_tuple2},
    [0x87] = {"TUPLE3", op_tuple3},
    [0x88] = {"NEWTRUE", op_newtrue},
    [0x89] = {"NEWFALSE", op_newfalse},
    [0x8a] = {"LONG1", op_long1},
    [0x8b] = {"LONG4", op_long4},
    /* protocol 3 */
    ['B'] = {"BINBYTES", op_binbytes},
    ['C'] = {"SHORT_BINBYTES", op_short_binbytes},
    /* protocol 4 */
    [0x8c] = {"SHORT_BINUNICODE", op_short_binunicode},
    [0x8d] = {"BINUNICODE8", op_binunicode8},
    [0x8e] = {"BINBYTES8", op_binbytes8},
    [0x8f] = {"EMPTY_SET", op_empty_set},
    [0x90] = {"ADDITEMS", op_additems},
    [0x91] = {"FROZENSET", op_frozenset},
    [0x92] = {"NEWOBJ_EX", op_newobj_ex},
    [0x93] = {"STACK_GLOBAL", op_stack_global},
    [0x94] = {"MEMOIZE", td_machine_memoize},
    [0x95] = {"FRAME", op_frame},
    /* protocol 5 */
    [0x96] = {"BYTEARRAY8", op_binbytes8},
    [0x97] = {"NEXT_BUFFER", op_next_buffer},
    [0x98] = {"READONLY_BUFFER", op_readonly_buffer},
};
