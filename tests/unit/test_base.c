/* test_base.c: the parts every reader leans on: cursor, checked arithmetic, buffer, arena, UTF-8, errors,
 * runs of bits, libraries loaded late. */
#include "test_support.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/field.h"
#include "base/library.h"
#include "base/status.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void cursor_reads_little_endian(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct td_cursor c = td_cursor_init(bytes, sizeof bytes);
    assert_int_equal(td_cursor_u8(&c), 0x01);
    assert_int_equal(td_cursor_u16(&c), 0x0302);
    assert_int_equal(td_cursor_u32(&c), 0x07060504);
    assert_int_equal(td_cursor_u64(&c), 0x0f0e0d0c0b0a0908);
    assert_int_equal(td_cursor_left(&c), 0);
    assert_false(c.bad);
}

static void cursor_error_is_sticky(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    struct td_cursor c = td_cursor_init(bytes, sizeof bytes);
    assert_int_equal(td_cursor_u32(&c), 0);
    assert_true(c.bad);
    assert_int_equal(td_cursor_u8(&c), 0);
    assert_int_equal(c.at, 0);
    c = td_cursor_init(bytes, sizeof bytes);
    assert_null(td_cursor_take(&c, UINT64_MAX));
    c = td_cursor_init(bytes, sizeof bytes);
    assert_ptr_equal(td_cursor_take(&c, 3), bytes);
    assert_ptr_equal(td_cursor_take(&c, 0), bytes + 3);
    assert_false(c.bad);
}

