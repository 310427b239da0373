/* dequant.c: see dequant.h.
 *
 * Small formats hold 32 elements, K formats 256. "d" and "m" are float16, all else is bytes:
 *
 *     q4_0    d, 16 x two nibbles                            d * (q - 8)
 *     q4_1    d, m, 16 x two nibbles                         d * q + m
 *     q5_0    d, 32 fifth bits, 16 x two nibbles             d * (q - 16)
 *     q5_1    d, m, 32 fifth bits, 16 x two nibbles          d * q + m
 *     q8_0    d, 32 signed bytes                             d * q
 *     iq4_nl  d, 16 x two nibbles                            d * curve[q]
 *     q2_k    16 x (scale, min) nibbles, 64 x four q, d, m   (d * scale) * q - m * min         per 16
 *     q3_k    256 third bits, 64 x four q, 16 scales, d      (d * (scale - 32)) * (q - 4)      per 16
 *     q4_k    d, m, 8 (scale, min), 128 x two nibbles        (d * scale) * q - m * min         per 32
 *     q5_k    d, m, 8 (scale, min), 256 fifth bits, 128 x 2  (d * scale) * q - m * min         per 32
 *     q6_k    128 x two nibbles, 64 x four 2 bits, 16 s, d   (d * s) * (q - 32)                per 16
 *     iq4_xs  d, 8 x 6-bit scales, 128 x two nibbles         (d * (scale - 32)) * curve[q]     per 32
 *
 * Low nibbles of a run of bytes come before its high nibbles, likewise 2-bit fields: neighbours in a byte are
 * 16, 32 or 64 elements apart. Which, is what the index arithmetic below says.
 */
#include "kernel/dequant.h"

#include "kernel/element.h"

#include <assert.h>

enum { SMALL = 32, LARGE = 256 };

/* The 16 levels of iq4_nl and iq4_xs, denser around zero. */
static const int8_t curve[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static float half_at(const uint8_t *p)
{
    return td_f16_value((uint16_t)(p[0] | p[1] << 8));
}

/* Element i of a run of nibbles in which the first `run` elements are the low halves. */
static int nibble(const uint8_t *packed, int i, int run)
{
    return i < run ? packed[i] & 15 : packed[i - run] >> 4;
}

static int bit(const uint8_t *bits, int i)
{
    return bits[i / 8] >> i % 8 & 1;
}

static void block_q4_0(const uint8_t *b, float *out)
{
    float d = half_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)(nibble(b + 2, i, 16) - 8);
}

static void block_q4_1(const uint8_t *b, float *out)
{
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)nibble(b + 4, i, 16) + m;
}

static void block_q5_0(const uint8_t *b, float *out)
{
    float d = half_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)((nibble(b + 6, i, 16) | bit(b + 2, i) << 4) - 16);
}

static void block_q5_1(const uint8_t *b, float *out)
{
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)(nibble(b + 8, i, 16) | bit(b + 4, i) << 4) + m;
}

static void block_q8_0(const uint8_t *b, float *out)
{
    float d = half_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)(int8_t)b[2 + i];
}

static void block_iq4_nl(const uint8_t *b, float *out)
{
    float d = half_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = d * (float)curve[nibble(b + 2, i, 16)];
}

static void block_q2_k(const uint8_t *b, float *out)
{
    const uint8_t *scales = b, *low = b + 16;
    float d = half_at(b + 80), m = half_at(b + 82);
    for (int e = 0; e < LARGE; e += 16) {
        const uint8_t *q = low + e / 128 * 32 + e % 32;
        int shift = e / 32 % 4 * 2;
        float scale = d * (float)(scales[e / 16] & 15), min = m * (float)(scales[e / 16] >> 4);
        for (int i = 0; i < 16; i++)
            out[e + i] = scale * (float)(q[i] >> shift & 3) - min;
    }
}

/* Twelve bytes hold 16 six-bit scales: eight bytes of low nibbles, then four of the high two bits. */
static int q3_k_scale(const uint8_t *scales, int group)
{
    return nibble(scales, group, 8) | (scales[8 + group % 4] >> group / 4 * 2 & 3) << 4;
}

