/* test_number.c: every number reads back to the same bits, in the fewest digits that do. */
#include "test_support.h"

#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not random: the same numbers on every run. */
static uint64_t next_bits(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void check_text(double value, const struct td_float_kind *kind, const char *expected)
{
    char text[TD_NUMBER_SIZE];
    size_t length = td_number_float(text, value, kind);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void test_texts(void **state)
{
    (void)state;
    check_text(0.0, &td_float64, "0.0");
    check_text(-0.0, &td_float32, "-0.0");
    check_text(1.0, &td_float64, "1.0");
    check_text(-1.5, &td_float64, "-1.5");
    check_text(0.1, &td_float64, "0.1");
    check_text((double)0.1f, &td_float32, "0.1");
    check_text((double)0.1f, &td_float64, "0.10000000149011612");
    check_text(0.0999755859375, &td_float16, "0.1");
    check_text(0.10009765625, &td_bfloat16, "0.1");
    check_text(0.10009765625, &td_float32, "0.100097656");
    check_text(65504, &td_float16, "65500.0");
    check_text(1.0 / 3, &td_float64, "0.3333333333333333");
    check_text(0.0001, &td_float64, "0.0001");
    check_text(0.00001, &td_float64, "1e-05");
    check_text(123456789012345.0, &td_float64, "123456789012345.0");
    check_text(1e15, &td_float64, "1000000000000000.0");
    check_text(1e16, &td_float64, "1e+16");
    check_text(9007199254740993.0, &td_float64, "9007199254740992.0");
    check_text(1e22, &td_float64, "1e+22");
    check_text(1e23, &td_float64, "1e+23");
    check_text(DBL_MAX, &td_float64, "1.7976931348623157e+308");
    check_text(DBL_MIN, &td_float64, "2.2250738585072014e-308");
    check_text(4.9406564584124654e-324, &td_float64, "5e-324");
    check_text((double)FLT_MAX, &td_float32, "3.4028235e+38");
    check_text(1.401298464324817e-45, &td_float32, "1e-45");
    check_text((double)NAN, &td_float64, "nan");
    check_text((double)INFINITY, &td_float32, "inf");
    check_text(-(double)INFINITY, &td_float32, "-inf");
}

static void test_integers(void **state)
{
    (void)state;
    char text[TD_NUMBER_SIZE];
    td_number_int(text, INT64_MIN);
    assert_string_equal(text, "-9223372036854775808");
    td_number_uint(text, UINT64_MAX);
    assert_string_equal(text, "18446744073709551615");
    assert_int_equal(td_number_int(text, 0), 1);
}

/* Half-way to a neighbour: rounds to an even value, but we do not rely on everybody's rounding. */
static bool is_tie(double read, float value)
{
    return read == ((double)value + (double)nextafterf(value, INFINITY)) / 2 ||
           read == ((double)value + (double)nextafterf(value, -INFINITY)) / 2;
}

/* Digits of the shortest %e text that reads back, found the slow way. */
static int least_digits(double value, bool single)
{
    char text[40];
    for (int n = 1; n < 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, value);
        double read = strtod(text, NULL);
        if (single ? (float)read == (float)value && !is_tie(read, (float)value) : read == value)
            return n;
    }
    return 17;
}

static void check_double(double value)
{
    char text[TD_NUMBER_SIZE];
    if (!isfinite(value))
        return;
    td_number_float(text, value, &td_float64);
    double read = strtod(text, NULL);
    if (memcmp(&read, &value, sizeof read) != 0)
        fail_msg("%.17g printed as %s", value, text);
    if (td_decimal_shortest(value, &td_float64).count > least_digits(value, false))
        fail_msg("%.17g printed as %s, fewer digits would do", value, text);
}

static void check_single(float value)
{
    char text[TD_NUMBER_SIZE];
    if (!isfinite(value))
        return;
    td_number_float(text, (double)value, &td_float32);
    float read = (float)strtod(text, NULL);
    if (memcmp(&read, &value, sizeof read) != 0)
        fail_msg("%.9g printed as %s", (double)value, text);
    if (td_decimal_shortest((double)value, &td_float32).count > least_digits((double)value, true))
        fail_msg("%.9g printed as %s, fewer digits would do", (double)value, text);
}

static void test_doubles(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 6000; i++) {
        uint64_t bits = next_bits(&seed);
        double any, usual = (double)(int64_t)bits * 0x1p-63 * pow(10, (int)(bits & 31) - 16);
        memcpy(&any, &bits, sizeof any);
        check_double(any);
        check_double(usual);
        check_double(ldexp(1, (int)(bits % 2000) - 1000));
    }
}

static void test_singles(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)next_bits(&seed);
        float any;
        memcpy(&any, &bits, sizeof any);
        check_single(any);
        check_single((float)((double)(int32_t)bits * 0x1p-31));
    }
}

/* Every bfloat16 there is: the text, read as a double and cut to nearest-even bfloat16, is it again. */
static void test_every_bfloat16(void **state)
{
    (void)state;
    for (uint32_t high = 0; high < 0x10000; high++) {
        uint32_t bits = high << 16, back;
        float value, read;
        char text[TD_NUMBER_SIZE];
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        td_number_float(text, (double)value, &td_bfloat16);
        read = (float)strtod(text, NULL);
        memcpy(&back, &read, sizeof back);
        back += 0x7fff + (back >> 16 & 1);
        if (back >> 16 != high)
            fail_msg("bfloat16 %04x printed as %s", high, text);
    }
}

static void test_factors(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1.0625, "1.06"},   {27.6, "27.6"},     {999.4, "999"},    {999.6, "1000"},
                 {1882.4, "1880"},   {9994, "9990"},     {9996, "10000"},   {99960, "100000"},
                 {123456, "123000"}, {999499, "999000"}, {999501, "1e+06"}, {INFINITY, "inf"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TD_NUMBER_SIZE];
        assert_string_equal(td_number_factor(text, cases[i].value), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_integers),       cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_singles), cmocka_unit_test(test_every_bfloat16), cmocka_unit_test(test_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
