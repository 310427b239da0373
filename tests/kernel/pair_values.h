/* pair_values.h: elements of both sides of a comparison, at random: tame, special, close to each other, the
 * same but for a few. */
#ifndef TD_TESTS_PAIR_VALUES_H
#define TD_TESTS_PAIR_VALUES_H

#include "kernel/pair.h"
#include "tensor/dtype.h"

#include <string.h>

static uint64_t seed = 88172645463325252;

static inline uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static const enum td_dtype floats[] = {TD_F64, TD_F32, TD_F16, TD_BF16};
enum { FLOATS = sizeof floats / sizeof *floats };

/* What the elements of the two sides may look like. */
enum fill {
    BITS,
    TAME,
    SPECIAL,
    SUBNORMAL,
    SIGNS,
    EQUAL,
    POSITIVE,
    CLOSE,
    FEW,
    FEW_POSITIVE,
    FEW_NEGATIVE,
    FEW_SIGNS,
    FEW_WIDE,
    FEW_SPECIAL,
    FILLS
};

static inline uint64_t special(enum td_dtype dtype)
{
    static const uint64_t f64[] = {0,
                                   0x8000000000000000,
                                   1,
                                   0x8000000000000001,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0x7ff0000000000001,
                                   0xffffffffffffffff,
                                   0x7fefffffffffffff};
    static const uint64_t f32[] = {0,          0x80000000, 1,          0x80000001, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7f7fffff};
    static const uint64_t f16[] = {0, 0x8000, 1, 0x8001, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff, 0x7bff};
    static const uint64_t bf16[] = {0, 0x8000, 1, 0x8001, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff, 0x7f7f};
    const uint64_t *codes = dtype == TD_F64 ? f64 : dtype == TD_F32 ? f32 : dtype == TD_F16 ? f16 : bf16;
    return codes[random_u64() % 10];
}

/* Numbers about 1 in size, of either sign. */
static inline uint64_t tame(enum td_dtype dtype)
{
    static const uint64_t one[] = {
        [TD_F64] = 0x3ff0000000000000, [TD_F32] = 0x3f800000, [TD_F16] = 0x3c00, [TD_BF16] = 0x3f80};
    uint64_t bits = 8 * td_dtype_size(dtype), sign = random_u64() % 2 << (bits - 1);
    return (one[dtype] ^ (random_u64() & ((UINT64_C(1) << (bits - 7)) - 1))) | sign;
}

/* How many exponents apart the numbers of FEW_WIDE may be. */
static uint64_t exponents;

static inline uint64_t apart(enum td_dtype dtype)
{
    static const int digits[] = {[TD_F64] = 52, [TD_F32] = 23, [TD_F16] = 10, [TD_BF16] = 7};
    uint64_t most = dtype == TD_F16 && exponents > 13 ? 13 : exponents;
    return tame(dtype) - (random_u64() % (most + 1) << digits[dtype]);
}

static inline uint64_t element(enum td_dtype dtype, enum fill fill)
{
    uint64_t sign = random_u64() % 2 << (8 * td_dtype_size(dtype) - 1);
    switch (fill) {
    case TAME:
    case CLOSE:
    case FEW:
        return tame(dtype);
    case SPECIAL:
    case FEW_SPECIAL:
        return random_u64() % 3 ? tame(dtype) : special(dtype);
    case SUBNORMAL:
        return (random_u64() & 7) | sign;
    case FEW_POSITIVE:
    case POSITIVE: /* far from zero for their spread: they are summed around a shift */
        return tame(dtype) & ~(UINT64_C(1) << (8 * td_dtype_size(dtype) - 1));
    case FEW_NEGATIVE:
        return tame(dtype) | UINT64_C(1) << (8 * td_dtype_size(dtype) - 1);
    case FEW_WIDE:
        return apart(dtype);
    case FEW_SIGNS:
    case SIGNS:
        return (random_u64() % 3) | sign; /* zeros of both signs and their neighbours */
    default:
        return random_u64();
    }
}

static inline void fill_side(enum td_dtype dtype, enum fill fill, uint8_t *to, int64_t count)
{
    size_t size = td_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = element(dtype, fill);
        memcpy(to + (size_t)i * size, &bits, size);
    }
}

/* Moves some elements by a few units in the last place; at times one goes across zero. */
static inline void disturb(enum td_dtype dtype, uint8_t *elements, int64_t count)
{
    size_t size = td_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++)
        elements[(size_t)i * size] ^= (uint8_t)(random_u64() & random_u64() & 7);
    if (count > 0 && random_u64() % 2)
        elements[(random_u64() % (uint64_t)count + 1) * size - 1] ^= 0x80;
}

/* Changes some elements at random: mostly one in five, at times so that half of the rows are full of them. */
static inline void change_few(enum td_dtype dtype, enum fill fill, uint8_t *elements, int64_t count)
{
    size_t size = td_dtype_size(dtype);
    bool crowded = random_u64() % 2;
    for (int64_t i = 0; i < count; i++) {
        bool full = crowded && i >= TD_PACK_SAMPLE && i / TD_LANES % 2;
        uint64_t bits = element(dtype, fill);
        if (full || random_u64() % 5 == 0)
            memcpy(elements + (size_t)i * size, &bits, size);
    }
    if (count > 0 && random_u64() % 4 == 0) /* b hardly varies where a does */
        memset(elements + (size_t)count / 2 * size, 0, (size_t)(count - count / 2) * size);
}

/* EQUAL: the same elements on both sides where the types are the same; CLOSE: nearly; FEW: most of them. */
static inline void fill_sides(enum td_dtype ta, uint8_t *a, enum td_dtype tb, uint8_t *b, enum fill fill,
                              int64_t count)
{
    exponents = 8 + random_u64() % 20; /* products of some of them are exact */
    fill_side(ta, fill, a, count);
    fill_side(tb, fill, b, count);
    if (fill == POSITIVE && random_u64() % 2)
        fill_side(tb, TAME, b, count);
    bool few = fill >= FEW && fill <= FEW_SPECIAL;
    if ((fill == EQUAL || fill == CLOSE || few) && ta == tb)
        memcpy(b, a, (size_t)count * td_dtype_size(ta));
    if (fill == CLOSE && ta == tb)
        disturb(ta, b, count);
    if (few && ta == tb)
        change_few(ta, fill, b, count);
}

#endif
