/* number.c: shortest decimals by trying.
 *
 * For n = 1, 2, … digits: round the value to n digits, look what that text reads as, stop when it is the
 * value again. Most need nearly all the digits that their type is sure to keep, or a few more: begin there.
 * Trying is cheap because nothing is really printed or parsed: with an integer m < 2^53 and a power of ten up
 * to 10^22, m / 10^k and m * 10^k are exactly what a correct strtod gives. Doubles that need 16 or 17 digits
 * go through long double, with an interval check that leaves room for its rounding. What lies beyond (very
 * large, very small, or too close to call) goes through snprintf and strtod.
 */
#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct td_float_kind td_float64 = {53, -1074};
const struct td_float_kind td_float32 = {24, -149};
const struct td_float_kind td_float16 = {11, -24};
const struct td_float_kind td_bfloat16 = {8, -133};

enum { EXACT_POWER = 22, LONG_POWER = 27, EXACT_DIGITS = 15, MOST_DIGITS = 17 };

static const double power[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#if LDBL_MANT_DIG >= 64
static const long double long_power[LONG_POWER + 1] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
    1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
#endif

/* Half the distances to the neighbours of a value: what rounds to it lies strictly within. */
struct interval {
    double below, above;
    bool least; /* no two values of the type are nearer: the value may be subnormal, with fewer digits */
};

/* 2^n. To ask libm took longer than all else that a short number takes. */
static double power_of_two(int n)
{
    if (n < DBL_MIN_EXP - 1 || n >= DBL_MAX_EXP)
        return ldexp(1, n);
    uint64_t bits = (uint64_t)(n + DBL_MAX_EXP - 1) << (DBL_MANT_DIG - 1);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static struct interval half_gaps(double v, const struct td_float_kind *kind)
{
    int exponent;
    double fraction = frexp(v, &exponent); /* v = fraction * 2^exponent, fraction in [0.5, 1) */
    int ulp = exponent - kind->bits;
    bool thin = fraction == 0.5 && ulp > kind->least; /* a power of two: nearer neighbour below */
    if (ulp < kind->least)
        ulp = kind->least;
    double half = power_of_two(ulp - 1);
    return (struct interval){.below = thin ? half / 2 : half, .above = half, .least = ulp == kind->least};
}

/* floor(log10(v)), maybe one too small or too large near a power of ten; harmless: one digit more or less. */
static int decimal_exponent(double v)
{
    int exponent;
    frexp(v, &exponent);
    int estimate = (int)floor((exponent - 1) * 0.30102999566398120);
    if (estimate >= 0 && estimate < EXACT_POWER)
        return v >= power[estimate + 1] ? estimate + 1 : estimate;
    if (estimate < 0 && estimate >= -EXACT_POWER)
        return v * power[-estimate] >= 10 ? estimate + 1 : estimate;
    return estimate;
}

enum answer { NO, YES, UNSURE };

static bool within(double off, struct interval gap)
{
    return off == 0 || (off > 0 ? off < gap.above : -off < gap.below);
}

/* Do the first n digits of v, m * 10^-scale, read back as v? Exact. */
static enum answer try_exact(double v, int scale, struct interval gap, uint64_t *digits)
{
    double m = rint(scale >= 0 ? v * power[scale] : v / power[-scale]);
    double read = scale >= 0 ? m / power[scale] : m * power[-scale];
    *digits = (uint64_t)m;
    return within(read - v, gap) ? YES : NO;
}

/* The same where doubles are too short: a long double's own rounding is below 2^-9 of a double's gap, so that
 * only answers within 1/256 of its edge are in doubt. */
static enum answer try_long(double v, int scale, struct interval gap, uint64_t *digits)
{
#if LDBL_MANT_DIG >= 64
    if (scale > LONG_POWER || scale < -LONG_POWER)
        return UNSURE;
    long double m =
        rintl(scale >= 0 ? (long double)v * long_power[scale] : (long double)v / long_power[-scale]);
    long double off = (scale >= 0 ? m / long_power[scale] : m * long_power[-scale]) - (long double)v;
    long double edge = (long double)(off > 0 ? gap.above : gap.below);
    *digits = (uint64_t)m;
    return fabsl(off) < edge * (255.0L / 256.0L) ? YES : fabsl(off) > edge * (257.0L / 256.0L) ? NO : UNSURE;
#else
    (void)v, (void)scale, (void)gap, (void)digits;
    return UNSURE;
#endif
}

static enum answer try_digits(double v, int n, int exponent, struct interval gap, struct td_decimal *out)
{
    int scale = n - 1 - exponent;
    bool exact = n <= EXACT_DIGITS && scale <= EXACT_POWER && scale >= -EXACT_POWER;
    out->exponent = -scale;
    return (exact ? try_exact : try_long)(v, scale, gap, &out->digits);
}

/* Decimals of so many digits are all different numbers in a type of so many bits. */
static int sure_digits(int bits)
{
    return (int)((bits - 1) * 0.30102999566398120);
}

/* Without printing anything. False: v is out of reach. */
static bool try_computed(double v, const struct td_float_kind *kind, struct interval gap,
                         struct td_decimal *out)
{
    int exponent = decimal_exponent(v), sure = sure_digits(kind->bits);
    enum answer answer = try_digits(v, sure, exponent, gap, out);
    /* Then a shorter one, were it to read back as v too, would be this one with zeros at its end. */
    if (answer == YES && !gap.least)
        return true;
    for (int n = answer == NO ? sure + 1 : 1; n <= MOST_DIGITS; n++) {
        answer = try_digits(v, n, exponent, gap, out);
        if (answer != NO)
            return answer == YES;
    }
    return false;
}

/* Any value, slowly. 17 digits always do. */
static struct td_decimal try_printed(double v, struct interval gap)
{
    char text[40];
    for (int n = 1; n < MOST_DIGITS; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, v);
        if (within(strtod(text, NULL) - v, gap))
            break;
        if (n == MOST_DIGITS - 1)
            snprintf(text, sizeof text, "%.*e", MOST_DIGITS - 1, v);
    }
    struct td_decimal out = {0};
    const char *at = text;
    bool point = false;
    for (; *at != 'e'; at++) {
        if (*at < '0' || *at > '9') { /* the point, or whatever the locale makes of it */
            point = true;
            continue;
        }
        out.digits = out.digits * 10 + (uint64_t)(*at - '0');
        out.exponent -= point;
    }
    out.exponent += (int)strtol(at + 1, NULL, 10);
    return out;
}

static void strip_zeros(struct td_decimal *d)
{
    while (d->digits % 10 == 0) {
        d->digits /= 10;
        d->exponent++;
    }
    d->count = 1;
    for (uint64_t rest = d->digits; rest >= 10; rest /= 10)
        d->count++;
}

struct td_decimal td_decimal_shortest(double value, const struct td_float_kind *kind)
{
    struct td_decimal out = {.count = 1};
    if (value != 0) {
        double v = fabs(value);
        struct interval gap = half_gaps(v, kind);
        if (!try_computed(v, kind, gap, &out))
            out = try_printed(v, gap);
        strip_zeros(&out);
    }
    out.negative = signbit(value);
    return out;
}

size_t td_number_uint(char *out, uint64_t value)
{
    char reversed[24];
    size_t length = 0;
    do
        reversed[length++] = (char)('0' + value % 10);
    while (value /= 10);
    for (size_t i = 0; i < length; i++)
        out[i] = reversed[length - 1 - i];
    out[length] = 0;
    return length;
}

size_t td_number_int(char *out, int64_t value)
{
    if (value >= 0)
        return td_number_uint(out, (uint64_t)value);
    out[0] = '-';
    return 1 + td_number_uint(out + 1, 0 - (uint64_t)value);
}

/* digits with the point after the first `whole` of them; zeros where digits end. */
static size_t print_fixed(char *out, const char *digits, int count, int whole)
{
    char *at = out;
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        for (; whole < 0; whole++)
            *at++ = '0';
        memcpy(at, digits, (size_t)count);
        return (size_t)(at - out + count);
    }
    for (int i = 0; i < whole; i++)
        *at++ = i < count ? digits[i] : '0';
    *at++ = '.';
    if (count <= whole)
        *at++ = '0';
    for (int i = whole; i < count; i++)
        *at++ = digits[i];
    return (size_t)(at - out);
}

