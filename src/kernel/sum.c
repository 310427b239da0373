/* sum.c: see sum.h. */
#include "kernel/sum.h"

#include "kernel/element.h"

/* Defines sum_<name> for `type`; `total` is an expression of the elements `a` and `b`. */
#define DEFINE_SUM(name, type, total)                                       \
    static void sum_##name(const uint8_t *from, int64_t count, uint8_t *to) \
    {                                                                       \
        for (int64_t i = 0; i < count; i++) {                               \
            type a, b;                                                      \
            memcpy(&a, to + (size_t)i * sizeof a, sizeof a);                \
            memcpy(&b, from + (size_t)i * sizeof b, sizeof b);              \
            a = (type)(total);                                              \
            memcpy(to + (size_t)i * sizeof a, &a, sizeof a);                \
        }                                                                   \
    }

DEFINE_SUM(f64, double, a + b)
DEFINE_SUM(f32, float, a + b)
DEFINE_SUM(f16, uint16_t, td_f16_round(td_f16_value(a) + td_f16_value(b)))
DEFINE_SUM(bf16, uint16_t, td_bf16_round(td_bf16_value(a) + td_bf16_value(b)))
DEFINE_SUM(u64, uint64_t, a + b)
DEFINE_SUM(u32, uint32_t, a + b)
DEFINE_SUM(u16, uint16_t, a + b)
DEFINE_SUM(u8, uint8_t, a + b)
DEFINE_SUM(bool, uint8_t, (a | b) != 0)

tdbg_status td_sum_into(enum td_dtype dtype, const void *from, int64_t count, void *to,
                        struct tdbg_error *error)
{
    switch (dtype) {
    case TD_F64:
        sum_f64(from, count, to);
        break;
    case TD_C128:
        sum_f64(from, 2 * count, to);
        break;
    case TD_F32:
        sum_f32(from, count, to);
        break;
    case TD_C64:
        sum_f32(from, 2 * count, to);
        break;
    case TD_F16:
        sum_f16(from, count, to);
        break;
    case TD_BF16:
        sum_bf16(from, count, to);
        break;
    case TD_I64:
    case TD_U64:
        sum_u64(from, count, to);
        break;
    case TD_I32:
    case TD_U32:
        sum_u32(from, count, to);
        break;
    case TD_I16:
    case TD_U16:
        sum_u16(from, count, to);
        break;
    case TD_I8:
    case TD_U8:
        sum_u8(from, count, to);
        break;
    case TD_BOOL:
        sum_bool(from, count, to);
        break;
    default:
        return td_fail(error, TDBG_UNSUPPORTED, "sparse tensors of %s", td_dtype_name(dtype));
    }
    return TDBG_OK;
}
