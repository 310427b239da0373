/* test_pickle.c: the pickle machine: values of every protocol, objects that stay inert, and bad pickles.
 *
 * A graph is compared by how it prints: Python's repr where there is one, `call(args)` for an object, with
 * its state after `!`, appended items after `+` and set items after `:`.
 */
#include "test_support.h"

#include "base/buffer.h"
#include "pickle/pickle.h"

static void print(struct td_buffer *out, const struct td_pickle_value *value, int depth);

static void print_items(struct td_buffer *out, const struct td_pickle_value *value, const char *brackets,
                        int depth)
{
    td_buffer_append(out, brackets, 1);
    for (size_t i = 0; i < value->count; i++) {
        if (i > 0)
            td_buffer_puts(out, value->kind == TD_PICKLE_DICT && i % 2 ? ": " : ", ");
        print(out, value->items[i], depth + 1);
    }
    td_buffer_append(out, brackets + 1, 1);
}

static void print_text(struct td_buffer *out, const struct td_pickle_value *value)
{
    for (size_t i = 0; i < value->count; i++) {
        unsigned char c = (unsigned char)value->text[i];
        if (c < 0x20 || (c >= 0x7f && value->kind != TD_PICKLE_STR))
            td_buffer_printf(out, "\\x%02x", c);
        else
            td_buffer_append(out, &c, 1);
    }
}

static void print_object(struct td_buffer *out, const struct td_pickle_object *object, int depth)
{
    print(out, object->callable, depth + 1);
    print_items(out, object->args, "()", depth);
    if (object->kwargs)
        print_items(out, object->kwargs, "**", depth);
    if (object->appended.count) {
        td_buffer_puts(out, "+");
        print_items(out, &object->appended, "[]", depth);
    }
    if (object->set.count) {
        td_buffer_puts(out, ":");
        print_items(out, &object->set, "{}", depth);
    }
    if (object->state) {
        td_buffer_puts(out, "!");
        print(out, object->state, depth + 1);
    }
}

static void print(struct td_buffer *out, const struct td_pickle_value *value, int depth)
{
    if (depth > 5) {
        td_buffer_puts(out, "...");
        return;
    }
    switch ((enum td_pickle_kind)value->kind) {
    case TD_PICKLE_NONE:
        td_buffer_puts(out, "None");
        break;
    case TD_PICKLE_BOOL:
        td_buffer_puts(out, value->integer ? "True" : "False");
        break;
    case TD_PICKLE_INT:
        td_buffer_printf(out, "%lld", (long long)value->integer);
        break;
    case TD_PICKLE_BIGINT:
        td_buffer_puts(out, value->decimal ? "decimal " : "long ");
        print_text(out, value);
        break;
    case TD_PICKLE_FLOAT:
        td_buffer_printf(out, "%.17g", value->real);
        break;
    case TD_PICKLE_STR:
    case TD_PICKLE_BYTES:
        td_buffer_puts(out, value->kind == TD_PICKLE_BYTES ? "b'" : value->python2 ? "s'" : "'");
        print_text(out, value);
        td_buffer_puts(out, "'");
        break;
    case TD_PICKLE_LIST:
        print_items(out, value, "[]", depth);
        break;
    case TD_PICKLE_TUPLE:
        print_items(out, value, "()", depth);
        break;
    case TD_PICKLE_SET:
        print_items(out, value, "<>", depth);
        break;
    case TD_PICKLE_DICT:
        print_items(out, value, "{}", depth);
        break;
    case TD_PICKLE_GLOBAL:
        print_text(out, value);
        break;
    case TD_PICKLE_EXT:
        td_buffer_printf(out, "ext %lld", (long long)value->integer);
        break;
    case TD_PICKLE_OBJECT:
        print_object(out, value->object, depth);
        break;
    case TD_PICKLE_PERSID:
        td_buffer_puts(out, "@");
        print(out, value->id, depth + 1);
        break;
    case TD_PICKLE_BUFFER:
        td_buffer_puts(out, "buffer");
        break;
    }
}

