/* convert.c: see convert.h. One loop per type, each simple enough for the compiler to vectorise. */
#include "kernel/convert.h"

#include "kernel/element.h"

#include <assert.h>

/* Defines convert_<name>: reads `type` elements, `value` is an expression of the element `e`. */
#define DEFINE_CONVERT(name, type, value)                                    \
    static void convert_##name(const void *from, int64_t count, double *out) \
    {                                                                        \
        const uint8_t *p = from;                                             \
        for (int64_t i = 0; i < count; i++) {                                \
            type e;                                                          \
            memcpy(&e, p + (size_t)i * sizeof e, sizeof e);                  \
            out[i] = (double)(value);                                        \
        }                                                                    \
    }

struct c64 {
    float re, im;
};

struct c128 {
    double re, im;
};

DEFINE_CONVERT(f64, double, e)
DEFINE_CONVERT(f32, float, e)
DEFINE_CONVERT(f16, uint16_t, td_f16_value(e))
DEFINE_CONVERT(bf16, uint16_t, td_bf16_value(e))
DEFINE_CONVERT(e4m3fn, uint8_t, td_e4m3fn_value(e))
DEFINE_CONVERT(e5m2, uint8_t, td_e5m2_value(e))
DEFINE_CONVERT(e4m3fnuz, uint8_t, td_e4m3fnuz_value(e))
DEFINE_CONVERT(e5m2fnuz, uint8_t, td_e5m2fnuz_value(e))
DEFINE_CONVERT(i64, int64_t, e)
DEFINE_CONVERT(i32, int32_t, e)
DEFINE_CONVERT(i16, int16_t, e)
DEFINE_CONVERT(i8, int8_t, e)
DEFINE_CONVERT(u64, uint64_t, e)
DEFINE_CONVERT(u32, uint32_t, e)
DEFINE_CONVERT(u16, uint16_t, e)
DEFINE_CONVERT(u8, uint8_t, e)
DEFINE_CONVERT(bool, uint8_t, e != 0)
DEFINE_CONVERT(c64, struct c64, td_c64_modulus(e.re, e.im))
DEFINE_CONVERT(c128, struct c128, td_c128_modulus(e.re, e.im))

static void (*const converters[TD_PLAIN_DTYPES])(const void *from, int64_t count, double *out) = {
    [TD_F64] = convert_f64,
    [TD_F32] = convert_f32,
    [TD_F16] = convert_f16,
    [TD_BF16] = convert_bf16,
    [TD_F8_E4M3FN] = convert_e4m3fn,
    [TD_F8_E5M2] = convert_e5m2,
    [TD_F8_E4M3FNUZ] = convert_e4m3fnuz,
    [TD_F8_E5M2FNUZ] = convert_e5m2fnuz,
    [TD_I64] = convert_i64,
    [TD_I32] = convert_i32,
    [TD_I16] = convert_i16,
    [TD_I8] = convert_i8,
    [TD_U64] = convert_u64,
    [TD_U32] = convert_u32,
    [TD_U16] = convert_u16,
    [TD_U8] = convert_u8,
    [TD_BOOL] = convert_bool,
    [TD_C64] = convert_c64,
    [TD_C128] = convert_c128,
};

void td_convert_f64(enum td_dtype dtype, const void *from, int64_t count, double *out)
{
    assert(td_dtype_is_plain(dtype));
    converters[dtype](from, count, out);
}