static void block_q3_k(const uint8_t *b, float *out)
{
    const uint8_t *high = b, *low = b + 32;
    float d = half_at(b + 108);
    for (int e = 0; e < LARGE; e += 16) {
        const uint8_t *q = low + e / 128 * 32 + e % 32, *h = high + e % 32;
        int shift = e / 32 % 4 * 2, plane = e / 32;
        float scale = d * (float)(q3_k_scale(b + 96, e / 16) - 32);
        for (int i = 0; i < 16; i++)
            out[e + i] = scale * (float)(((q[i] >> shift & 3) | (h[i] >> plane & 1) << 2) - 4);
    }
}

/* Twelve bytes hold eight six-bit scales and eight six-bit minima. The first four of each are the low six
 * bits of a byte; the others put their low nibbles into the last four bytes and their high two bits on top of
 * the first eight. */
static void k_scale_min(const uint8_t *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

static void block_q4_k(const uint8_t *b, float *out)
{
    float d = half_at(b), m = half_at(b + 2);
    for (int e = 0; e < LARGE; e += 32) {
        const uint8_t *q = b + 16 + e / 64 * 32;
        int shift = e / 32 % 2 * 4, s, n;
        k_scale_min(b + 4, e / 32, &s, &n);
        float scale = d * (float)s, min = m * (float)n;
        for (int i = 0; i < 32; i++)
            out[e + i] = scale * (float)(q[i] >> shift & 15) - min;
    }
}

static void block_q5_k(const uint8_t *b, float *out)
{
    const uint8_t *high = b + 16;
    float d = half_at(b), m = half_at(b + 2);
    for (int e = 0; e < LARGE; e += 32) {
        const uint8_t *q = b + 48 + e / 64 * 32;
        int shift = e / 32 % 2 * 4, plane = e / 32, s, n;
        k_scale_min(b + 4, e / 32, &s, &n);
        float scale = d * (float)s, min = m * (float)n;
        for (int i = 0; i < 32; i++)
            out[e + i] = scale * (float)((q[i] >> shift & 15) | (high[i] >> plane & 1) << 4) - min;
    }
}

static void block_q6_k(const uint8_t *b, float *out)
{
    const uint8_t *low = b, *high = b + 128, *scales = b + 192;
    float d = half_at(b + 208);
    for (int e = 0; e < LARGE; e += 16) {
        const uint8_t *q = low + e / 128 * 64 + e % 64, *h = high + e / 128 * 32 + e % 32;
        int shift = e / 64 % 2 * 4, plane = e / 32 % 4 * 2;
        float scale = d * (float)(int8_t)scales[e / 16];
        for (int i = 0; i < 16; i++)
            out[e + i] = scale * (float)(((q[i] >> shift & 15) | (h[i] >> plane & 3) << 4) - 32);
    }
}

static void block_iq4_xs(const uint8_t *b, float *out)
{
    const uint8_t *low = b + 4;
    int high = b[2] | b[3] << 8;
    float d = half_at(b);
    for (int j = 0; j < LARGE / 32; j++) {
        int s = (low[j / 2] >> j % 2 * 4 & 15) | (high >> 2 * j & 3) << 4;
        float scale = d * (float)(s - 32);
        for (int i = 0; i < 32; i++)
            out[32 * j + i] = scale * (float)curve[nibble(b + 8 + 16 * j, i, 16)];
    }
}

static void (*const decoders[TD_DTYPES])(const uint8_t *block, float *out) = {
    [TD_Q4_0] = block_q4_0, [TD_Q4_1] = block_q4_1, [TD_Q5_0] = block_q5_0,     [TD_Q5_1] = block_q5_1,
    [TD_Q8_0] = block_q8_0, [TD_Q2_K] = block_q2_k, [TD_Q3_K] = block_q3_k,     [TD_Q4_K] = block_q4_k,
    [TD_Q5_K] = block_q5_k, [TD_Q6_K] = block_q6_k, [TD_IQ4_NL] = block_iq4_nl, [TD_IQ4_XS] = block_iq4_xs,
};

void td_dequantise(enum td_dtype dtype, const uint8_t *blocks, int64_t nblocks, float *out)
{
    const struct td_dtype_facts *facts = td_dtype_facts(dtype);
    assert(facts->kind == TD_BLOCK && decoders[dtype]);
    for (int64_t i = 0; i < nblocks; i++, blocks += facts->bytes, out += facts->block)
        decoders[dtype](blocks, out);
}