struct example {
    const char *pickle;
    size_t size;
    const char *text;
};

#define EXAMPLE(pickle, text)            \
    {                                    \
        pickle, sizeof(pickle) - 1, text \
    }

static void assert_prints(const struct example *example)
{
    struct td_arena arena;
    struct td_pickle pickle;
    struct tdbg_error error = {0};
    struct td_buffer out;
    td_arena_init(&arena, 1 << 20);
    td_buffer_init(&out, 1 << 16);
    if (td_pickle_parse(example->pickle, example->size, NULL, &arena, &pickle, &error) != TDBG_OK)
        fail_msg("%s: %s", example->text, error.message);
    print(&out, pickle.root, 0);
    assert_string_equal(td_buffer_text(&out), example->text);
    assert_int_equal(pickle.consumed, example->size);
    td_buffer_release(&out);
    td_arena_release(&arena);
}

/* pickle.dumps of one dict with every plain type, in each protocol. Protocol 0 and 1 have no bytes, no sets
 * and no binary integers beyond 32 bits; 2 has no bytes. */
static const struct example by_protocol[] = {
    EXAMPLE("(dp0\012Va\012p1\012(lp2\012I1\012aI-2\012aI70000\012aL1099511627776L\012aL-92233720368547"
            "75808L\012aL18446744073709551616L\012asVb\012p3\012(NI01\012I00\012F1.5\012F-0.1\012tp4"
            "\012sVu\012p5\012V\351\\u20ac\\U0001f600\\u005cn\\u000a\012p6\012sVy\012p7\012c_codecs\012"
            "encode\012p8\012(V\\u0000\377\\u000a\012p9\012Vlatin1\012p10\012tp11\012Rp12\012sVt\012p13"
            "\012(tsVt1\012p14\012(I1\012tp15\012sVs\012p16\012c__builtin__\012frozenset\012p17\012((lp"
            "18\012I3\012atp19\012Rp20\012s.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "decimal 18446744073709551616], 'b': (None, True, False, 1.5, -0.10000000000000001), "
            "'u': 'é€😀\\n\\x0a', 'y': _codecs.encode('\\x00ÿ\\x0a', 'latin1'), 't': (), 't1': (1), "
            "'s': __builtin__.frozenset([3])}"),
    EXAMPLE("}q\000(X\001\000\000\000aq\001]q\002(K\001J\376\377\377\377Jp\021\001\000L1099511627776L"
            "\012L-9223372036854775808L\012L18446744073709551616L\012eX\001\000\000\000bq\003(NI01\012I"
            "00\012G\077\370\000\000\000\000\000\000G\277\271\231\231\231\231\231\232tq\004X\001\000"
            "\000\000uq\005X\014\000\000\000\303\251\342\202\254\360\237\230\200\\n\012q\006X\001\000"
            "\000\000yq\007c_codecs\012encode\012q\010(X\004\000\000\000\000\303\277\012q\011X\006\000"
            "\000\000latin1q\012tq\013Rq\014X\001\000\000\000tq\015)X\002\000\000\000t1q\016(K\001tq"
            "\017X\001\000\000\000sq\020c__builtin__\012frozenset\012q\021(]q\022K\003atq\023Rq\024u.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "decimal 18446744073709551616], 'b': (None, True, False, 1.5, -0.10000000000000001), "
            "'u': 'é€😀\\n\\x0a', 'y': _codecs.encode('\\x00ÿ\\x0a', 'latin1'), 't': (), 't1': (1), "
            "'s': __builtin__.frozenset([3])}"),
    EXAMPLE("\200\002}q\000(X\001\000\000\000aq\001]q\002(K\001J\376\377\377\377Jp\021\001\000\212\006"
            "\000\000\000\000\000\001\212\010\000\000\000\000\000\000\000\200\212\011\000\000\000\000"
            "\000\000\000\000\001eX\001\000\000\000bq\003(N\210\211G\077\370\000\000\000\000\000\000G"
            "\277\271\231\231\231\231\231\232tq\004X\001\000\000\000uq\005X\014\000\000\000\303\251\342"
            "\202\254\360\237\230\200\\n\012q\006X\001\000\000\000yq\007c_codecs\012encode\012q\010X"
            "\004\000\000\000\000\303\277\012q\011X\006\000\000\000latin1q\012\206q\013Rq\014X\001\000"
            "\000\000tq\015)X\002\000\000\000t1q\016K\001\205q\017X\001\000\000\000sq\020c__builtin__"
            "\012frozenset\012q\021]q\022K\003a\205q\023Rq\024u.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "long \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01], 'b': (None, True, False, 1.5, "
            "-0.10000000000000001), 'u': 'é€😀\\n\\x0a', 'y': _codecs.encode('\\x00ÿ\\x0a', "
            "'latin1'), 't': (), 't1': (1), 's': __builtin__.frozenset([3])}"),
    EXAMPLE("\200\003}q\000(X\001\000\000\000aq\001]q\002(K\001J\376\377\377\377Jp\021\001\000\212\006"
            "\000\000\000\000\000\001\212\010\000\000\000\000\000\000\000\200\212\011\000\000\000\000"
            "\000\000\000\000\001eX\001\000\000\000bq\003(N\210\211G\077\370\000\000\000\000\000\000G"
            "\277\271\231\231\231\231\231\232tq\004X\001\000\000\000uq\005X\014\000\000\000\303\251\342"
            "\202\254\360\237\230\200\\n\012q\006X\001\000\000\000yq\007C\003\000\377\012q\010X\001\000"
            "\000\000tq\011)X\002\000\000\000t1q\012K\001\205q\013X\001\000\000\000sq\014cbuiltins\012f"
            "rozenset\012q\015]q\016K\003a\205q\017Rq\020u.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "long \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01], 'b': (None, True, False, 1.5, "
            "-0.10000000000000001), 'u': 'é€😀\\n\\x0a', 'y': b'\\x00\\xff\\x0a', 't': (), "
            "'t1': (1), 's': builtins.frozenset([3])}"),
    EXAMPLE("\200\004\225\206\000\000\000\000\000\000\000}\224(\214\001a\224]\224(K\001J\376\377\377"
            "\377Jp\021\001\000\212\006\000\000\000\000\000\001\212\010\000\000\000\000\000\000\000\200"
            "\212\011\000\000\000\000\000\000\000\000\001e\214\001b\224(N\210\211G\077\370\000\000\000"
            "\000\000\000G\277\271\231\231\231\231\231\232t\224\214\001u\224\214\014\303\251\342\202"
            "\254\360\237\230\200\\n\012\224\214\001y\224C\003\000\377\012\224\214\001t\224)\214\002t1"
            "\224K\001\205\224\214\001s\224(K\003\221\224u.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "long \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01], 'b': (None, True, False, 1.5, "
            "-0.10000000000000001), 'u': 'é€😀\\n\\x0a', 'y': b'\\x00\\xff\\x0a', 't': (), "
            "'t1': (1), 's': <3>}"),
    EXAMPLE("\200\005\225\206\000\000\000\000\000\000\000}\224(\214\001a\224]\224(K\001J\376\377\377"
            "\377Jp\021\001\000\212\006\000\000\000\000\000\001\212\010\000\000\000\000\000\000\000\200"
            "\212\011\000\000\000\000\000\000\000\000\001e\214\001b\224(N\210\211G\077\370\000\000\000"
            "\000\000\000G\277\271\231\231\231\231\231\232t\224\214\001u\224\214\014\303\251\342\202"
            "\254\360\237\230\200\\n\012\224\214\001y\224C\003\000\377\012\224\214\001t\224)\214\002t1"
            "\224K\001\205\224\214\001s\224(K\003\221\224u.",
            "{'a': [1, -2, 70000, 1099511627776, -9223372036854775808, "
            "long \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01], 'b': (None, True, False, 1.5, "
            "-0.10000000000000001), 'u': 'é€😀\\n\\x0a', 'y': b'\\x00\\xff\\x0a', 't': (), "
            "'t1': (1), 's': <3>}"),
};

