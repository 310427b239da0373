/* field.h: a run of bits out of a word, and loops compiled with the instruction for it.
 *
 * A loop that takes such runs all the time is written once, as a function that is always inlined and gets
 * td_field or td_field_bmi; two others wrap it, one of them TD_BMI, and td_has_bmi chooses between these.
 * Compilers know no other way to that instruction, hence the one intrinsic outside of kernel/.
 */
#ifndef TD_BASE_FIELD_H
#define TD_BASE_FIELD_H

#include <stdbool.h>
#include <stdint.h>

/* `place`: the first bit in bits 0..7, how many in bits 8..15, less than 32. What is above does not matter.
 */
typedef uint32_t td_field_of(uint64_t word, uint32_t place);

static inline uint32_t td_field(uint64_t word, uint32_t place)
{
    return (uint32_t)(word >> (place & 63)) & ((UINT32_C(1) << (place >> 8 & 31)) - 1);
}

#ifdef __x86_64__
#define TD_BMI __attribute__((target("bmi,bmi2")))
TD_BMI static inline uint32_t td_field_bmi(uint64_t word, uint32_t place)
{
    return (uint32_t)__builtin_ia32_bextr_u64(word, place);
}
static inline bool td_has_bmi(void)
{
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#else
#define TD_BMI
static inline uint32_t td_field_bmi(uint64_t word, uint32_t place)
{
    return td_field(word, place);
}
static inline bool td_has_bmi(void)
{
    return false;
}
#endif

#endif
