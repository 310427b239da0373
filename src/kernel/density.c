/* density.c: see density.h. Both read the two sides together and count into tallies of integers, so the
 * threads cannot change the answer. */
#include "kernel/density.h"

#include "kernel/bins.h"
#include "kernel/convert.h"
#include "kernel/duet.h"

#include <stdlib.h>

struct pass {
    struct td_duet duet;
    struct td_bins bins;
    struct td_tallies tallies;
};

enum { STEP = 512 };

/* The next values of both sides as doubles. */
static void convert(const struct td_duet *duet, const void *a, const void *b, int64_t at, int64_t count,
                    double *x, double *y)
{
    int64_t size_a = (int64_t)td_dtype_size(duet->a.dtype), size_b = (int64_t)td_dtype_size(duet->b.dtype);
    td_convert_f64(duet->a.dtype, (const uint8_t *)a + at * size_a, count, x);
    td_convert_f64(duet->b.dtype, (const uint8_t *)b + at * size_b, count, y);
}

static void count_each(void *context, int64_t chunk, int64_t start, const void *a, const void *b,
                       int64_t count)
{
    (void)chunk, (void)start;
    struct pass *p = context;
    uint64_t *tally = td_tallies_take(&p->tallies), *tally_b = tally + p->bins.count;
    for (int64_t at = 0; at < count; at += STEP) {
        double x[STEP], y[STEP];
        int64_t n = count - at < STEP ? count - at : STEP;
        convert(&p->duet, a, b, at, n, x, y);
        for (int64_t i = 0; i < n; i++) {
            int column = td_bins_find(&p->bins, x[i]), row = td_bins_find(&p->bins, y[i]);
            if (column >= 0)
                tally[column]++;
            if (row >= 0)
                tally_b[row]++;
        }
    }
    td_tallies_return(&p->tallies, tally);
}

static void count_pairs(void *context, int64_t chunk, int64_t start, const void *a, const void *b,
                        int64_t count)
{
    (void)chunk, (void)start;
    struct pass *p = context;
    uint64_t *tally = td_tallies_take(&p->tallies);
    for (int64_t at = 0; at < count; at += STEP) {
        double x[STEP], y[STEP];
        int64_t n = count - at < STEP ? count - at : STEP;
        convert(&p->duet, a, b, at, n, x, y);
        for (int64_t i = 0; i < n; i++) {
            int column = td_bins_find(&p->bins, x[i]), row = td_bins_find(&p->bins, y[i]);
            if (column >= 0 && row >= 0)
                tally[row * p->bins.count + column]++;
        }
    }
    td_tallies_return(&p->tallies, tally);
}

/* The pass with its bins made; `counters` of them for each thread. */
static tdbg_status run(struct pass *p, const struct td_operand *a, const struct td_operand *b,
                       struct td_pool *pool, struct td_job *job, size_t counters,
                       const struct td_duet_visitor *visitor, struct tdbg_error *error)
{
    TD_TRY(td_tallies_init(&p->tallies, pool ? td_pool_threads(pool) : 1, counters, error));
    tdbg_status status = td_duet_init(&p->duet, a, b, error);
    if (status == TDBG_OK) {
        status = td_duet_play(&p->duet, pool, job, visitor, error);
        td_duet_release(&p->duet);
    }
    if (status != TDBG_OK)
        td_tallies_release(&p->tallies);
    return status;
}

tdbg_status td_histograms(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                          struct td_job *job, double low, double high, int bins, double *edges,
                          uint64_t *counts_a, uint64_t *counts_b, struct tdbg_error *error)
{
    struct pass pass;
    struct td_duet_visitor visitor = {&pass, count_each};
    TD_TRY(td_bins_init(&pass.bins, TD_F64, low, high, bins, edges, error));
    TD_TRY(run(&pass, a, b, pool, job, 2 * (size_t)bins, &visitor, error));
    for (int i = 0; i < bins; i++) {
        counts_a[i] = td_tallies_sum(&pass.tallies, (size_t)i);
        counts_b[i] = td_tallies_sum(&pass.tallies, (size_t)(bins + i));
    }
    td_tallies_release(&pass.tallies);
    return TDBG_OK;
}

tdbg_status td_density(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                       struct td_job *job, double low, double high, int size, uint64_t *counts,
                       struct tdbg_error *error)
{
    struct pass pass;
    struct td_duet_visitor visitor = {&pass, count_pairs};
    double *edges = calloc((size_t)size + 1, sizeof *edges);
    if (!edges)
        return td_fail_nomem(error);
    size_t cells = (size_t)size * (size_t)size;
    tdbg_status status = td_bins_init(&pass.bins, TD_F64, low, high, size, edges, error);
    if (status == TDBG_OK)
        status = run(&pass, a, b, pool, job, cells, &visitor, error);
    if (status == TDBG_OK) {
        for (size_t i = 0; i < cells; i++)
            counts[i] = td_tallies_sum(&pass.tallies, i);
        td_tallies_release(&pass.tallies);
    }
    free(edges);
    return status;
}
