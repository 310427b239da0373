/* test_sparse.c: sparse tensors read as dense ones, whatever the order of their entries; index tables that
 * lie are refused.
 */
#include "test_support.h"

#include "kernel/load.h"
#include "kernel/stats.h"

#include <math.h>

static struct td_view packed(const void *data, uint64_t bytes, enum td_dtype dtype, int ndim,
                             const int64_t *size)
{
    struct td_shape shape = {.ndim = ndim};
    memcpy(shape.size, size, (size_t)ndim * sizeof *size);
    struct td_view view;
    assert_ok(td_view_packed(&view, data, bytes, dtype, &shape, NULL));
    return view;
}

#define PACKED(array, dtype, ...)                                                                 \
    packed(array, sizeof array, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
           (int64_t[]){__VA_ARGS__})

static struct td_tensor tensor_of(const struct td_sparse *sparse)
{
    struct td_tensor tensor = {.dtype = sparse->values.dtype, .shape = sparse->shape, .sparse = sparse};
    assert_ok(td_shape_count(&sparse->shape, &tensor.count, NULL));
    return tensor;
}

/* Every range of the tensor, against the dense one. */
static void check_f32(const struct td_sparse *sparse, const float *dense)
{
    struct td_tensor tensor = tensor_of(sparse);
    float out[64];
    assert_true(tensor.count <= 64);
    for (int64_t start = 0; start <= tensor.count; start++)
        for (int64_t count = 0; start + count <= tensor.count; count++) {
            assert_ok(td_load(&tensor, start, count, out, NULL));
            assert_memory_equal(out, dense + start, (size_t)count * sizeof *out);
        }
    struct tdbg_stats s;
    double sum = 0, squares = 0;
    uint64_t zeros = 0;
    for (int64_t i = 0; i < tensor.count; i++) {
        sum += (double)dense[i];
        squares += (double)dense[i] * (double)dense[i];
        zeros += dense[i] == 0;
    }
    assert_ok(td_stats(&tensor, NULL, NULL, &s, NULL));
    assert_int_equal(s.count, tensor.count);
    assert_int_equal(s.zeros, zeros);
    assert_true(fabs(s.mean - sum / (double)tensor.count) < 1e-14);
    assert_true(fabs(s.norm - sqrt(squares)) < 1e-14);
    uint64_t bins[2];
    double edges[3];
    assert_ok(td_histogram(&tensor, NULL, NULL, -1000, 1000, 2, edges, bins, NULL));
    assert_int_equal(bins[0] + bins[1], tensor.count);
}

static void coo(void **state)
{
    (void)state;
    const int64_t sorted[] = {0, 0, 2, 1, 3, 2}, mixed[] = {2, 0, 0, 0, 2, 3, 1, 3};
    const float three[] = {5, 6, 7}, four[] = {7, 6, 5, -1};
    const float dense[12] = {[1] = 5, [3] = 6, [10] = 7}, summed[12] = {[1] = 5, [3] = 5, [10] = 7};
    struct td_sparse sparse = {.kind = TD_COO,
                               .indices = PACKED(sorted, TD_I64, 2, 3),
                               .values = PACKED(three, TD_F32, 3),
                               .shape = {.ndim = 2, .size = {3, 4}}};
    check_f32(&sparse, dense);
    sparse.indices = PACKED(mixed, TD_I64, 2, 4); /* out of order, and (0,3) twice */
    sparse.values = PACKED(four, TD_F32, 4);
    check_f32(&sparse, summed);

    /* The index table may lie in memory as [entries, axes]. */
    const int64_t turned[] = {0, 1, 0, 3, 2, 2};
    struct td_shape shape = {.ndim = 2, .size = {2, 3}};
    assert_ok(
        td_view_strided(&sparse.indices, turned, sizeof turned, TD_I64, 0, &shape, (int64_t[]){1, 2}, NULL));
    sparse.values = PACKED(three, TD_F32, 3);
    check_f32(&sparse, dense);
}

static void coo_with_dense_axes(void **state)
{
    (void)state;
    const int64_t rows[] = {3, 1, 3};
    const float values[] = {1, 2, 10, 20, 100, 200};
    const float dense[10] = {[2] = 10, [3] = 20, [6] = 101, [7] = 202};
    struct td_sparse sparse = {.kind = TD_COO,
                               .indices = PACKED(rows, TD_I64, 1, 3),
                               .values = PACKED(values, TD_F32, 3, 2),
                               .shape = {.ndim = 2, .size = {5, 2}}};
    check_f32(&sparse, dense);
}

