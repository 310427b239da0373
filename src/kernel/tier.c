/* tier.c: see tier.h. Nothing is remembered: what the compiler's runtime learnt of the CPU and the
 * environment are read in nanoseconds, and a choice that is not stored cannot be stale or raced for. */
#include "kernel/tier.h"

#include <stdlib.h>
#include <string.h>

#if defined(__clang__) && defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
static bool has_f16c(void)
{
#if defined(__clang__)
    unsigned a, b, c = 0,
                   d; /* its builtin does not know the word; a hypervisor takes microseconds to answer */
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#else
    return __builtin_cpu_supports("f16c");
#endif
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2");
}
#endif

const struct td_kernels *const *td_kernels_usable(void)
{
    static const struct td_kernels *const plain[] = {&td_kernels_vector, &td_kernels_scalar, NULL};
#if defined(__x86_64__)
    static const struct td_kernels *const x86[] = {&td_kernels_avx512, &td_kernels_avx2, &td_kernels_vector,
                                                   &td_kernels_scalar, NULL};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        return has_avx512() ? x86 : x86 + 1;
#endif
    return plain;
}

tdbg_status td_kernels_select(const struct td_kernels **out, struct tdbg_error *error)
{
    const struct td_kernels *const *tiers = td_kernels_usable();
    const char *wanted = getenv("TDBG_CPU");
    if (!wanted || !*wanted || strcmp(wanted, "best") == 0) {
        *out = tiers[0];
        return TDBG_OK;
    }
    char known[64] = "";
    for (size_t i = 0; tiers[i]; i++) {
        if (strcmp(wanted, tiers[i]->name) == 0) {
            *out = tiers[i];
            return TDBG_OK;
        }
        strcat(strcat(known, i ? ", " : ""), tiers[i]->name);
    }
    return td_fail(error, TDBG_MISUSE, "TDBG_CPU=%s: this machine has %s", wanted, known);
}