static void reads_every_protocol(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_protocol / sizeof by_protocol[0]; i++)
        assert_prints(&by_protocol[i]);
}

/* What picklers write seldom or only for objects, and every way to name something to run. */
static const struct example by_opcode[] = {
    EXAMPLE("S'it\\'s \\x41\\102\\n\\q'\n.", "s'it's AB\\x0a\\q'"),
    EXAMPLE("S'\\xff'\n.", "b'\\xff'"),
    EXAMPLE("S\"\"\n.", "s''"),
    EXAMPLE("T\3\0\0\0abc.", "s'abc'"),
    EXAMPLE("U\1\x80.", "b'\\x80'"),
    EXAMPLE("V\\ud800\n.", "'\xed\xa0\x80'"),
    EXAMPLE("X\3\0\0\0\xed\xa0\x80.", "'\xed\xa0\x80'"),
    EXAMPLE("\x8d\2\0\0\0\0\0\0\0hi.", "'hi'"),
    EXAMPLE("\x8e\2\0\0\0\0\0\0\0\1\2.", "b'\\x01\\x02'"),
    EXAMPLE("\x96\1\0\0\0\0\0\0\0\3.", "b'\\x03'"),
    EXAMPLE("\x97\x98.", "buffer"),
    EXAMPLE("Fnan\n0F-inf\n.", "-inf"),
    EXAMPLE("L-9223372036854775809L\n.", "decimal -9223372036854775809"),
    EXAMPLE("L7\n.", "7"),
    EXAMPLE("\x8a\0.", "0"),
    EXAMPLE("\x8b\2\0\0\0\xff\xff.", "-1"),
    EXAMPLE("(K\1K\2l.", "[1, 2]"),
    EXAMPLE("(K\1K\2d.", "{1: 2}"),
    EXAMPLE("}K\1K\2s.", "{1: 2}"),
    EXAMPLE("]K\1a(K\2K\3K\4e.", "[1, 2, 3, 4]"),
    EXAMPLE("\x8f(K\1K\2\x90.", "<1, 2>"),
    EXAMPLE("(K\1K\2\x91.", "<1, 2>"),
    EXAMPLE("K\1K\2K\3\x87.", "(1, 2, 3)"),
    EXAMPLE("K\1(K\2K\3"
            "1.",
            "1"),
    EXAMPLE("K\1(0.", "1"),
    EXAMPLE("K\1"
            "2\x86.",
            "(1, 1)"),
    EXAMPLE("Pkey\n.", "@s'key'"),
    EXAMPLE("K\1\x85Q.", "@(1)"),
    EXAMPLE("\x82\1.", "ext 1"),
    EXAMPLE("\x83\1\2.", "ext 513"),
    EXAMPLE("\x84\1\0\0\0)R.", "ext 1()"),
    EXAMPLE("cos\nsystem\n(S'true'\ntR.", "os.system(s'true')"),
    EXAMPLE("(S'true'\nios\nsystem\n.", "os.system(s'true')"),
    EXAMPLE("(cos\nsystem\nS'true'\no.", "os.system(s'true')"),
    EXAMPLE("cos\nsystem\n(S'true'\nt\x81.", "os.system(s'true')"),
    EXAMPLE("cos\nsystem\n)}\x92.", "os.system()**"),
    EXAMPLE("X\2\0\0\0osX\6\0\0\0system\x93.", "os.system"),
    EXAMPLE("ca\nB\n)\x81}K\1K\2sb.", "a.B()!{1: 2}"),
    EXAMPLE("ca\nB\n)R(K\1K\2eK\3aK\4K\5s.", "a.B()+[1, 2, 3]:{4: 5}"),
    EXAMPLE("ca\nB\n)R(K\1\x90.", "a.B()+[1]"),
    EXAMPLE("]q\0h\0a.", "[[[[[[...]]]]]]"),
    EXAMPLE("]r\3\0\0\0j\3\0\0\0\x86"
            "0K\7p4\ng4\n.",
            "7"),
};

