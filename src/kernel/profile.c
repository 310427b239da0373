/* profile.c: td_profile and td_profile_axes of compare.h: where along each axis the error of a pair sits.
 *
 * The squared error of a row (the last axis) is added to the channels as it comes, and as one sum to the
 * indices of the other axes. Chunks are dealt to a fixed number of groups; a group goes through its own in
 * order, and groups add up in order: the same bits at any number of threads, in memory that does not follow
 * the tensor.
 */
#include "kernel/compare.h"

#include "kernel/duet.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 16, STEP = 256 };

struct group {
    double *sums; /* all axes, one behind the other */
    tdbg_status status;
    struct tdbg_error error;
};

struct pass {
    const struct td_duet *duet;
    const struct td_shape *shape;
    struct td_job *job;
    int64_t at[TD_MAX_DIMS]; /* where an axis begins in a group's sums; -1: it is left out */
    int64_t total;           /* entries of one group's sums */
    struct group groups[GROUPS];
};

/* Adds `count` squared errors that lie in one row, the first at index `column` of it. */
static void add_to_row(const struct pass *pass, double *sums, int64_t row, int64_t column, const double *d,
                       int64_t count)
{
    const struct td_shape *shape = pass->shape;
    int last = shape->ndim - 1;
    double *channels = pass->at[last] < 0 ? NULL : sums + pass->at[last] + column, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double square = isfinite(d[i]) ? d[i] * d[i] : 0;
        if (channels)
            channels[i] += square;
        sum += square;
    }
    for (int i = last - 1; i >= 0; i--) {
        if (pass->at[i] >= 0)
            sums[pass->at[i] + row % shape->size[i]] += sum;
        row /= shape->size[i];
    }
}

struct visit {
    const struct pass *pass;
    double *sums;
};

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    (void)chunk;
    const struct visit *v = context;
    const struct td_duet *duet = v->pass->duet;
    int64_t size_a = (int64_t)td_dtype_size(duet->a.dtype), size_b = (int64_t)td_dtype_size(duet->b.dtype);
    int64_t width = v->pass->shape->size[v->pass->shape->ndim - 1];
    double x[STEP], y[STEP], d[STEP];
    for (int64_t at = 0; at < count;) {
        int64_t column = (start + at) % width, n = width - column;
        n = n < count - at ? n : count - at;
        n = n < STEP ? n : STEP;
        td_duet_differences(duet, (const uint8_t *)a + at * size_a, (const uint8_t *)b + at * size_b, n, x, y,
                            d);
        add_to_row(v->pass, v->sums, (start + at) / width, column, d, n);
        at += n;
    }
}

static void run_group(void *context, uint64_t index)
{
    struct pass *pass = context;
    struct group *g = &pass->groups[index];
    struct visit v = {pass, g->sums};
    struct td_duet_visitor visitor = {&v, visit};
    for (int64_t c = (int64_t)index; c < td_duet_chunks(pass->duet) && g->status == TDBG_OK; c += GROUPS) {
        g->status = td_job_cancelled(pass->job) ? td_fail(&g->error, TDBG_CANCELLED, "stopped")
                                                : td_duet_play_chunk(pass->duet, c, &visitor, &g->error);
    }
}

static tdbg_status run(struct pass *pass, struct td_pool *pool, struct tdbg_error *error)
{
    td_pool_run(pool, GROUPS, run_group, pass);
    for (int g = 0; g < GROUPS; g++)
        if (pass->groups[g].status != TDBG_OK) {
            if (error)
                *error = pass->groups[g].error;
            return pass->groups[g].status;
        }
    for (int g = 1; g < GROUPS; g++)
        for (int64_t i = 0; i < pass->total; i++)
            pass->groups[0].sums[i] += pass->groups[g].sums[i];
    return TDBG_OK;
}

tdbg_status td_profile_axes(const struct td_operand *a, const struct td_operand *b, int64_t most,
                            struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                            const double *axes[TD_MAX_DIMS], struct tdbg_error *error)
{
    struct td_duet duet;
    struct pass pass = {.duet = &duet, .shape = &a->shape, .job = job};
    for (int i = 0; i < a->shape.ndim; i++) {
        bool kept = a->count > 0 && a->shape.size[i] <= most;
        axes[i] = NULL;
        pass.at[i] = kept ? pass.total : -1;
        pass.total += kept ? a->shape.size[i] : 0;
    }
    if (pass.total == 0)
        return TDBG_OK;
    double *kept = td_arena_array(arena, (size_t)pass.total, sizeof *kept);
    double *space = calloc((size_t)pass.total * GROUPS, sizeof *space);
    tdbg_status status = kept && space ? td_duet_init(&duet, a, b, error) : td_fail_nomem(error);
    if (status == TDBG_OK) {
        for (int g = 0; g < GROUPS; g++)
            pass.groups[g].sums = space + g * pass.total;
        status = run(&pass, pool, error);
        td_duet_release(&duet);
    }
    if (status == TDBG_OK) {
        memcpy(kept, space, (size_t)pass.total * sizeof *kept);
        for (int i = 0; i < a->shape.ndim; i++)
            axes[i] = pass.at[i] < 0 ? NULL : kept + pass.at[i];
    }
    free(space);
    return status;
}

tdbg_status td_profile(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                       struct td_job *job, struct td_arena *arena, const double **out,
                       struct tdbg_error *error)
{
    const double *axes[TD_MAX_DIMS];
    int64_t total = 0;
    for (int i = 0; i < a->shape.ndim; i++)
        total += a->shape.size[i];
    *out = NULL;
    if (a->count == 0 || a->shape.ndim == 0 || total > TD_MAX_PROFILE)
        return TDBG_OK;
    TD_TRY(td_profile_axes(a, b, TD_MAX_PROFILE, pool, job, arena, axes, error));
    *out = axes[0];
    return TDBG_OK;
}
