/* element.h: what the bits of one element mean: the scalar specification of every plain type.
 *
 * The small floats convert without tables or branches: put exponent and fraction where float32 has them and
 * multiply by a power of two that moves the exponent's bias. The product is exact, subnormals included.
 * Elements may lie at any address, so everything is read through memcpy.
 */
#ifndef TD_KERNEL_ELEMENT_H
#define TD_KERNEL_ELEMENT_H

#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

static inline float td_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t td_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float td_f16_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t scaled = td_f32_bits(td_f32_from_bits(magnitude) * 0x1p112f);
    uint32_t special = magnitude | 0x7f800000; /* exponent all ones: inf or NaN */
    return td_f32_from_bits(sign | (magnitude >= 0x0f800000 ? special : scaled));
}

static inline float td_bf16_value(uint16_t bits)
{
    return td_f32_from_bits((uint32_t)bits << 16);
}

/* 4 exponent bits, bias 7, no infinities, NaN is all ones. */
static inline float td_e4m3fn_value(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24, magnitude = byte & 0x7f;
    uint32_t scaled = td_f32_bits(td_f32_from_bits(magnitude << 20) * 0x1p120f);
    return td_f32_from_bits(sign | (magnitude == 0x7f ? 0x7fc00000 : scaled));
}

/* The upper half of a float16. */
static inline float td_e5m2_value(uint8_t byte)
{
    return td_f16_value((uint16_t)(byte << 8));
}

/* The fnuz kin: one more in the bias, no infinities, no negative zero: its code is the only NaN. */
static inline float td_e4m3fnuz_value(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24;
    uint32_t scaled = td_f32_bits(td_f32_from_bits((uint32_t)(byte & 0x7f) << 20) * 0x1p119f);
    return td_f32_from_bits(byte == 0x80 ? 0x7fc00000 : sign | scaled);
}

static inline float td_e5m2fnuz_value(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24;
    uint32_t scaled = td_f32_bits(td_f32_from_bits((uint32_t)(byte & 0x7f) << 21) * 0x1p111f);
    return td_f32_from_bits(byte == 0x80 ? 0x7fc00000 : sign | scaled);
}

/* The element at any address, as a double. */
static inline double td_f64_at(const uint8_t *p)
{
    double value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline double td_f32_at(const uint8_t *p)
{
    float value;
    memcpy(&value, p, sizeof value);
    return (double)value;
}

static inline double td_f16_at(const uint8_t *p)
{
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return (double)td_f16_value(bits);
}

static inline double td_bf16_at(const uint8_t *p)
{
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return (double)td_bf16_value(bits);
}

/* One of the above. */
typedef double td_float_at(const uint8_t *p);

static inline td_float_at *td_float_reader(enum td_dtype dtype)
{
    return dtype == TD_F64   ? td_f64_at
           : dtype == TD_F32 ? td_f32_at
           : dtype == TD_F16 ? td_f16_at
                             : td_bf16_at;
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t td_bf16_round(float value)
{
    uint32_t bits = td_f32_bits(value);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t td_f16_round(float value)
{
    uint32_t bits = td_f32_bits(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000)
        return sign | 0x7e00;
    if (magnitude >= 0x477ff000) /* 65520: halfway to what would be 2^16 */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { /* subnormal: adding 1/2 leaves a multiple of 2^-24 in the low bits */
        uint32_t shifted = td_f32_bits(td_f32_from_bits(magnitude) + 0.5f);
        return sign | (uint16_t)(shifted - td_f32_bits(0.5f));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)((rounded - 0x38000000) >> 13);
}

/* An infinite part makes the modulus infinite, even beside a NaN. Squares of float32 are exact in double and
 * far from its ends; those of doubles are not, so hypot takes care there. */
static inline double td_c64_modulus(float real, float imaginary)
{
    double re = real, im = imaginary;
    return isinf(re) || isinf(im) ? (double)INFINITY : sqrt(re * re + im * im);
}

static inline double td_c128_modulus(double real, double imaginary)
{
    return hypot(real, imaginary);
}

/* What people see as b - a: two infinities of one sign do not differ. */
static inline double td_difference(double a, double b)
{
    return a == b ? 0 : b - a;
}

#endif