static void reads_every_opcode(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_opcode / sizeof by_opcode[0]; i++)
        assert_prints(&by_opcode[i]);
}

struct defect {
    const char *pickle;
    size_t size;
    tdbg_status status;
    uint64_t offset;
    const char *message;
};

#define CORRUPT(pickle, offset, message)                          \
    {                                                             \
        pickle, sizeof(pickle) - 1, TDBG_CORRUPT, offset, message \
    }

static const struct defect defects[] = {
    CORRUPT("", 0, "pickle: ends without a STOP"),
    CORRUPT("N", 1, "pickle: ends without a STOP"),
    CORRUPT(".", 0, "pickle: STOP finds too little on the stack"),
    CORRUPT("\xff", 0, "pickle: unknown opcode 0xff"),
    CORRUPT("NX\5\0\0\0hi.", 1, "pickle: ends in the middle of BINUNICODE"),
    CORRUPT("J\1\2", 0, "pickle: ends in the middle of BININT"),
    CORRUPT("G1234567", 0, "pickle: ends in the middle of BINFLOAT"),
    CORRUPT("I12", 0, "pickle: ends in the middle of INT"),
    CORRUPT("cos\nsys", 0, "pickle: ends in the middle of GLOBAL"),
    CORRUPT("\x8e\xff\xff\xff\xff\xff\xff\xff\xffx.", 0, "pickle: ends in the middle of BINBYTES8"),
    CORRUPT("\x95\x09\0\0\0\0\0\0\0N.", 0, "pickle: a frame of 9 bytes with 2 left"),
    CORRUPT("X\1\0\0\0\xff.", 0, "pickle: BINUNICODE of text that is not UTF-8"),
    CORRUPT("c\xff\nx\n.", 0, "pickle: GLOBAL of a name that is not UTF-8"),
    CORRUPT("I1x\n.", 0, "pickle: INT of something that is no number"),
    CORRUPT("I-\n.", 0, "pickle: INT without digits"),
    CORRUPT("F1.5x\n.", 0, "pickle: FLOAT of something that is no number"),
    CORRUPT("Sabc\n.", 0, "pickle: STRING without quotes"),
    CORRUPT("V\\u12\n.", 0, "pickle: UNICODE with a bad escape"),
    CORRUPT("T\xff\xff\xff\xff.", 0, "pickle: a string of negative length"),
    CORRUPT("g0\n.", 0, "pickle: memo entry 0 was never stored"),
    CORRUPT("Nq\3h\2.", 3, "pickle: memo entry 2 was never stored"),
    CORRUPT("p-1\n.", 0, "pickle: PUT of a memo entry that cannot be"),
    CORRUPT("t.", 0, "pickle: TUPLE finds no mark on the stack"),
    CORRUPT("K\1(\x85.", 3, "pickle: TUPLE1 finds too little on the stack"),
    CORRUPT("(K\1d.", 3, "pickle: DICT of a key without a value"),
    CORRUPT("}(K\1u.", 4, "pickle: SETITEMS of a key without a value"),
    CORRUPT(")K\1a.", 3, "pickle: APPEND on a tuple"),
    CORRUPT("]K\1K\2s.", 5, "pickle: SETITEM on a list"),
    CORRUPT("}}b.", 2, "pickle: BUILD on a dict"),
    CORRUPT("cos\nsystem\n]R.", 12, "pickle: REDUCE with a list where arguments belong"),
    CORRUPT("ca\nB\n))\x92.", 7, "pickle: NEWOBJ_EX with a tuple where keywords belong"),
    CORRUPT("(o.", 1, "pickle: OBJ without a class"),
    CORRUPT("K\1K\2\x93.", 4, "pickle: STACK_GLOBAL of names that are not text"),
    {"\x80\6N.", 4, TDBG_UNSUPPORTED, 0, "pickle: protocol 6, 5 is the newest known"},
    {"Nr\xff\xff\xff\xff.", 7, TDBG_LIMIT, 1, "pickle: memo entry 4294967295 after only 6 bytes"},
};

