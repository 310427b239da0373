/* convert.h: plain elements as doubles, many at a time. */
#ifndef TD_KERNEL_CONVERT_H
#define TD_KERNEL_CONVERT_H

#include "tensor/dtype.h"

/* `count` plain elements at `from` (any alignment) as doubles: integers and bools as numbers (64-bit ones
 * rounded), complex by modulus. */
void td_convert_f64(enum td_dtype dtype, const void *from, int64_t count, double *out);

#endif
