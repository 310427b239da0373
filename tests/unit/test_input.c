/* test_input.c: the public functions over an input, and the selections that slices make of any tensor. */
#include "test_support.h"

#include "session/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A .npy file of float32 0, 1, 2, … in a folder of its own. */
static void write_npy(char *path, int rows, int columns)
{
    char header[118];
    strcpy(path, "/tmp/tdbg-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    memset(header, ' ', sizeof header);
    int length = snprintf(header, sizeof header,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns);
    header[length] = ' ';
    header[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    for (int i = 0; i < rows * columns; i++) {
        float value = (float)i;
        fwrite(&value, sizeof value, 1, file);
    }
    fclose(file);
}

static void the_public_functions(void **state)
{
    (void)state;
    char path[64];
    struct tdbg_error error;
    tdbg_input *input = NULL;
    write_npy(path, 2, 3);
    assert_ok(tdbg_input_open(&input, path, &error));
    assert_int_equal(tdbg_input_count(input), 1);
    assert_int_equal(tdbg_input_skipped(input), 0);
    struct tdbg_info info = tdbg_input_info(input, 0);
    assert_string_equal(info.name, path + strlen("/tmp/"));
    assert_string_equal(info.dtype, "float32");
    assert_string_equal(info.format, "npy");
    assert_int_equal(info.ndim, 2);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.bytes, 24);
    assert_null(tdbg_input_info(input, 1).name);

    size_t index = 7;
    assert_ok(tdbg_input_find(input, info.name, &index, &error));
    assert_int_equal(index, 0);
    assert_int_equal(tdbg_input_find(input, "nothing", &index, NULL), TDBG_NOTFOUND);

    double values[3];
    assert_ok(tdbg_input_read(input, 0, 2, 3, values, &error));
    assert_true(values[0] == 2 && values[1] == 3 && values[2] == 4);
    assert_fails(tdbg_input_read(input, 0, 4, 3, values, &error), TDBG_MISUSE,
                 "elements 4 + 3 of a tensor of 6");
    assert_fails(tdbg_input_read(input, 5, 0, 1, values, &error), TDBG_MISUSE, "tensor 5 of 1");

    struct tdbg_stats stats;
    assert_ok(tdbg_input_stats(input, 0, &stats, &error));
    assert_true(stats.count == 6 && stats.mean == 2.5 && stats.max == 5);
    tdbg_input_close(&input);
    assert_null(input);
    tdbg_input_close(&input);
    unlink(path);
    assert_fails(tdbg_input_open(&input, path, &error), TDBG_IO, "cannot open: No such file or directory");
    assert_fails(tdbg_input_open(&input, NULL, &error), TDBG_MISUSE, "no path");
    tdbg_diff *diff = NULL;
    assert_fails(tdbg_diff_open(&diff, path, NULL, NULL, &error), TDBG_MISUSE, "no path of B");
    tdbg_input_close(NULL);
    tdbg_diff_close(NULL);
}

/* Every slice of a tensor that has no strides (here: affine) against the same slice of one that has. */
static void picks_what_strides_would(void **state)
{
    (void)state;
    static const char *const slices[] = {
        "",        "1",      "-1",      "1:3",       "::2",      "::-1",  ":,1",         ":,1:3",
        ":,::-2",  "...,2",  "...,1:4", "...,::3",   "...,::-1", "2,1,3", "1:,::2,::-2", "::2,:,:",
        "::2,1:3", "::-3,0", ":,2:1",   "3,::-1,1:",
    };
    static int8_t quants[4 * 5 * 6];
    static const float one = 1;
    static const int64_t zero = 0;
    struct tdbg_error error;
    const struct td_shape shape = {.ndim = 3, .size = {4, 5, 6}}, scalar = {0};
    struct td_tensor dense = {.dtype = TD_I8, .shape = shape, .count = 120}, packed = dense;
    struct td_affine affine = {.axis = -1};
    for (int i = 0; i < 120; i++)
        quants[i] = (int8_t)i;
    assert_ok(td_view_packed(&dense.view, quants, sizeof quants, TD_I8, &shape, &error));
    packed.dtype = TD_QINT8;
    packed.affine = &affine;
    assert_ok(td_view_packed(&packed.view, quants, sizeof quants, TD_QINT8, &shape, &error));
    assert_ok(td_view_packed(&affine.scale, &one, sizeof one, TD_F32, &scalar, &error));
    assert_ok(td_view_packed(&affine.zero, &zero, sizeof zero, TD_I64, &scalar, &error));
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        struct td_selection expected, got;
        int8_t want[120];
        float have[120];
        assert_ok(td_selection_init(&expected, &dense, slices[i], &error));
        assert_ok(td_selection_init(&got, &packed, slices[i], &error));
        assert_int_equal(expected.slice.count, got.slice.count);
        assert_ok(td_selection_load(&expected, 0, expected.slice.count, want, &error));
        for (int64_t at = 0; at < got.slice.count; at += 7) { /* pieces that begin and end within runs */
            int64_t left = got.slice.count - at;
            assert_ok(td_selection_load(&got, at, left < 7 ? left : 7, have + at, &error));
        }
        for (int64_t k = 0; k < got.slice.count; k++)
            if (have[k] != (float)want[k])
                fail_msg("[%s]: element %d is %g, not %d", slices[i], (int)k, (double)have[k], want[k]);
        td_selection_release(&expected);
        td_selection_release(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_public_functions),
        cmocka_unit_test(picks_what_strides_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
