/* range.h: how many values of a tensor a narrower floating type would not hold. */
#ifndef TD_KERNEL_RANGE_H
#define TD_KERNEL_RANGE_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/tensor.h"

/* The reach of a floating type, rounding to nearest, ties to even. */
struct td_range {
    double beyond; /* |x| from here on becomes infinite, or NaN where the type has no infinity */
    double lost;   /* |x| up to here becomes zero */
    double normal; /* below here digits are lost */
};

struct td_range_counts {
    uint64_t beyond, lost; /* finite values; zeros are not lost */
    uint64_t subnormal;    /* that keep something, but not all of their digits */
};

/* False: not one of float32, float16, bfloat16, float8_e4m3fn, float8_e5m2. */
bool td_range_of(enum td_dtype dtype, struct td_range *out);

TD_CHECK tdbg_status td_range_count(const struct td_tensor *tensor, const struct td_range *range,
                                    struct td_pool *pool, struct td_job *job, struct td_range_counts *out,
                                    struct tdbg_error *error);

#endif
