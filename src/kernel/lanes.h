/* lanes.h: elements in registers: the vocabulary in which the vector tiers are written.
 *
 * Sixteen elements at a time, element i in lane i, as a row of vectors of TD_VECTOR_BYTES (which the build
 * sets per tier): `struct td_floats` for types that fit float32, `struct td_doubles` for the arithmetic.
 *
 *     memory  --td_floats_load-->   floats   --td_floats_widen-->   doubles   (f32, f16, bf16)
 *             --td_doubles_load------------------------------------>           (f64)
 *
 * Everything that reads tensors fast (statistics, comparisons) starts from these loads. The compiler's vector
 * extensions say most of it on any CPU; intrinsics serve where they have no word for what the CPU has:
 * minimum, maximum, and float16. A vector comparison yields lanes of 0 or -1.
 *
 * The bits of 16-bit types as they are in memory ("keys") are looked at in vectors of TD_KEY_BYTES: no more
 * than a row of them, so that a row is always a number of vectors. shorts.h has wider ones.
 */
#ifndef TD_KERNEL_LANES_H
#define TD_KERNEL_LANES_H

#include "kernel/block.h"
#include "tensor/dtype.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define TD_INLINE static inline __attribute__((always_inline))

#if TD_VECTOR_BYTES > 32
#define TD_KEY_BYTES 32
#else
#define TD_KEY_BYTES TD_VECTOR_BYTES
#endif

enum {
    TD_PER_FLOATS = TD_VECTOR_BYTES / 4, /* lanes of one vector */
    TD_PER_DOUBLES = TD_VECTOR_BYTES / 8,
    TD_PER_KEYS = TD_KEY_BYTES / 2,
    TD_ROW_FLOATS = TD_LANES / TD_PER_FLOATS, /* vectors of one row */
    TD_ROW_DOUBLES = TD_LANES / TD_PER_DOUBLES,
    TD_ROW_KEYS = TD_LANES / TD_PER_KEYS
};

typedef float td_vf __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef double td_vd __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef int32_t td_vi32 __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef int64_t td_vi64 __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef uint32_t td_vu32 __attribute__((vector_size(TD_VECTOR_BYTES)));
typedef int16_t td_vi16 __attribute__((vector_size(TD_KEY_BYTES)));
typedef uint16_t td_vu16 __attribute__((vector_size(TD_KEY_BYTES)));

/* The same at any address, for loads. (A memcpy says it too, but gcc then goes through the stack.) */
typedef float td_vf_loose __attribute__((vector_size(TD_VECTOR_BYTES), aligned(1), may_alias));
typedef float td_vf_half_loose __attribute__((vector_size(TD_VECTOR_BYTES / 2), aligned(1), may_alias));
typedef double td_vd_loose __attribute__((vector_size(TD_VECTOR_BYTES), aligned(1), may_alias));
typedef uint32_t td_vu32_loose __attribute__((vector_size(TD_VECTOR_BYTES), aligned(1), may_alias));
typedef int16_t td_vi16_loose __attribute__((vector_size(TD_KEY_BYTES), aligned(1), may_alias));
typedef uint16_t td_vu16_loose __attribute__((vector_size(TD_VECTOR_BYTES / 2), aligned(1), may_alias));

struct td_floats {
    td_vf v[TD_ROW_FLOATS];
};

struct td_doubles {
    td_vd v[TD_ROW_DOUBLES];
};

TD_INLINE td_vf td_vf_all(float value)
{
    return value - (td_vf){0};
}

TD_INLINE td_vd td_vd_all(double value)
{
    return value - (td_vd){0};
}

/* mask ? a : b */
TD_INLINE td_vf td_vf_select(td_vi32 mask, td_vf a, td_vf b)
{
    return (td_vf)(((td_vi32)a & mask) | ((td_vi32)b & ~mask));
}

TD_INLINE td_vd td_vd_select(td_vi64 mask, td_vd a, td_vd b)
{
    return (td_vd)(((td_vi64)a & mask) | ((td_vi64)b & ~mask));
}

/* a < b ? a : b, and a > b ? a : b. */
TD_INLINE td_vf td_vf_min(td_vf a, td_vf b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_min_ps(a, b);
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_min_ps(a, b);
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_min_ps(a, b);
#else
    return td_vf_select(a < b, a, b);
#endif
}

TD_INLINE td_vf td_vf_max(td_vf a, td_vf b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_max_ps(a, b);
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_max_ps(a, b);
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_max_ps(a, b);
#else
    return td_vf_select(a > b, a, b);
#endif
}

TD_INLINE td_vd td_vd_min(td_vd a, td_vd b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_min_pd(a, b);
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_min_pd(a, b);
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_min_pd(a, b);
#else
    return td_vd_select(a < b, a, b);
#endif
}

TD_INLINE td_vd td_vd_max(td_vd a, td_vd b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_max_pd(a, b);
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_max_pd(a, b);
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_max_pd(a, b);
#else
    return td_vd_select(a > b, a, b);
#endif
}

