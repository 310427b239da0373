/* test_names.c: what a user's engine calls its tensors, well written and not. */
#include "test_support.h"

#include "session/names_file.h"

#include <stdlib.h>

static void assert_rule(const struct td_names *names, size_t at, const char *pattern, const char *stage)
{
    assert_true(at < names->count);
    assert_string_equal(names->list[at].pattern, pattern);
    assert_string_equal(names->list[at].stage, stage);
}

static void lines(void **state)
{
    (void)state;
    static const char text[] = "\n# ours\r\nblk{L}_q =  layers.{L}.q \r\n\tmlp*=mlp.*   # all of it\n"
                               "a#1 = b\n{L}_x = query";
    struct td_names names;
    struct tdbg_error error;
    assert_ok(td_names_parse(&names, text, sizeof text - 1, &error));
    assert_int_equal(names.count, 4);
    assert_rule(&names, 0, "blk{L}_q", "layers.{L}.q");
    assert_rule(&names, 1, "mlp*", "mlp.*");
    assert_rule(&names, 2, "a#1", "b");
    assert_rule(&names, 3, "{L}_x", "query");
    td_names_release(&names);
    assert_ok(td_names_parse(&names, "", 0, &error));
    assert_int_equal(names.count, 0);
    td_names_release(&names);
}

static void objects(void **state)
{
    (void)state;
    static const char text[] = " \n{\"blk{L}_q\": \"layers.{L}.q\", \"x = y\": \" z \"}";
    struct td_names names;
    struct tdbg_error error;
    assert_ok(td_names_parse(&names, text, sizeof text - 1, &error));
    assert_int_equal(names.count, 2);
    assert_rule(&names, 0, "blk{L}_q", "layers.{L}.q");
    assert_rule(&names, 1, "x = y", "z");
    td_names_release(&names);
}

static void bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        tdbg_status status;
    } table[] = {
        {"a = b\n\nnonsense\n", "line 3: no '=': a rule is PATTERN = STAGE", TDBG_CORRUPT},
        {"= b", "line 1: no pattern", TDBG_CORRUPT},
        {"a = # b", "line 1: no stage", TDBG_CORRUPT},
        {"a{l} = b", "line 1: '{' in the pattern that is no part of {L}", TDBG_CORRUPT},
        {"a{L} = b}", "line 1: '}' in the stage that is no part of {L}", TDBG_CORRUPT},
        {"{L}.{L} = b", "line 1: {L} more than once in the pattern", TDBG_CORRUPT},
        {"a = b{L}", "line 1: {L} in the stage, and none in the pattern to say which", TDBG_CORRUPT},
        {"a = b*", "line 1: '*' in the stage, and none in the pattern to say what it is", TDBG_CORRUPT},
        {"a\x01 = b", "line 1: a control character in the pattern", TDBG_CORRUPT},
        {"a = \xff", "line 1: a stage that is not UTF-8", TDBG_CORRUPT},
        {"{\"a\": 1}", "\"a\": what it stands for is no text", TDBG_CORRUPT},
        {"{\"a\": \"\"}", "\"a\": no stage", TDBG_CORRUPT},
        {"{\"a\": \"b\", \"a\": \"c\"}", "names is not valid JSON: duplicate object key near '\"a\"'",
         TDBG_CORRUPT},
        {"{\"a\": ", "names is not valid JSON: unexpected token near end of file", TDBG_CORRUPT},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct td_names names;
        struct tdbg_error error;
        assert_fails(td_names_parse(&names, table[i].text, strlen(table[i].text), &error), table[i].status,
                     table[i].message);
    }
}

static void too_much(void **state)
{
    (void)state;
    struct td_names names;
    struct tdbg_error error;
    size_t lines = TD_MOST_NAME_RULES + 1;
    char *text = malloc(6 * lines);
    for (size_t i = 0; i < lines; i++)
        memcpy(text + 6 * i, "a = b\n", 6);
    assert_fails(td_names_parse(&names, text, 6 * lines, &error), TDBG_LIMIT,
                 "line 10001: more than 10000 rules");
    assert_ok(td_names_parse(&names, text, 6 * (lines - 1), &error));
    td_names_release(&names);
    memset(text, 'a', 1000);
    assert_fails(td_names_parse(&names, text, 1000, &error), TDBG_CORRUPT,
                 "line 1: no '=': a rule is PATTERN = STAGE");
    text[600] = '=';
    assert_fails(td_names_parse(&names, text, 1000, &error), TDBG_LIMIT,
                 "line 1: a pattern of more than 512 bytes");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(objects),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