static void compressed(void **state)
{
    (void)state;
    /* [[0 5 0 6] [0 0 0 0] [7 0 8 0]], twice the batch, the second time other numbers. */
    const int64_t offsets[] = {0, 2, 2, 4, 0, 1, 2, 4}, columns[] = {1, 3, 0, 2, 0, 1, 2, 3};
    const float values[] = {5, 6, 7, 8, 1, 2, 3, 4};
    const float dense[24] = {[1] = 5, [3] = 6, [8] = 7, [10] = 8, [12] = 1, [17] = 2, [22] = 3, [23] = 4};
    struct td_sparse sparse = {.kind = TD_CSR,
                               .offsets = PACKED(offsets, TD_I64, 2, 4),
                               .indices = PACKED(columns, TD_I64, 2, 4),
                               .values = PACKED(values, TD_F32, 2, 4),
                               .shape = {.ndim = 3, .size = {2, 3, 4}}};
    check_f32(&sparse, dense);

    const int32_t column_offsets[] = {0, 1, 2, 3, 4}, rows[] = {2, 0, 2, 0};
    const float by_column[] = {7, 5, 8, 6};
    struct td_sparse csc = {.kind = TD_CSC,
                            .offsets = PACKED(column_offsets, TD_I32, 5),
                            .indices = PACKED(rows, TD_I32, 4),
                            .values = PACKED(by_column, TD_F32, 4),
                            .shape = {.ndim = 2, .size = {3, 4}}};
    check_f32(&csc, dense);
}

static void empty(void **state)
{
    (void)state;
    const float zeros[12] = {0};
    struct td_sparse sparse = {.kind = TD_COO,
                               .indices = packed(NULL, 0, TD_I64, 2, (int64_t[]){2, 0}),
                               .values = packed(NULL, 0, TD_F32, 1, (int64_t[]){0}),
                               .shape = {.ndim = 2, .size = {3, 4}}};
    check_f32(&sparse, zeros);
    const int64_t offsets[] = {0, 0, 0, 0};
    sparse.kind = TD_CSR;
    sparse.offsets = PACKED(offsets, TD_I64, 4);
    sparse.indices = packed(NULL, 0, TD_I64, 1, (int64_t[]){0});
    check_f32(&sparse, zeros);
}

/* A tensor of 2^40 elements that stores one: answered at once. */
static void huge(void **state)
{
    (void)state;
    const int64_t place[] = {1 << 19, 77};
    const double value[] = {-2};
    struct td_sparse sparse = {.kind = TD_COO,
                               .indices = PACKED(place, TD_I64, 2, 1),
                               .values = PACKED(value, TD_F64, 1),
                               .shape = {.ndim = 2, .size = {1 << 20, 1 << 20}}};
    struct td_tensor tensor = tensor_of(&sparse);
    struct tdbg_stats s;
    assert_ok(td_stats(&tensor, NULL, NULL, &s, NULL));
    assert_true(s.count == UINT64_C(1) << 40 && s.zeros == s.count - 1 && s.min == -2 && s.max == 0);
    assert_true(s.norm == 2 && s.mean == -0x1p-39);
    double out[3];
    assert_ok(td_load_f64(&tensor, (INT64_C(1) << 39) + 76, 3, out, NULL));
    assert_true(out[0] == 0 && out[1] == -2 && out[2] == 0);
}

/* Twice the same place, in each type: added up in that type. */
static void sums(void **state)
{
    (void)state;
    const int64_t same[] = {0, 0};
    const uint16_t half[] = {0x7bff, 0x4c00}, brain[] = {0x4380, 0x3f80}; /* 65504 + 16, 256 + 1 */
    const uint8_t bytes[] = {200, 100}, bools[] = {1, 1};
    const struct {
        enum td_dtype dtype;
        const void *values;
        double expected;
    } cases[] = {
        {TD_F16, half, (double)INFINITY}, {TD_BF16, brain, 256}, {TD_U8, bytes, 44}, {TD_BOOL, bools, 1}};
    struct td_sparse sparse = {
        .kind = TD_COO, .indices = PACKED(same, TD_I64, 1, 2), .shape = {.ndim = 1, .size = {1}}};
    for (size_t i = 0; i < 4; i++) {
        sparse.values =
            packed(cases[i].values, 2 * td_dtype_size(cases[i].dtype), cases[i].dtype, 1, (int64_t[]){2});
        struct td_tensor tensor = tensor_of(&sparse);
        double out;
        assert_ok(td_load_f64(&tensor, 0, 1, &out, NULL));
        assert_true(out == cases[i].expected);
    }
    sparse.values = packed(bytes, 2, TD_F8_E5M2, 1, (int64_t[]){2});
    struct td_tensor tensor = tensor_of(&sparse);
    double out;
    struct tdbg_error error;
    assert_fails(td_load_f64(&tensor, 0, 1, &out, &error), TDBG_UNSUPPORTED, "sparse tensors of float8_e5m2");
}