static void refuses_defects(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        struct td_arena arena;
        struct td_pickle pickle;
        struct tdbg_error error = {0};
        td_arena_init(&arena, 1 << 20);
        tdbg_status status =
            td_pickle_parse(defects[i].pickle, defects[i].size, NULL, &arena, &pickle, &error);
        assert_string_equal(error.message, defects[i].message);
        assert_int_equal(status, defects[i].status);
        assert_int_equal(error.offset, defects[i].offset);
        td_arena_release(&arena);
    }
}

/* Every cut of a good pickle is an error, never a crash or a shorter value. */
static void refuses_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_protocol / sizeof by_protocol[0]; i++)
        for (size_t size = 0; size < by_protocol[i].size; size++) {
            struct td_arena arena;
            struct td_pickle pickle;
            struct tdbg_error error = {0};
            td_arena_init(&arena, 1 << 20);
            assert_int_equal(td_pickle_parse(by_protocol[i].pickle, size, NULL, &arena, &pickle, &error),
                             TDBG_CORRUPT);
            td_arena_release(&arena);
        }
}

static void holds_its_limits(void **state)
{
    (void)state;
    static char many[1 << 16];
    struct td_arena arena;
    struct td_pickle pickle;
    struct tdbg_error error = {0};
    const struct td_pickle_limits limits = {.stack = 100, .memo = 10};

    memset(many, 'N', sizeof many);
    td_arena_init(&arena, 4096);
    assert_fails(td_pickle_parse(many, sizeof many, &limits, &arena, &pickle, &error), TDBG_LIMIT,
                 "pickle: more than 100 values on the stack");
    memset(many, '(', sizeof many);
    assert_fails(td_pickle_parse(many, sizeof many, &limits, &arena, &pickle, &error), TDBG_LIMIT,
                 "pickle: more than 100 marks");
    memset(many, 0x94, sizeof many);
    many[0] = 'N';
    assert_fails(td_pickle_parse(many, sizeof many, &limits, &arena, &pickle, &error), TDBG_LIMIT,
                 "pickle: more than 10 values in the memo");
    memset(many, ']', sizeof many);
    assert_fails(td_pickle_parse(many, sizeof many, NULL, &arena, &pickle, &error), TDBG_LIMIT,
                 "pickle: more values than 0 MiB hold");
    td_arena_release(&arena);
}

