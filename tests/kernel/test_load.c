/* test_load.c: any layout, any type, any part of a tensor as plain elements.
 *
 * The expected values are computed by the naive route: coordinates of each element, one address at a time.
 */
#include "test_support.h"

#include "kernel/element.h"
#include "kernel/load.h"

#include <stdlib.h>

static uint64_t seed = 1;

static uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static struct td_tensor dense(const struct td_view *view)
{
    return (struct td_tensor){
        .dtype = view->dtype, .shape = view->shape, .count = view->count, .view = *view};
}

static const uint8_t *element_at(const struct td_view *view, int64_t index)
{
    int64_t offset = 0;
    for (int i = view->shape.ndim - 1; i >= 0; i--) {
        offset += index % view->shape.size[i] * view->strides[i];
        index /= view->shape.size[i];
    }
    return view->data + offset * (int64_t)td_dtype_size(view->dtype);
}

static void check_range(const struct td_tensor *tensor, int64_t start, int64_t count)
{
    size_t size = td_dtype_size(tensor->dtype);
    uint8_t *out = malloc((size_t)count * size + 1);
    assert_ok(td_load(tensor, start, count, out, NULL));
    for (int64_t i = 0; i < count; i++) {
        uint8_t expected[16];
        memcpy(expected, element_at(&tensor->view, start + i), size);
        size_t part = td_dtype_facts(tensor->dtype)->kind == TD_COMPLEX ? size / 2 : size;
        for (size_t k = 0; k < size && tensor->view.swapped; k += part)
            for (size_t b = 0; b < part / 2; b++) {
                uint8_t t = expected[k + b];
                expected[k + b] = expected[k + part - 1 - b];
                expected[k + part - 1 - b] = t;
            }
        assert_memory_equal(out + (size_t)i * size, expected, size);
    }
    free(out);
}

static void strides(void **state)
{
    (void)state;
    static uint8_t storage[1 << 17];
    for (size_t i = 0; i < sizeof storage; i++)
        storage[i] = (uint8_t)random_u64();
    const struct {
        int ndim;
        int64_t size[4], stride[4];
        uint64_t offset;
    } cases[] = {
        {0, {0}, {0}, 3},
        {1, {1000}, {1}, 7},
        {1, {500}, {2}, 0},
        {1, {500}, {-1}, 600},
        {2, {40, 50}, {1, 40}, 1},       /* transposed */
        {2, {100, 35}, {1, 100}, 0},     /* transposed, more than a tile each way */
        {2, {30, 50}, {0, 1}, 5},        /* expanded */
        {2, {30, 50}, {1, 0}, 5},        /* expanded, the other way */
        {2, {20, 30}, {-1, 20}, 19},     /* transposed and reversed */
        {3, {7, 5, 11}, {55, 11, 1}, 0}, /* packed */
        {3, {7, 5, 11}, {11, 77, 1}, 0}, /* outer axes exchanged */
        {3, {5, 40, 33}, {1320, 1, 40}, 0},
        {4, {2, 3, 4, 5}, {1, 2, 6, 24}, 0},
        {4, {2, 1, 40, 5}, {200, 9999, 5, 1}, 0},
    };
    for (int dtype = 0; dtype < TD_PLAIN_DTYPES; dtype++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int swapped = 0; swapped < 2; swapped++) {
                struct td_shape shape = {.ndim = cases[c].ndim};
                memcpy(shape.size, cases[c].size, sizeof cases[c].size);
                struct td_view view;
                /* One byte off: elements need not be aligned. */
                assert_ok(td_view_strided(&view, storage + 1, sizeof storage - 1, (enum td_dtype)dtype,
                                          cases[c].offset, &shape, cases[c].stride, NULL));
                view.swapped = swapped;
                struct td_tensor tensor = dense(&view);
                check_range(&tensor, 0, view.count);
                for (int k = 0; k < 10; k++) {
                    int64_t start = (int64_t)(random_u64() % (uint64_t)view.count);
                    check_range(&tensor, start, (int64_t)(random_u64() % (uint64_t)(view.count - start + 1)));
                }
            }
}

