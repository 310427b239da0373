/* test_view.c: no view exists that reaches outside the bytes behind it. */
#include "test_support.h"

#include "tensor/tensor.h"
#include "tensor/view.h"

static const float storage[24];

static tdbg_status strided(struct td_view *view, uint64_t offset, struct td_shape shape,
                           const int64_t *strides, struct tdbg_error *error)
{
    return td_view_strided(view, storage, sizeof storage, TD_F32, offset, &shape, strides, error);
}

#define SHAPE(n, ...) ((struct td_shape){.ndim = (n), .size = {__VA_ARGS__}})
#define STRIDES(...) ((const int64_t[]){__VA_ARGS__})
#define OUTSIDE "a view reaches outside its storage of 24 elements"

static void strided_views_within_storage(void **state)
{
    (void)state;
    struct td_view view;
    assert_ok(strided(&view, 0, SHAPE(2, 4, 6), STRIDES(6, 1), NULL));
    assert_true(td_view_is_packed(&view));
    assert_int_equal(view.count, 24);
    assert_ok(strided(&view, 0, SHAPE(2, 6, 4), STRIDES(1, 6), NULL));
    assert_false(td_view_is_packed(&view));
    assert_ok(strided(&view, 23, SHAPE(1, 24), STRIDES(-1), NULL));
    assert_ptr_equal(view.data, &storage[23]);
    assert_ok(strided(&view, 23, SHAPE(1, 1 << 20), STRIDES(0), NULL));
    assert_ok(strided(&view, 23, SHAPE(0, 0), STRIDES(0), NULL));
    assert_int_equal(view.count, 1);
    assert_ok(strided(&view, 99, SHAPE(2, 5, 0), STRIDES(1, 1), NULL));
    assert_null(view.data);
}

static void strided_views_outside_fail(void **state)
{
    (void)state;
    struct td_view view;
    struct tdbg_error error;
    assert_fails(strided(&view, 1, SHAPE(2, 4, 6), STRIDES(6, 1), &error), TDBG_CORRUPT, OUTSIDE);
    assert_fails(strided(&view, 24, SHAPE(0, 0), STRIDES(0), &error), TDBG_CORRUPT, OUTSIDE);
    assert_fails(strided(&view, 22, SHAPE(1, 24), STRIDES(-1), &error), TDBG_CORRUPT, OUTSIDE);
    assert_fails(strided(&view, 0, SHAPE(2, 3, 3), STRIDES(INT64_MAX, INT64_MAX), &error), TDBG_CORRUPT,
                 OUTSIDE);
    assert_fails(strided(&view, 0, SHAPE(1, 3), STRIDES(INT64_MIN), &error), TDBG_CORRUPT, OUTSIDE);
    assert_fails(strided(&view, UINT64_MAX, SHAPE(1, 1), STRIDES(1), &error), TDBG_CORRUPT, OUTSIDE);
}

static void shapes_are_claims(void **state)
{
    (void)state;
    struct tdbg_error error;
    int64_t count;
    assert_fails(td_shape_count(&SHAPE(2, 3, -1), &count, &error), TDBG_CORRUPT,
                 "negative size -1 of axis 1");
    assert_fails(td_shape_count(&SHAPE(2, INT64_MAX, INT64_MAX), &count, &error), TDBG_LIMIT,
                 "more than 2^48 elements");
    assert_fails(td_shape_count(&SHAPE(33, 1), &count, &error), TDBG_LIMIT, "33 dimensions, 32 at most");
    assert_ok(td_shape_count(&SHAPE(2, 1 << 24, 1 << 24), &count, &error));
    assert_int_equal(count, INT64_C(1) << 48);
}

static void packed_views(void **state)
{
    (void)state;
    struct td_view view;
    struct tdbg_error error;
    assert_ok(td_view_packed(&view, storage, sizeof storage, TD_F32, &SHAPE(3, 2, 3, 4), &error));
    assert_int_equal(view.strides[0], 12);
    assert_int_equal(view.strides[2], 1);
    assert_fails(td_view_packed(&view, storage, 95, TD_F32, &SHAPE(3, 2, 3, 4), &error), TDBG_CORRUPT,
                 "needs 96 bytes of data, has 95");
    assert_fails(td_view_packed(&view, storage, 96, TD_Q4_0, &SHAPE(2, 4, 33), &error), TDBG_CORRUPT,
                 "rows of 33 elements in blocks of 32");
    assert_ok(td_view_packed(&view, storage, 90, TD_Q4_0, &SHAPE(2, 5, 32), &error));
}

static void catalogue_cleans_names(void **state)
{
    (void)state;
    struct td_catalog catalog;
    struct td_view view;
    td_catalog_init(&catalog);
    assert_ok(td_view_packed(&view, storage, sizeof storage, TD_BF16, &SHAPE(2, 4, 6), NULL));
    assert_ok(td_catalog_add_view(&catalog, "a\x1b]0;x\xff", "npy", &view, NULL));
    assert_ok(td_catalog_add_view(&catalog, NULL, "npy", &view, NULL));
    assert_ok(td_catalog_skip(&catalog, "x.txt", NULL, "not a tensor of %d kinds", 7));
    assert_int_equal(catalog.count, 2);
    assert_string_equal(catalog.tensors[0].name, "a?]0;x?");
    assert_string_equal(catalog.tensors[1].name, "");
    assert_int_equal(catalog.tensors[0].bytes, 48);
    assert_string_equal(catalog.skips[0].reason, "not a tensor of 7 kinds");
    td_catalog_release(&catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_views_within_storage),
        cmocka_unit_test(strided_views_outside_fail),
        cmocka_unit_test(shapes_are_claims),
        cmocka_unit_test(packed_views),
        cmocka_unit_test(catalogue_cleans_names),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