static void lists_persistent_ids(void **state)
{
    (void)state;
    static const char bytes[] = "(K\1QK\2Qt.tail";
    struct td_arena arena;
    struct td_pickle pickle;
    td_arena_init(&arena, 4096);
    assert_ok(td_pickle_parse(bytes, sizeof bytes - 1, NULL, &arena, &pickle, NULL));
    assert_int_equal(pickle.consumed, sizeof bytes - 1 - 4);
    assert_int_equal(pickle.persid_count, 2);
    assert_int_equal(pickle.persids[1]->id->integer, 2);
    td_arena_release(&arena);
}

static void finds_keys(void **state)
{
    (void)state;
    static const char bytes[] = "}(X\1\0\0\0aK\1X\1\0\0\0bK\2X\1\0\0\0aK\3u.";
    struct td_arena arena;
    struct td_pickle pickle;
    td_arena_init(&arena, 4096);
    assert_ok(td_pickle_parse(bytes, sizeof bytes - 1, NULL, &arena, &pickle, NULL));
    assert_int_equal(td_pickle_get(pickle.root, "a")->integer, 3);
    assert_int_equal(td_pickle_get(pickle.root, "b")->integer, 2);
    assert_null(td_pickle_get(pickle.root, "c"));
    assert_null(td_pickle_get(pickle.root->items[1], "a"));
    assert_true(td_pickle_is(pickle.root->items[0], TD_PICKLE_STR, "a"));
    assert_false(td_pickle_is(pickle.root->items[0], TD_PICKLE_GLOBAL, "a"));
    td_arena_release(&arena);
}