static void direct_when_it_can_be(void **state)
{
    (void)state;
    float values[6] = {1, 2, 3, 4, 5, 6};
    struct td_shape shape = {.ndim = 2, .size = {2, 3}};
    struct td_view view;
    assert_ok(td_view_packed(&view, values, sizeof values, TD_F32, &shape, NULL));
    struct td_tensor tensor = dense(&view);
    assert_ptr_equal(td_direct(&tensor), values);
    tensor.view.swapped = true;
    assert_null(td_direct(&tensor));
    tensor.view.swapped = false;
    tensor.view.strides[0] = 0;
    assert_null(td_direct(&tensor));
}

static void ranges_outside(void **state)
{
    (void)state;
    float values[6] = {0}, out[6];
    struct td_shape shape = {.ndim = 1, .size = {6}};
    struct td_view view;
    struct tdbg_error error;
    assert_ok(td_view_packed(&view, values, sizeof values, TD_F32, &shape, NULL));
    struct td_tensor tensor = dense(&view);
    assert_fails(td_load(&tensor, 4, 3, out, &error), TDBG_MISUSE, "3 elements from 4 of a tensor of 6");
    assert_fails(td_load_f64(&tensor, -1, 3, NULL, &error), TDBG_MISUSE,
                 "3 elements from -1 of a tensor of 6");
    assert_ok(td_load(&tensor, 6, 0, out, &error));
}

static void numbers(void **state)
{
    (void)state;
    const int64_t i64[] = {-3, INT64_C(1) << 60};
    const uint64_t u64[] = {UINT64_MAX, 1};
    const uint8_t bools[] = {0, 7};
    const float c64[] = {3, -4, INFINITY, NAN};
    const double c128[] = {3e300, 4e300, 0, -2};
    const struct {
        enum td_dtype dtype;
        const void *data;
        double expected[2];
    } cases[] = {
        {TD_I64, i64, {-3, 0x1p60}},          {TD_U64, u64, {0x1p64, 1}},  {TD_BOOL, bools, {0, 1}},
        {TD_C64, c64, {5, (double)INFINITY}}, {TD_C128, c128, {5e300, 2}},
    };
    struct td_shape shape = {.ndim = 1, .size = {2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct td_view view;
        double out[2];
        assert_ok(td_view_packed(&view, cases[c].data, 64, cases[c].dtype, &shape, NULL));
        struct td_tensor tensor = dense(&view);
        assert_ok(td_load_f64(&tensor, 0, 2, out, NULL));
        assert_memory_equal(out, cases[c].expected, sizeof out);
    }
}

/* Independent of element.h: the textbook formula, digit by digit. */
static double small_float(unsigned code, int exponent_bits, int fraction_bits, int bias)
{
    unsigned fraction = code & ((1u << fraction_bits) - 1);
    unsigned exponent = code >> fraction_bits & ((1u << exponent_bits) - 1);
    double sign = code >> (exponent_bits + fraction_bits) ? -1 : 1;
    if (exponent == 0)
        return sign * ldexp((double)fraction, 1 - bias - fraction_bits);
    return sign * ldexp((double)(fraction | 1u << fraction_bits), (int)exponent - bias - fraction_bits);
}

static void small_floats(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        double got = (double)td_e4m3fn_value(byte);
        assert_true((byte & 0x7f) == 0x7f ? isnan(got) : got == small_float(code, 4, 3, 7));
        got = (double)td_e5m2_value(byte);
        if ((byte & 0x7c) == 0x7c)
            assert_true(byte & 3 ? isnan(got) : got == (byte & 0x80 ? -(double)INFINITY : (double)INFINITY));
        else
            assert_true(got == small_float(code, 5, 2, 15));
        got = (double)td_e4m3fnuz_value(byte);
        assert_true(byte == 0x80 ? isnan(got) : got == small_float(code, 4, 3, 8));
        got = (double)td_e5m2fnuz_value(byte);
        assert_true(byte == 0x80 ? isnan(got) : got == small_float(code, 5, 2, 16));
    }
    for (unsigned code = 0; code < 65536; code++) {
        uint16_t half = (uint16_t)code;
        float got = td_f16_value(half);
        if ((half & 0x7c00) == 0x7c00)
            assert_true(half & 0x3ff ? isnan(got) : isinf(got) && !signbit(got) == !(half & 0x8000));
        else {
            assert_true((double)got == small_float(code, 5, 10, 15));
            assert_int_equal(td_f16_round(got), half);
        }
        if (!isnan(td_bf16_value(half)))
            assert_int_equal(td_bf16_round(td_bf16_value(half)), half);
    }
}

