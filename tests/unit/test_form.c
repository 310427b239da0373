/* test_form.c: forms as they come over the network, in pieces of any size. */
#include "test_support.h"

#include "base/buffer.h"
#include "serve/form.h"

#include <stdio.h>
#include <string.h>

#define TYPE "multipart/form-data; boundary=edge"
#define FIELD(parameters) "--edge\r\nContent-Disposition: form-data; " parameters "\r\n\r\n"
#define END "--edge--\r\n"

/* What came out, as text: [name|file name]content. */
static bool begin(void *context, const char *name, const char *file_name)
{
    td_buffer_printf(context, file_name ? "[%s|%s]" : "[%s]", name, file_name);
    return true;
}

static bool add(void *context, const char *bytes, size_t size)
{
    td_buffer_append(context, bytes, size);
    return true;
}

static bool read_in(const char *type, const char *body, size_t size, size_t piece, struct td_buffer *out)
{
    struct td_form *form = td_form_open(type, &(struct td_form_sink){begin, add, out});
    bool good = form != NULL;
    for (size_t at = 0; good && at < size; at += piece)
        good = td_form_take(form, body + at, size - at < piece ? size - at : piece);
    good = good && td_form_ended(form);
    td_form_close(&form);
    return good;
}

/* NULL: it is refused. */
static void check(const char *type, const char *body, const char *expected)
{
    size_t size = strlen(body);
    for (size_t piece = 1; piece <= size; piece++) {
        struct td_buffer out;
        td_buffer_init(&out, 1 << 16);
        assert_int_equal(read_in(type, body, size, piece, &out), expected != NULL);
        if (expected)
            assert_string_equal(td_buffer_text(&out), expected);
        td_buffer_release(&out);
    }
}

static void test_fields(void **state)
{
    (void)state;
    check(TYPE, FIELD("name=\"a\"") "1\r\n" FIELD("name=\"b\"; filename=\"c.pth\"") "2\r\n" END,
          "[a]1[b|c.pth]2");
    check(TYPE, FIELD("name=\"a\"") "\r\n" END, "[a]");
    check(TYPE, FIELD("name=a; filename=") "x\r\n" END, "[a|]x");
    check(TYPE, FIELD("filename=\"f\"; NAME=\"a\"") "x\r\n" END, "[a|f]x");
    check(TYPE, "before\r\n" FIELD("name=\"a\"") "1\r\n--edge-- behind", "[a]1");
    check(TYPE, END, "");
    check(TYPE,
          "--edge \t\r\nX-A: b\r\ncontent-disposition:form-data;name=\"a\"\r\nContent-Type: "
          "x/y\r\n\r\n1\r\n" END,
          "[a]1");
}

/* A quote within a name comes as %22 from browsers and as \" from others; paths of Windows keep their
 * backslashes. */
static void test_names(void **state)
{
    (void)state;
    check(TYPE, FIELD("name=\"a;b=c\"; filename=\"%22x%22 \\\"y\\\".pth\"") "1\r\n" END,
          "[a;b=c|\"x\" \"y\".pth]1");
    check(TYPE, FIELD("name=\"m\"; filename=\"C:\\new\\a.pth\"") "1\r\n" END, "[m|C:\\new\\a.pth]1");
    check(TYPE, FIELD("name=\"m\"; filename=\"\xc3\xa9.pth\"") "1\r\n" END, "[m|\xc3\xa9.pth]1");
}

/* What only looks like a border belongs to the field. */
static void test_content(void **state)
{
    (void)state;
    const char *const contents[] = {"\r",     "\r\n",         "\r\n--",    "\r\n--edg",    "\r\r\n--edg\r\n-",
                                    "--edge", "\n--edge--\n", "\r\n-edge", "\r\n\r\n\r\n", "\r--edge\r\n"};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        char body[512], expected[512];
        snprintf(body, sizeof body, FIELD("name=\"a\"; filename=\"f\"") "%s\r\n" END, contents[i]);
        snprintf(expected, sizeof expected, "[a|f]%s", contents[i]);
        check(TYPE, body, expected);
    }
}