struct taken {
    size_t dicts;
    int64_t sum;
};

/* Takes every dict with an even number under 'n'. */
static bool take_even(void *context, const struct td_pickle_value *list, const struct td_pickle_value *dict)
{
    struct taken *t = context;
    const struct td_pickle_value *number = td_pickle_get(dict, "n"), *frames = td_pickle_get(dict, "f");
    assert_int_equal(list->kind, TD_PICKLE_LIST);
    if (!number || number->kind != TD_PICKLE_INT || number->integer % 2)
        return false;
    assert_int_equal(frames->kind, TD_PICKLE_LIST);
    assert_int_equal(frames->count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(frames->items[i]->integer, 7 + (int)i);
    t->dicts++;
    t->sum += number->integer;
    return true;
}

/* [{'n': i, 'f': [7, 8, 9]} …], each of the three numbers the same value of the memo, and at the end the list
 * of the first dict once more. */
static void takes_dicts_out_of_lists(void **state)
{
    (void)state;
    enum { DICTS = 20000 };
    struct td_buffer text;
    td_buffer_init(&text, 4 << 20);
    td_buffer_append(&text, "](K\x07\x94K\x08\x94K\x09\x94\x31", 12); /* POP_MARK: the memo keeps them */
    td_buffer_append(&text, "(", 1);
    for (int i = 0; i < DICTS; i++) {
        unsigned char number[4] = {(unsigned char)i, (unsigned char)(i >> 8)};
        td_buffer_append(&text, "}(X\x01\0\0\0nJ", 9);
        td_buffer_append(&text, number, 4);
        td_buffer_append(&text, "X\x01\0\0\0f]", 7);
        td_buffer_append(&text, i == 0 ? "\x94" : "", i == 0);
        td_buffer_append(&text,
                         "(h\0h\x01h\x02"
                         "eu",
                         9);
        if (i % 1000 == 999)
            td_buffer_append(&text, "e(", 2);
    }
    td_buffer_append(&text,
                     "h\x03"
                     "e.",
                     4);
    assert_false(text.failed);

    struct taken taken = {0};
    struct td_pickle_taker taker = {.context = &taken, .take = take_even};
    struct td_pickle_limits limits = {.taker = &taker};
    struct td_arena arena;
    struct td_pickle pickle;
    td_arena_init(&arena, 64 << 20);
    assert_ok(td_pickle_parse(text.data, text.size, &limits, &arena, &pickle, NULL));
    assert_int_equal(taken.dicts, DICTS / 2);
    assert_int_equal(taken.sum, (int64_t)(DICTS / 2) * (DICTS / 2 - 1));
    assert_int_equal(pickle.root->count, DICTS / 2 + 1);
    for (size_t i = 0; i < DICTS / 2; i++) /* those left are what they were */
        assert_int_equal(td_pickle_get(pickle.root->items[i], "n")->integer, 2 * (int)i + 1);
    const struct td_pickle_value *again = pickle.root->items[DICTS / 2];
    assert_int_equal(again->kind, TD_PICKLE_LIST);
    assert_int_equal(again->count, 3);
    td_arena_release(&arena);
    td_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_protocol), cmocka_unit_test(reads_every_opcode),
        cmocka_unit_test(refuses_defects),      cmocka_unit_test(refuses_every_cut),
        cmocka_unit_test(holds_its_limits),     cmocka_unit_test(lists_persistent_ids),
        cmocka_unit_test(finds_keys),           cmocka_unit_test(takes_dicts_out_of_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
