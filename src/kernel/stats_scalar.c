/* stats_scalar.c: the statistics of one block in plain C: what every other tier must equal bit for bit.
 *
 * A value that is not finite is counted and otherwise left out: it adds to no lane, but the elements after it
 * keep theirs. See block.h for the shape of the computation.
 */
#include "kernel/element.h"
#include "kernel/shift.h"
#include "kernel/tier.h"

static inline __attribute__((always_inline)) struct td_partial
block_stats(const uint8_t *p, int64_t count, int64_t size, double (*value)(const uint8_t *))
{
    struct td_sums s = {
        .shift = td_shift(p, count, size, value), .min = (double)INFINITY, .max = -(double)INFINITY};
    for (int64_t i = 0; i < count; i++)
        td_sums_add(&s, i % TD_LANES, value(p + i * size));
    return td_sums_finish(&s, count);
}

static struct td_partial stats_f64(const void *elements, int64_t count)
{
    return block_stats(elements, count, 8, td_f64_at);
}

static struct td_partial stats_f32(const void *elements, int64_t count)
{
    return block_stats(elements, count, 4, td_f32_at);
}

static struct td_partial stats_f16(const void *elements, int64_t count)
{
    return block_stats(elements, count, 2, td_f16_at);
}

static struct td_partial stats_bf16(const void *elements, int64_t count)
{
    return block_stats(elements, count, 2, td_bf16_at);
}

const struct td_kernels td_kernels_scalar = {
    .name = "scalar",
    .stats = {[TD_F64] = stats_f64, [TD_F32] = stats_f32, [TD_F16] = stats_f16, [TD_BF16] = stats_bf16},
    .pairs = &td_pairs_scalar,
    .spreads = &td_spreads_scalar,
    .tiles = &td_tiles_scalar,
};
