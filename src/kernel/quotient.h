/* quotient.h: divisions of doubles on the units that multiply, for loops that keep the divider busy.
 *
 * AVX-512 divides eight doubles in 16 cycles; multiplications and additions take 7 and can go on beside it.
 * The answer is the division's to the bit, for x and y far from overflow and underflow and y of the form
 * |a| + TD_REL_EPSILON, with a that fits float32:
 *
 *     r0            1/y to 2^-14, as the CPU estimates it
 *     r1, r2        1/y to 2^-42, and rounded: off by at most half a unit in the last place, and 2^-84
 *     q0, q1, q2    x/y from r2; each is corrected by what the one before leaves of x
 *
 * Write y and the quotient as numbers in [1, 2) and [1/2, 2). q1 is off by half a unit in the last place and
 * hardly more, so x - q1 y is exact, and what q2 is rounded from is off by that half times the error of r2,
 * less than y/2 units: with units of 2^-53, by y 2^-108. No quotient comes closer to the middle between two
 * doubles, where rounding turns, than 2^-106 / y: multiples of 2^-106 that are not equal differ by as much.
 * So q2 is rounded as the quotient is where y^2 < 4, and by more than the 2^-31 that hardly and 2^-84 come
 * to. It is: y as close to 2 as that would take 7 ones in a row in the bits of TD_REL_EPSILON, which has
 * four, or in those of a behind its 24th. A quotient in [1, 2) has units twice as large, and so is all else.
 */
#ifndef TD_KERNEL_QUOTIENT_H
#define TD_KERNEL_QUOTIENT_H

#include "kernel/lanes.h"

TD_INLINE td_vd td_vd_quotient_aside(td_vd x, td_vd y)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    td_vd r0 = _mm512_rcp14_pd(y);
    td_vd e0 = _mm512_fnmadd_pd(y, r0, td_vd_all(1)); /* 1/y is r0 (1 + e0 + e0^2 + ...) */
    td_vd r1 = _mm512_fmadd_pd(_mm512_fmadd_pd(e0, e0, e0), r0, r0);
    td_vd r2 = _mm512_fmadd_pd(_mm512_fnmadd_pd(y, r1, td_vd_all(1)), r1, r1);
    td_vd q0 = x * r2;
    td_vd q1 = _mm512_fmadd_pd(_mm512_fnmadd_pd(q0, y, x), r2, q0);
    return _mm512_fmadd_pd(_mm512_fnmadd_pd(q1, y, x), r2, q1);
#else
    return x / y;
#endif
}

#endif
