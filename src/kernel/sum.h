/* sum.h: adding elements up in their own type, as a framework does when a sparse entry is named twice. */
#ifndef TD_KERNEL_SUM_H
#define TD_KERNEL_SUM_H

#include "base/status.h"
#include "tensor/dtype.h"

/* to[i] += from[i] for `count` plain elements: floats rounded to their type after each addition, integers
 * modulo 2^n, bools or-ed. No addition is defined for float8. */
TD_CHECK tdbg_status td_sum_into(enum td_dtype dtype, const void *from, int64_t count, void *to,
                                 struct tdbg_error *error);

#endif
