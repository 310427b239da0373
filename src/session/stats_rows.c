/* stats_rows.c: see stats_rows.h. */
#include "session/stats_rows.h"

#include "kernel/stats.h"

#include <stdlib.h>

/* Below this a tensor is not worth splitting; a task takes small ones until they add up to as much. */
enum { SMALL = 1 << 20, MOST_IN_TASK = 256 };

uint64_t td_stats_rows_bytes(const struct td_stats_rows *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++)
        bytes += r->rows[i].tensor->bytes;
    return r->bins ? 2 * bytes : bytes;
}

static tdbg_status measure(struct td_stats_row *row, int bins, struct td_pool *pool, struct td_job *job,
                           struct tdbg_error *error)
{
    if (row->known)
        return TDBG_OK;
    if (row->unsliceable)
        return td_fail(error, TDBG_UNSUPPORTED, "no statistics of a slice of a %s tensor",
                       row->tensor->sparse ? "sparse" : td_dtype_name(row->tensor->dtype));
    TD_TRY(td_input_stats(row->tensor, pool, job, &row->stats, error));
    if (bins && row->stats.finite > 0)
        TD_TRY(td_histogram(row->tensor, pool, job, row->stats.min, row->stats.max, bins, row->edges,
                            row->counts, error));
    for (int i = 0; bins && row->stats.finite == 0 && i <= bins; i++)
        row->edges[i] = (double)i / bins; /* numpy's answer to no values: from 0 to 1 */
    return td_input_verify(row->tensor, error);
}

static void measure_row(struct td_stats_row *row, int bins, struct td_pool *pool, struct td_job *job)
{
    tdbg_status status = measure(row, bins, pool, job, &row->error);
    row->error.status = status;
}

/* Small rows, cut into tasks: task t measures small[starts[t]] up to small[starts[t + 1]]. */
struct batch {
    struct td_stats_row **small;
    size_t *starts;
    size_t small_count, task_count;
    int bins;
    struct td_job *job;
};

static void run_task(void *context, uint64_t task)
{
    struct batch *b = context;
    for (size_t i = b->starts[task]; i < b->starts[task + 1]; i++)
        measure_row(b->small[i], b->bins, NULL, b->job);
}

static void cut_tasks(struct batch *b)
{
    uint64_t bytes = 0;
    size_t rows = 0;
    for (size_t i = 0; i < b->small_count; i++) {
        if (rows == 0)
            b->starts[b->task_count++] = i;
        bytes += b->small[i]->tensor->bytes;
        rows++;
        if (bytes >= SMALL || rows >= MOST_IN_TASK)
            bytes = rows = 0;
    }
    b->starts[b->task_count] = b->small_count;
}

tdbg_status td_stats_rows_measure(struct td_stats_rows *r, struct td_pool *pool, struct td_job *job,
                                  struct tdbg_error *error)
{
    struct batch batch = {.bins = r->bins, .job = job};
    batch.small = calloc(r->count + 1, sizeof *batch.small);
    batch.starts = calloc(r->count + 2, sizeof *batch.starts);
    if (!batch.small || !batch.starts) {
        free(batch.small);
        free(batch.starts);
        return td_fail_nomem(error);
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->rows[i].tensor->bytes < SMALL)
            batch.small[batch.small_count++] = &r->rows[i];
        else
            measure_row(&r->rows[i], r->bins, pool, job);
    }
    cut_tasks(&batch);
    td_pool_run(pool, batch.task_count, run_task, &batch);
    free(batch.small);
    free(batch.starts);
    return td_job_cancelled(job) ? td_fail(error, TDBG_CANCELLED, "cancelled") : TDBG_OK;
}

static tdbg_status add_histograms(struct td_stats_rows *r, struct tdbg_error *error)
{
    for (size_t i = 0; r->bins && i < r->count; i++) {
        struct td_stats_row *row = &r->rows[i];
        row->edges = calloc((size_t)r->bins + 1, sizeof *row->edges);
        row->counts = calloc((size_t)r->bins, sizeof *row->counts);
        if (!row->edges || !row->counts)
            return td_fail_nomem(error);
    }
    return TDBG_OK;
}

tdbg_status td_stats_rows_init(struct td_stats_rows *out, size_t count, int bins, struct tdbg_error *error)
{
    struct td_stats_rows r = {.count = count, .bins = bins};
    r.rows = calloc(r.count + 1, sizeof *r.rows);
    if (!r.rows)
        return td_fail_nomem(error);
    tdbg_status status = add_histograms(&r, error);
    if (status == TDBG_OK)
        *out = r;
    else
        td_stats_rows_release(&r);
    return status;
}

void td_stats_rows_release(struct td_stats_rows *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->rows[i].edges);
        free(r->rows[i].counts);
    }
    free(r->rows);
    *r = (struct td_stats_rows){0};
}