#define REFUSED(sparse, code, text)                                                    \
    do {                                                                               \
        struct td_tensor refused_ = tensor_of(&(sparse));                              \
        struct tdbg_error error;                                                       \
        struct tdbg_stats stats_;                                                      \
        float out_[64];                                                                \
        assert_fails(td_load(&refused_, 0, refused_.count, out_, &error), code, text); \
        assert_fails(td_stats(&refused_, NULL, NULL, &stats_, &error), code, text);    \
    } while (0)

static void lies(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4};
    const int64_t outside[] = {0, 3, 0, 0}, negative[] = {0, 0, 0, -1};
    struct td_sparse coo = {.kind = TD_COO,
                            .indices = PACKED(outside, TD_I64, 2, 2),
                            .values = packed(values, 8, TD_F32, 1, (int64_t[]){2}),
                            .shape = {.ndim = 2, .size = {3, 4}}};
    REFUSED(coo, TDBG_CORRUPT, "sparse entry 1 lies outside the tensor");
    coo.indices = PACKED(negative, TD_I64, 2, 2);
    REFUSED(coo, TDBG_CORRUPT, "sparse entry 1 lies outside the tensor");
    coo.values = PACKED(values, TD_F32, 4);
    REFUSED(coo, TDBG_CORRUPT, "sparse values do not fit their indices and shape");
    coo.shape.ndim = 1;
    coo.indices = PACKED(negative, TD_I64, 2, 2);
    REFUSED(coo, TDBG_CORRUPT, "sparse indices do not fit a tensor of 1 axes");
    coo.shape.ndim = 2;
    coo.indices = packed(values, 16, TD_F32, 2, (int64_t[]){2, 2});
    REFUSED(coo, TDBG_UNSUPPORTED, "sparse indices of type float32");
    struct td_shape endless = {.ndim = 2, .size = {2, INT64_C(1) << 40}};
    assert_ok(
        td_view_strided(&coo.indices, outside, sizeof outside, TD_I64, 0, &endless, (int64_t[]){1, 0}, NULL));
    REFUSED(coo, TDBG_CORRUPT, "sparse indices that repeat themselves");

    const int64_t columns[] = {1, 3, 0, 2}, unsorted[] = {3, 1, 0, 2}, beyond[] = {1, 4, 0, 2};
    const int64_t backwards[] = {0, 3, 2, 4}, late[] = {1, 2, 2, 4}, many[] = {0, 2, 2, 9},
                  few[] = {0, 2, 2, 3};
    const int64_t good[] = {0, 2, 2, 4};
    struct td_sparse csr = {.kind = TD_CSR,
                            .offsets = PACKED(backwards, TD_I64, 4),
                            .indices = PACKED(columns, TD_I64, 4),
                            .values = PACKED(values, TD_F32, 4),
                            .shape = {.ndim = 2, .size = {3, 4}}};
    REFUSED(csr, TDBG_CORRUPT, "sparse index 2 is out of order or outside the tensor");
    csr.offsets = PACKED(late, TD_I64, 4);
    REFUSED(csr, TDBG_CORRUPT, "sparse offsets 0 and 1 are out of order");
    csr.offsets = PACKED(many, TD_I64, 4);
    REFUSED(csr, TDBG_CORRUPT, "sparse offsets 2 and 3 are out of order");
    csr.offsets = PACKED(few, TD_I64, 4);
    REFUSED(csr, TDBG_CORRUPT, "sparse offsets end at 3 of 4 entries");
    csr.offsets = PACKED(good, TD_I64, 4);
    csr.indices = PACKED(unsorted, TD_I64, 4);
    REFUSED(csr, TDBG_CORRUPT, "sparse index 1 is out of order or outside the tensor");
    csr.indices = PACKED(beyond, TD_I64, 4);
    REFUSED(csr, TDBG_CORRUPT, "sparse index 1 is out of order or outside the tensor");
    csr.shape.size[0] = 4;
    REFUSED(csr, TDBG_CORRUPT, "sparse offsets, indices and values do not fit the shape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coo),        cmocka_unit_test(coo_with_dense_axes),
        cmocka_unit_test(compressed), cmocka_unit_test(empty),
        cmocka_unit_test(huge),       cmocka_unit_test(sums),
        cmocka_unit_test(lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