TD_INLINE td_vi16 td_vi16_min(td_vi16 a, td_vi16 b)
{
#if defined(__AVX2__) && TD_KEY_BYTES == 32
    return (td_vi16)_mm256_min_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && TD_KEY_BYTES == 16
    return (td_vi16)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    td_vi16 less = a < b;
    return (a & less) | (b & ~less);
#endif
}

TD_INLINE td_vi16 td_vi16_max(td_vi16 a, td_vi16 b)
{
#if defined(__AVX2__) && TD_KEY_BYTES == 32
    return (td_vi16)_mm256_max_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && TD_KEY_BYTES == 16
    return (td_vi16)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    td_vi16 more = a > b;
    return (a & more) | (b & ~more);
#endif
}

TD_INLINE td_vu16 td_vu16_max(td_vu16 a, td_vu16 b)
{
#if defined(__AVX2__) && TD_KEY_BYTES == 32
    return (td_vu16)_mm256_max_epu16((__m256i)a, (__m256i)b);
#else
    td_vu16 larger = (td_vu16)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

TD_INLINE td_vu16 td_vu16_min(td_vu16 a, td_vu16 b)
{
#if defined(__AVX2__) && TD_KEY_BYTES == 32
    return (td_vu16)_mm256_min_epu16((__m256i)a, (__m256i)b);
#else
    td_vu16 less = (td_vu16)(a < b);
    return (a & less) | (b & ~less);
#endif
}

/* The least of all lanes. */
TD_INLINE uint16_t td_vu16_least(td_vu16 x)
{
    uint16_t least = UINT16_MAX;
    for (int i = 0; i < TD_PER_KEYS; i++)
        least = x[i] < least ? x[i] : least;
    return least;
}

TD_INLINE td_vi32 td_vi32_max(td_vi32 a, td_vi32 b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vi32)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vi32)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    td_vi32 more = a > b;
    return (a & more) | (b & ~more);
#endif
}

TD_INLINE td_vu32 td_vu32_max(td_vu32 a, td_vu32 b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vu32)_mm512_max_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_max_epu32((__m256i)a, (__m256i)b);
#else
    td_vu32 larger = (td_vu32)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

TD_INLINE td_vu32 td_vu32_min(td_vu32 a, td_vu32 b)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vu32)_mm512_min_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_min_epu32((__m256i)a, (__m256i)b);
#else
    td_vu32 less = (td_vu32)(a < b);
    return (a & less) | (b & ~less);
#endif
}

/* a * b + c where a * b is exact: fused or not, the same bits. */
TD_INLINE td_vd td_vd_exact_fma(td_vd a, td_vd b, td_vd c)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__) && TD_VECTOR_BYTES == 32
    return _mm256_fmadd_pd(a, b, c);
#else
    return c + a * b;
#endif
}

/* a + b, where this CPU can do it on the units that multiply: for loops that keep those that add busy. */
TD_INLINE td_vd td_vd_add_aside(td_vd a, td_vd b)
{
    return td_vd_exact_fma(a, td_vd_all(1), b);
}

/* Lanes that are finite are -1. */
TD_INLINE td_vi32 td_vf_finite(td_vf x)
{
    return ((td_vi32)x & INT32_MAX) < 0x7f800000;
}

TD_INLINE td_vi64 td_vd_finite(td_vd x)
{
    return ((td_vi64)x & INT64_MAX) < INT64_C(0x7ff0000000000000);
}

/* 16-bit numbers, each in a lane of its own. */
TD_INLINE td_vu32 td_vu32_load_u16(const uint8_t *p)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return (td_vu32)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)p));
#elif defined(__AVX2__) && TD_VECTOR_BYTES == 32
    return (td_vu32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)p));
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return (td_vu32)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i_u *)p), _mm_setzero_si128());
#else
    return __builtin_convertvector(*(const td_vu16_loose *)p, td_vu32);
#endif
}

TD_INLINE td_vf td_vf_load_f16(const uint8_t *p)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
#elif defined(__F16C__) && TD_VECTOR_BYTES == 32
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
#else
    td_vu32 bits = td_vu32_load_u16(p), sign = (bits & 0x8000) << 16;
    td_vu32 magnitude = (bits & 0x7fff) << 13;
    td_vu32 scaled = (td_vu32)((td_vf)magnitude * 0x1p112f); /* as td_f16_value does it */
    td_vu32 special = (td_vu32)(magnitude >= 0x0f800000);
    return (td_vf)(sign | (scaled & ~special) | ((magnitude | 0x7f800000) & special));
#endif
}

TD_INLINE td_vf td_vf_load_bf16(const uint8_t *p)
{
    return (td_vf)(td_vu32_load_u16(p) << 16);
}