size_t td_number_float(char *out, double value, const struct td_float_kind *kind)
{
    if (!isfinite(value)) {
        strcpy(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return strlen(out);
    }
    struct td_decimal d = td_decimal_shortest(value, kind);
    char digits[TD_NUMBER_SIZE];
    size_t length = td_number_uint(digits, d.digits);
    char *at = out;
    if (d.negative)
        *at++ = '-';
    int place = d.count + d.exponent; /* digits before the point */
    if (place > -4 && place <= 16) {
        at += print_fixed(at, digits, d.count, place);
    } else {
        *at++ = digits[0];
        if (d.count > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, length - 1);
            at += length - 1;
        }
        *at++ = 'e';
        *at++ = place > 0 ? '+' : '-';
        int exponent = abs(place - 1);
        if (exponent < 10)
            *at++ = '0';
        at += td_number_uint(at, (uint64_t)exponent);
    }
    *at = 0;
    return (size_t)(at - out);
}

const char *td_number_factor(char out[TD_NUMBER_SIZE], double value)
{
    double unit = value >= 99950 ? 1000 : value >= 9995 ? 100 : 10;
    if (value >= 999.5 && value < 999500)
        snprintf(out, TD_NUMBER_SIZE, "%.0f", unit * round(value / unit));
    else
        snprintf(out, TD_NUMBER_SIZE, "%.3g", value);
    return out;
}
