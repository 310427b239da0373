/* number.h: numbers as text that reads back to the same bits.
 *
 * A float is printed with the fewest digits that still round to it in its own type: float32 0.1 is "0.1",
 * not "0.10000000149011612". What counts is the text read as a double and then rounded to the type, as
 * every JSON reader does. Digits are found as a td_decimal first, so that tables can lay them out and JSON
 * can write them without finding them twice.
 */
#ifndef TD_BASE_NUMBER_H
#define TD_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A binary floating-point type: bits of its significand (the hidden one too), exponent of its least bit. */
struct td_float_kind {
    int bits, least;
};

extern const struct td_float_kind td_float64, td_float32, td_float16, td_bfloat16;

/* (negative ? -1 : 1) * digits * 10^exponent, without trailing zeros; `count` digits, 1 for zero. */
struct td_decimal {
    uint64_t digits;
    int exponent, count;
    bool negative;
};

/* The shortest decimal that rounds to `value`, which is finite and a value of `kind`. */
struct td_decimal td_decimal_shortest(double value, const struct td_float_kind *kind);

/* Room for any number these functions write, with its NUL. */
enum { TD_NUMBER_SIZE = 32 };

/* Each writes text of less than TD_NUMBER_SIZE bytes and returns its length. A float always looks like one
 * ("1.0", "-0.0", "1e-07"); NaN and infinities are nan, inf, -inf. */
size_t td_number_float(char *out, double value, const struct td_float_kind *kind);
size_t td_number_uint(char *out, uint64_t value);
size_t td_number_int(char *out, int64_t value);

/* How many times something is something else, for people: three digits, and no exponent below a million.
 * Returns `out`. */
const char *td_number_factor(char out[TD_NUMBER_SIZE], double value);

#endif
