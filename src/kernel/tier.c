/* tier.c: see tier.h. Nothing is remembered: asking the CPU and the environment costs nanoseconds, and a
 * choice that is not stored cannot be stale or raced for. */
#include "kernel/tier.h"

#include <stdlib.h>
#include <string.h>

const struct td_kernels *const *td_kernels_usable(void)
{
    static const struct td_kernels *const plain[] = {&td_kernels_scalar, NULL};
    return plain;
}

tdbg_status td_kernels_select(const struct td_kernels **out, struct tdbg_error *error)
{
    const struct td_kernels *const *tiers = td_kernels_usable();
    const char *wanted = getenv("TDBG_CPU");
    if (!wanted || !*wanted) {
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
