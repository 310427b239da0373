/* range.c: see range.h. Counts are integers, so the order in which threads add them does not matter. */
#include "kernel/range.h"

#include "kernel/bins.h"
#include "kernel/convert.h"
#include "kernel/sweep.h"

#include <math.h>

enum { BEYOND, LOST, SUBNORMAL, COUNTERS };

enum { STEP = 1024 }; /* elements made doubles at a time */

struct counting {
    enum td_dtype dtype;
    struct td_range range;
    struct td_tallies tallies;
};

/* Half of the last step beyond the largest value, and half of the least subnormal. The largest of
 * float8_e4m3fn is even, so there the tie itself still fits. */
bool td_range_of(enum td_dtype dtype, struct td_range *out)
{
    static const struct {
        enum td_dtype dtype;
        struct td_range range;
    } ranges[] = {
        {TD_F32, {0x1.ffffffp127, 0x1p-150, 0x1p-126}},
        {TD_F16, {65520, 0x1p-25, 0x1p-14}},
        {TD_BF16, {0x1.ffp127, 0x1p-134, 0x1p-126}},
        {TD_F8_E4M3FN, {0x1.d000000000001p8, 0x1p-10, 0x1p-6}},
        {TD_F8_E5M2, {61440, 0x1p-17, 0x1p-14}},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].dtype == dtype) {
            *out = ranges[i].range;
            return true;
        }
    return false;
}

static void visit(void *context, uint64_t slot, const void *elements, int64_t count)
{
    (void)slot;
    struct counting *c = context;
    const struct td_range r = c->range;
    uint64_t *tally = td_tallies_take(&c->tallies);
    int64_t size = (int64_t)td_dtype_size(c->dtype);
    for (int64_t at = 0; at < count; at += STEP) {
        double values[STEP];
        int64_t taken = count - at < STEP ? count - at : STEP;
        uint64_t beyond = 0, small = 0, lost = 0;
        td_convert_f64(c->dtype, (const uint8_t *)elements + at * size, taken, values);
        for (int64_t i = 0; i < taken; i++) {
            double x = fabs(values[i]); /* NaN fails every comparison */
            beyond += (uint64_t)(x >= r.beyond && x < (double)INFINITY);
            small += (uint64_t)(x > 0 && x < r.normal);
            lost += (uint64_t)(x > 0 && x <= r.lost);
        }
        tally[BEYOND] += beyond;
        tally[LOST] += lost;
        tally[SUBNORMAL] += small - lost;
    }
    td_tallies_return(&c->tallies, tally);
}

tdbg_status td_range_count(const struct td_tensor *tensor, const struct td_range *range, struct td_pool *pool,
                           struct td_job *job, struct td_range_counts *out, struct tdbg_error *error)
{
    struct td_stream stream;
    struct counting c = {.dtype = td_value_dtype(tensor), .range = *range};
    TD_TRY(td_stream_init(&stream, tensor, error));
    tdbg_status status = td_tallies_init(&c.tallies, pool ? td_pool_threads(pool) : 1, COUNTERS, error);
    if (status == TDBG_OK) {
        struct td_visitor visitor = {.context = &c, .visit = visit};
        status = td_sweep(&stream, pool, job, &visitor, error);
        if (status == TDBG_OK)
            *out =
                (struct td_range_counts){.beyond = td_tallies_sum(&c.tallies, BEYOND) * stream.repeats,
                                         .lost = td_tallies_sum(&c.tallies, LOST) * stream.repeats,
                                         .subnormal = td_tallies_sum(&c.tallies, SUBNORMAL) * stream.repeats};
        td_tallies_release(&c.tallies);
    }
    td_stream_release(&stream);
    return status;
}