/* One vector of TD_F32, TD_F16 or TD_BF16 at any address; `dtype` is a constant. */
TD_INLINE td_vf td_vf_load(enum td_dtype dtype, const uint8_t *p)
{
    if (dtype == TD_F32)
        return *(const td_vf_loose *)p;
    return dtype == TD_F16 ? td_vf_load_f16(p) : td_vf_load_bf16(p);
}

/* Sixteen elements of the same. */
TD_INLINE struct td_floats td_floats_load(enum td_dtype dtype, const uint8_t *p)
{
    struct td_floats row;
    for (int i = 0; i < TD_ROW_FLOATS; i++)
        row.v[i] = td_vf_load(dtype, p + i * TD_PER_FLOATS * (dtype == TD_F32 ? 4 : 2));
    return row;
}

/* Sixteen TD_F16 or TD_BF16, put down as floats. What will be column c, a vector of doubles, then lies at
 * place td_staged: interleaving TD_BF16 with zeros makes floats of them, but AVX2 does that in each half of a
 * register by itself, so that columns come in the order 0 2 1 3. */
TD_INLINE void td_stage(enum td_dtype dtype, const uint8_t *p, float *to)
{
#if defined(__AVX2__) && TD_VECTOR_BYTES == 32
    if (dtype == TD_BF16) {
        __m256i row = _mm256_loadu_si256((const __m256i_u *)p), zero = _mm256_setzero_si256();
        _mm256_storeu_si256((__m256i_u *)to, _mm256_unpacklo_epi16(zero, row));
        _mm256_storeu_si256((__m256i_u *)(to + TD_PER_FLOATS), _mm256_unpackhi_epi16(zero, row));
        return;
    }
#endif
    for (int i = 0; i < TD_ROW_FLOATS; i++)
        *(td_vf_loose *)(to + i * TD_PER_FLOATS) = td_vf_load(dtype, p + i * TD_PER_FLOATS * 2);
}

TD_INLINE int td_staged(enum td_dtype dtype, int c)
{
    if (dtype != TD_BF16 || TD_VECTOR_BYTES != 32)
        return c;
    return (c & 1) << 1 | c >> 1;
}

/* The bits of TD_F16 or TD_BF16 as integers that order as the floats do: the magnitude with its sign. Both
 * zeros are 0, neighbours one apart. */
TD_INLINE td_vi16 td_vi16_order(td_vi16 bits)
{
#if defined(__AVX2__) && TD_KEY_BYTES == 32
    return (td_vi16)_mm256_sign_epi16((__m256i)(bits & INT16_MAX), (__m256i)bits);
#else
    td_vi16 sign = bits >> 15; /* 0 or -1; the magnitude is complemented and 1 added where negative */
    return (bits ^ (sign & INT16_MAX)) - sign;
#endif
}

/* The lower and the upper half of a vector of floats as doubles. */
TD_INLINE td_vd td_vf_low(td_vf x)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_cvtps_pd(x);
#else
    return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1), td_vd);
#endif
}

TD_INLINE td_vd td_vf_high(td_vf x)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_cvtps_pd(_mm_movehl_ps(x, x));
#else
    return __builtin_convertvector(__builtin_shufflevector(x, x, 2, 3), td_vd);
#endif
}

TD_INLINE struct td_doubles td_floats_widen(const struct td_floats *row)
{
    struct td_doubles wide;
    for (int i = 0; i < TD_ROW_FLOATS; i++) {
        wide.v[2 * i] = td_vf_low(row->v[i]);
        wide.v[2 * i + 1] = td_vf_high(row->v[i]);
    }
    return wide;
}

/* One vector of doubles from as many TD_F32 at any address. From memory, half a vector widens in half the
 * time it takes from a register. */
TD_INLINE td_vd td_vd_load_f32(const uint8_t *p)
{
#if defined(__AVX512F__) && TD_VECTOR_BYTES == 64
    return _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)p));
#elif defined(__AVX__) && TD_VECTOR_BYTES == 32
    return _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)p));
#elif defined(__SSE2__) && TD_VECTOR_BYTES == 16
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i_u *)p)));
#else
    return __builtin_convertvector(*(const td_vf_half_loose *)p, td_vd);
#endif
}

TD_INLINE struct td_doubles td_doubles_load(const uint8_t *p)
{
    struct td_doubles row;
    for (int i = 0; i < TD_ROW_DOUBLES; i++)
        row.v[i] = *(const td_vd_loose *)(p + i * TD_VECTOR_BYTES);
    return row;
}

/* Column c of the row at element `at` of TD_F64 or TD_F32 at `p`, or of smaller types staged there. */
TD_INLINE td_vd td_column_load(enum td_dtype dtype, const uint8_t *p, int64_t at, int c)
{
    if (dtype == TD_F64)
        return *(const td_vd_loose *)(p + at * 8 + c * TD_VECTOR_BYTES);
    return td_vd_load_f32(p + at * 4 + td_staged(dtype, c) * (TD_VECTOR_BYTES / 2));
}

#endif