/* Rounding: every float16 midpoint goes to the even neighbour, a hair more goes up. */
static void half_rounding(void **state)
{
    (void)state;
    for (uint16_t half = 0; half < 0x7bff; half++) {
        float middle = (td_f16_value(half) + td_f16_value((uint16_t)(half + 1))) / 2;
        assert_int_equal(td_f16_round(middle), half & 1 ? half + 1 : half);
        assert_int_equal(td_f16_round(nextafterf(middle, INFINITY)), half + 1);
        assert_int_equal(td_f16_round(-nextafterf(middle, 0)), half | 0x8000);
    }
    assert_int_equal(td_f16_round(65519.996f), 0x7bff);
    assert_int_equal(td_f16_round(65520.f), 0x7c00);
}

static void affine(void **state)
{
    (void)state;
    const int8_t stored[] = {-128, 0, 127, 5, 6, 7};
    const double scales[] = {0.5, 0.1, 3};
    const int64_t zeros[] = {1, 0, -2};
    struct td_shape shape = {.ndim = 2, .size = {2, 3}}, three = {.ndim = 1, .size = {3}};
    struct td_shape one = {.ndim = 0};
    struct td_affine table = {.axis = 1};
    struct td_view view;
    assert_ok(td_view_packed(&view, stored, sizeof stored, TD_QINT8, &shape, NULL));
    assert_ok(td_view_packed(&table.scale, scales, sizeof scales, TD_F64, &three, NULL));
    assert_ok(td_view_packed(&table.zero, zeros, sizeof zeros, TD_I64, &three, NULL));
    struct td_tensor tensor = dense(&view);
    tensor.affine = &table;
    float out[6];
    assert_ok(td_load(&tensor, 0, 6, out, NULL));
    const float expected[] = {-64.5f, 0, 387, 2, (float)(0.1 * 6), 27};
    assert_memory_equal(out, expected, sizeof out);
    assert_ok(td_load(&tensor, 4, 2, out, NULL));
    assert_memory_equal(out, expected + 4, 2 * sizeof *out);

    table.axis = -1;
    struct tdbg_error error;
    assert_fails(td_load(&tensor, 0, 6, out, &error), TDBG_CORRUPT, "3 quantisation scales for 1 channels");
    assert_ok(td_view_packed(&table.scale, scales, sizeof scales, TD_F64, &one, NULL));
    assert_ok(td_view_packed(&table.zero, zeros, sizeof zeros, TD_I64, &one, NULL));
    assert_ok(td_load(&tensor, 1, 2, out, NULL));
    assert_true(out[0] == -0.5f && out[1] == 63);
    tensor.affine = NULL;
    assert_fails(td_load(&tensor, 0, 1, out, &error), TDBG_CORRUPT, "a quantised tensor without a scale");
}

/* A range that begins and ends inside blocks equals the same range of the whole. */
static void blocks(void **state)
{
    (void)state;
    static uint8_t storage[4 * 8 * 34];
    for (size_t i = 0; i < sizeof storage; i++)
        storage[i] = (uint8_t)(random_u64() & 0x3f);
    struct td_shape shape = {.ndim = 2, .size = {4, 256}};
    struct td_view view;
    assert_ok(td_view_packed(&view, storage, sizeof storage, TD_Q8_0, &shape, NULL));
    struct td_tensor tensor = dense(&view);
    float whole[1024], part[1024];
    assert_int_equal(td_value_dtype(&tensor), TD_F32);
    assert_ok(td_load(&tensor, 0, 1024, whole, NULL));
    for (int64_t start = 0; start < 1024; start += 13)
        for (int64_t count = 0; start + count <= 1024; count += 101) {
            assert_ok(td_load(&tensor, start, count, part, NULL));
            assert_memory_equal(part, whole + start, (size_t)count * sizeof *part);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides),        cmocka_unit_test(direct_when_it_can_be),
        cmocka_unit_test(ranges_outside), cmocka_unit_test(numbers),
        cmocka_unit_test(small_floats),   cmocka_unit_test(half_rounding),
        cmocka_unit_test(affine),         cmocka_unit_test(blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
