/* test_json.c: the JSON writer: commas, escapes, numbers, a chunk that fills, errors that stick. */
#include "test_support.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void writes_a_document(void **state)
{
    (void)state;
    struct td_buffer buffer;
    struct td_json j;
    td_buffer_init(&buffer, 1000);
    td_json_to_buffer(&j, &buffer);
    td_json_begin_object(&j);
    td_json_field_int(&j, "version", 1);
    td_json_key(&j, "shape");
    td_json_ints(&j, (const int64_t[]){76, -45}, 2);
    td_json_key(&j, "nested");
    td_json_begin_array(&j);
    td_json_begin_array(&j);
    td_json_end_array(&j);
    td_json_begin_object(&j);
    td_json_end_object(&j);
    td_json_null(&j);
    td_json_bool(&j, true);
    td_json_number(&j, 0.5);
    td_json_end_array(&j);
    td_json_field_string(&j, "none", NULL);
    td_json_field_bool(&j, "ok", false);
    td_json_field_uint(&j, "large", UINT64_MAX);
    td_json_field_number(&j, "odd", (double)NAN);
    td_json_field_number(&j, "low", -(double)INFINITY);
    td_json_end_object(&j);
    td_json_newline(&j);
    assert_true(td_json_finish(&j));
    assert_string_equal(
        td_buffer_text(&buffer),
        "{\"version\":1,\"shape\":[76,-45],\"nested\":[[],{},null,true,0.5],\"none\":null,\"ok\":false,"
        "\"large\":18446744073709551615,\"odd\":\"nan\",\"low\":\"-inf\"}\n");
    td_buffer_release(&buffer);
}

static void escapes_text(void **state)
{
    (void)state;
    struct td_buffer buffer;
    struct td_json j;
    td_buffer_init(&buffer, 1000);
    td_json_to_buffer(&j, &buffer);
    td_json_string(&j, "\"\\/\b\f\n\r\t\x01\x1f\x7f ü 短 \xff\xc3");
    assert_true(td_json_finish(&j));
    assert_string_equal(td_buffer_text(&buffer), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f ü 短 ??\"");
    td_buffer_release(&buffer);
}

/* More than a chunk of one text, with each kind of character after plain stretches of many lengths. */
static void long_texts_are_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written;
    } ends[] = {{"<", "\\u003c"}, {"\\", "\\\\"}, {"ü", "ü"}, {"\xff", "?"}};
    struct td_buffer text, expected;
    td_buffer_init(&text, 1 << 20);
    td_buffer_init(&expected, 1 << 20);
    td_buffer_append(&expected, "\"", 1);
    for (int i = 0; i < 6000; i += 37) {
        td_buffer_printf(&text, "%0*d%s", i, 0, ends[i % 4].text);
        td_buffer_printf(&expected, "%0*d%s", i, 0, ends[i % 4].written);
    }
    td_buffer_append(&expected, "\"", 1);
    struct td_json j;
    char *written = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);
    assert_non_null(file);
    td_json_to_html(&j, file);
    td_json_string(&j, td_buffer_text(&text));
    assert_true(td_json_finish(&j));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(written, td_buffer_text(&expected));
    free(written);
    td_buffer_release(&expected);
    td_buffer_release(&text);
}

/* More than a chunk, by pieces of every size, so that each kind of write meets a full chunk. */
static void chunks_join_without_a_seam(void **state)
{
    (void)state;
    struct td_buffer buffer;
    struct td_json j;
    td_buffer_init(&buffer, 1 << 20);
    td_json_to_buffer(&j, &buffer);
    td_json_begin_array(&j);
    for (int64_t i = 0; i < 20000; i++)
        td_json_int(&j, i * i * i);
    td_json_end_array(&j);
    assert_true(td_json_finish(&j));
    const char *at = td_buffer_text(&buffer);
    for (int64_t i = 0; i < 20000; i++) {
        assert_int_equal(*at++, i ? ',' : '[');
        char *end;
        assert_int_equal(strtoll(at, &end, 10), i * i * i);
        at = end;
    }
    assert_string_equal(at, "]");
    td_buffer_release(&buffer);
}

static void failures_stick(void **state)
{
    (void)state;
    struct td_buffer buffer;
    struct td_json j;
    td_buffer_init(&buffer, 8);
    td_json_to_buffer(&j, &buffer);
    td_json_string(&j, "far more than eight bytes");
    assert_false(td_json_finish(&j));
    td_buffer_release(&buffer);

    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    td_json_to_file(&j, full);
    td_json_null(&j);
    assert_false(td_json_finish(&j));
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_document),    cmocka_unit_test(escapes_text),
        cmocka_unit_test(long_texts_are_whole), cmocka_unit_test(chunks_join_without_a_seam),
        cmocka_unit_test(failures_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
