/* test_gpu.c: what drivers tell of their GPUs, with libraries that the build makes. FAKE_GPU says which one
 * the linker finds: nvidia, amd, or one that does not start, or has no device; none of them on this machine.
 */
#include "test_support.h"

#include "record/gpu.h"

#include <stdlib.h>

static void samples(void **state)
{
    (void)state;
    const char *mood = getenv("FAKE_GPU");
    struct td_gpu *gpu = td_gpu_open();
    struct td_gpu_sample sample;
    if (strcmp(mood, "broken") == 0 || strcmp(mood, "none") == 0) {
        assert_null(gpu);
        return;
    }
    assert_non_null(gpu);
    bool nvidia = strcmp(mood, "nvidia") == 0;
    assert_int_equal(td_gpu_count(gpu), nvidia ? 2 : 1);
    assert_true(td_gpu_sample(gpu, 0, &sample));
    assert_true(sample.utilisation == (nvidia ? 40 : 55));
    assert_true(sample.memory == (nvidia ? 0x1p30 : 3 * 0x1p30));
    if (nvidia) {
        assert_true(td_gpu_sample(gpu, 1, &sample));
        assert_true(sample.utilisation == 90 && sample.memory == 0x1p31);
    }
    assert_false(td_gpu_sample(gpu, td_gpu_count(gpu), &sample));
    assert_false(td_gpu_sample(gpu, -1, &sample));
    td_gpu_close(&gpu);
    assert_null(gpu);
    td_gpu_close(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