/* More than is looked through at once, with a border at every place in it. */
static void test_long_content(void **state)
{
    (void)state;
    static char body[4096], content[2048];
    for (size_t length = 1000; length < 1700; length++) {
        for (size_t i = 0; i < length; i++)
            content[i] = "\rabcdefghijk\n"[i * 7 % 13];
        content[length] = '\0';
        int size = snprintf(body, sizeof body, FIELD("name=a; filename=f") "%s\r\n" END, content);
        struct td_buffer out;
        td_buffer_init(&out, 1 << 16);
        assert_true(read_in(TYPE, body, (size_t)size, length % 2 ? 611 : (size_t)size, &out));
        assert_string_equal(td_buffer_text(&out) + strlen("[a|f]"), content);
        td_buffer_release(&out);
    }
}

static void test_types(void **state)
{
    (void)state;
    static const char body[] = FIELD("name=\"a\"") "1\r\n" END;
    check("multipart/form-data; charset=x; Boundary=\"edge\"", body, "[a]1");
    check("multipart/form-data;boundary=edge; x=y", body, "[a]1");
    check("multipart/form-data", body, NULL);
    check("multipart/form-data; boundary=", body, NULL);
    check("multipart/form-data; boundary=\"\"", body, NULL);
    check("multipart/form-data; boundary", body, NULL);
    check("multipart/form-data; boundary="
          "01234567890123456789012345678901234567890123456789012345678901234567890",
          body, NULL);
}

static void test_broken(void **state)
{
    (void)state;
    check(TYPE, FIELD("name=\"a\"") "1\r\n", NULL);
    check(TYPE, FIELD("name=\"a\"") "1\r\n--edge-", NULL);
    check(TYPE, FIELD("name=\"a\"") "1\r\n--edgeX\r\n", NULL);
    check(TYPE, FIELD("filename=\"a\"") "1\r\n" END, NULL);
    check(TYPE, "--edge\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n" END, NULL);
    check(TYPE, "--edge\r\nContent-Type: x/y\r\n\r\n1\r\n" END, NULL);
    check(TYPE, "--edge\r\n\r\n1\r\n" END, NULL);
    check(TYPE, "no form at all", NULL);
}

static void test_headers_without_end(void **state)
{
    (void)state;
    static char body[40000];
    memset(body, 'x', sizeof body - 1);
    memcpy(body, "--edge\r\n", 8);
    struct td_buffer out;
    td_buffer_init(&out, 1 << 16);
    assert_false(read_in(TYPE, body, sizeof body - 1, 1000, &out));
    assert_false(read_in(TYPE, "--edge\r\nContent-Disposition: form-data; name=\"a\0b\"\r\n\r\n1\r\n" END, 70,
                         70, &out));
    td_buffer_release(&out);
}

static bool refuse(void *context, const char *name, const char *file_name)
{
    (void)context, (void)name, (void)file_name;
    return false;
}

static bool refuse_bytes(void *context, const char *bytes, size_t size)
{
    (void)context, (void)bytes, (void)size;
    return false;
}

/* Whoever takes the fields may stop at any time, and is not asked again. */
static void test_stop(void **state)
{
    (void)state;
    static const char body[] = FIELD("name=\"a\"") "1\r\n" FIELD("name=\"b\"") "2\r\n" END;
    struct td_buffer out;
    td_buffer_init(&out, 1 << 16);
    struct td_form *form = td_form_open(TYPE, &(struct td_form_sink){begin, refuse_bytes, &out});
    assert_false(td_form_take(form, body, sizeof body - 1));
    assert_false(td_form_take(form, body, sizeof body - 1));
    assert_string_equal(td_buffer_text(&out), "[a]");
    td_form_close(&form);
    form = td_form_open(TYPE, &(struct td_form_sink){refuse, add, &out});
    assert_false(td_form_take(form, body, sizeof body - 1));
    assert_string_equal(td_buffer_text(&out), "[a]");
    td_form_close(&form);
    td_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_long_content),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_headers_without_end),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