static void checked_arithmetic(void **state)
{
    (void)state;
    uint64_t u = 7;
    int64_t i = 7;
    assert_true(td_add_u64(UINT64_MAX - 1, 1, &u));
    assert_int_equal(u, UINT64_MAX);
    assert_false(td_add_u64(UINT64_MAX, 1, &u));
    assert_false(td_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
    assert_false(td_add_i64(INT64_MIN, -1, &i));
    assert_false(td_mul_i64(INT64_MIN, -1, &i));
    assert_true(td_range_within(4, 6, 10));
    assert_true(td_range_within(10, 0, 10));
    assert_false(td_range_within(11, 0, 10));
    assert_false(td_range_within(4, 7, 10));
    assert_false(td_range_within(UINT64_MAX, 2, 10));
}

static void buffer_grows_and_ends_with_nul(void **state)
{
    (void)state;
    struct td_buffer b;
    td_buffer_init(&b, 1000);
    assert_string_equal(td_buffer_text(&b), "");
    for (int i = 0; i < 100; i++)
        td_buffer_printf(&b, "%d,", i);
    assert_false(b.failed);
    assert_int_equal(b.size, 290);
    assert_int_equal(strlen(td_buffer_text(&b)), 290);
    char *text = td_buffer_take(&b);
    assert_memory_equal(text, "0,1,2,3,", 8);
    assert_int_equal(b.size, 0);
    free(text);
}

static void buffer_limit_is_sticky(void **state)
{
    (void)state;
    struct td_buffer b;
    td_buffer_init(&b, 4);
    td_buffer_puts(&b, "1234");
    assert_false(b.failed);
    td_buffer_puts(&b, "5");
    assert_true(b.failed);
    assert_string_equal(td_buffer_text(&b), "1234");
    assert_null(td_buffer_take(&b));
    td_buffer_release(&b);
}

static void arena_keeps_what_it_gives(void **state)
{
    (void)state;
    struct td_arena a;
    td_arena_init(&a, 1 << 20);
    uint32_t *numbers[500];
    for (uint32_t i = 0; i < 500; i++) {
        numbers[i] = td_arena_array(&a, i + 1, sizeof(uint32_t));
        assert_non_null(numbers[i]);
        assert_int_equal((uintptr_t)numbers[i] % 16, 0);
        assert_int_equal(numbers[i][i], 0);
        numbers[i][i] = i;
    }
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(numbers[i][i], i);
    assert_string_equal(td_arena_printf(&a, "layer %d", 12), "layer 12");
    assert_string_equal(td_arena_strndup(&a, "query_final", 5), "query");
    td_arena_release(&a);
}

static void arena_takes_over_another(void **state)
{
    (void)state;
    struct td_arena a, b, small;
    td_arena_init(&a, 1 << 20);
    td_arena_init(&b, 1 << 20);
    td_arena_init(&small, 64);
    const char *ours = td_arena_strdup(&a, "ours"), *theirs = td_arena_strdup(&b, "theirs");
    assert_non_null(td_arena_alloc(&b, 100000));
    assert_false(td_arena_join(&small, &b));
    assert_true(td_arena_join(&a, &b));
    td_arena_release(&b);
    assert_true(a.used >= 100000);
    assert_string_equal(td_arena_strdup(&a, "later"), "later");
    assert_string_equal(ours, "ours");
    assert_string_equal(theirs, "theirs");
    td_arena_release(&a);
    td_arena_release(&small);
}

static void arena_stops_at_its_limit(void **state)
{
    (void)state;
    struct td_arena a;
    td_arena_init(&a, 4096);
    assert_null(td_arena_alloc(&a, 5000));
    assert_null(td_arena_array(&a, SIZE_MAX / 2, 16));
    assert_null(td_arena_strndup(&a, "", SIZE_MAX));
    size_t given = 0;
    while (td_arena_alloc(&a, 64))
        given += 64;
    assert_true(given > 3900 && given <= 4096);
    td_arena_release(&a);
}

static void utf8_refuses_what_is_not(void **state)
{
    (void)state;
    assert_true(td_utf8_valid("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10));
    static const char *const bad[] = {
        "\x80",             /* continuation alone */
        "\xc0\xaf",         /* overlong '/' */
        "\xe0\x80\xaf",     /* overlong, three bytes */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf8\x88\x80\x80", /* five-byte lead */
        "\xe2\x82",         /* cut short */
        "\xff",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(td_utf8_valid(bad[i], strlen(bad[i])));
    char text[] = "a\x1b[31m\xff\xc3\xa9\xc2\x9b";
    assert_false(td_utf8_is_clean(text));
    td_utf8_clean(text);
    assert_string_equal(text, "a?[31m?\xc3\xa9??");
    assert_true(td_utf8_is_clean(text) && td_utf8_is_clean(""));
}

static void errors_carry_status_offset_and_name(void **state)
{
    (void)state;
    struct tdbg_error error;
    assert_fails(td_fail_at(&error, TDBG_CORRUPT, 12, "bad field %d", 3), TDBG_CORRUPT, "bad field 3");
    assert_int_equal(error.offset, 12);
    td_error_prefix(&error, "a.npy");
    assert_string_equal(error.message, "a.npy: bad field 3");
    assert_int_equal(td_fail(NULL, TDBG_LIMIT, "nobody listens"), TDBG_LIMIT);

    char name[500];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    td_error_prefix(&error, name);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    const char *tail = ": a.npy: bad field 3";
    assert_string_equal(error.message + strlen(error.message) - strlen(tail), tail);
}

#define MATH_CALLS(CALL) CALL(c, os) CALL(fl, oor)
TD_LIBRARY_CALLS(math_calls, MATH_CALLS);

static void library_gives_its_functions_or_says_what_is_missing(void **state)
{
    (void)state;
    struct tdbg_error error;
    struct math_calls math;
    struct td_library good = TD_LIBRARY("libm.so.6", MATH_CALLS, &math);
    struct td_library nowhere = TD_LIBRARY("libnowhere.so.1", MATH_CALLS, &math);
    struct td_library other = TD_LIBRARY("libpthread.so.0", MATH_CALLS, &math);
    assert_int_equal(td_library_load(&good, &error), TDBG_OK);
    assert_int_equal(td_library_load(&good, &error), TDBG_OK);
    assert_true(math.os(0) == 1 && math.oor(2.5) == 2);
    assert_fails(td_library_load(&nowhere, &error), TDBG_UNSUPPORTED,
                 "needs a library that is not here: libnowhere.so.1: cannot open shared object file: No such "
                 "file or directory");
    assert_fails(td_library_load(&other, &error), TDBG_UNSUPPORTED, "libpthread.so.0 has no cos");
}

static void fields_are_the_same_by_any_instruction(void **state)
{
    (void)state;
    uint64_t word = UINT64_C(0xfedcba9876543210);
    assert_int_equal(td_field(word, 8 << 8 | 4), 0x21);
    assert_int_equal(td_field(word, 0 << 8 | 63), 0);
    if (!td_has_bmi())
        skip();
    for (uint32_t first = 0; first < 64; first++)
        for (uint32_t count = 0; count < 32; count++, word = word * 5 + 1) {
            uint32_t place = UINT32_C(0xabcd) << 16 | count << 8 | first;
            assert_int_equal(td_field_bmi(word, place), td_field(word, place));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursor_reads_little_endian),
        cmocka_unit_test(cursor_error_is_sticky),
        cmocka_unit_test(checked_arithmetic),
        cmocka_unit_test(buffer_grows_and_ends_with_nul),
        cmocka_unit_test(buffer_limit_is_sticky),
        cmocka_unit_test(arena_keeps_what_it_gives),
        cmocka_unit_test(arena_takes_over_another),
        cmocka_unit_test(arena_stops_at_its_limit),
        cmocka_unit_test(utf8_refuses_what_is_not),
        cmocka_unit_test(errors_carry_status_offset_and_name),
        cmocka_unit_test(fields_are_the_same_by_any_instruction),
        cmocka_unit_test(library_gives_its_functions_or_says_what_is_missing),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
