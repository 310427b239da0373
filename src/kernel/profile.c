/* profile.c: td_profile and its kin of compare.h: where along each axis the error of a pair sits, and what A
 * has there.
 *
 * One read of both sides gives the squares of the differences and those of A. They are added to the channels
 * (the last axis) as they come, and as one sum for each run of a row to the indices of the other axes. Chunks
 * are dealt to a fixed number of groups; a group goes through its own in order, and groups add up in order:
 * the same bits at any number of threads, in memory that does not follow the tensor.
 */
#include "kernel/compare.h"

#include "kernel/duet.h"

#include <stdlib.h>
#include <string.h>

/* Runs of a row that are added up at once, at the longest; and those without a loop of the tier's. */
enum { GROUPS = 16, RUN = 4096, STEP = 256 };

struct group {
    double *error, *power; /* all axes, one behind the other */
    tdbg_status status;
    struct tdbg_error failure;
};

struct pass {
    const struct td_duet *duet;
    td_spread_kernel *spread; /* NULL: these types have none */
    const struct td_shape *shape;
    struct td_job *job;
    int64_t at[TD_MAX_DIMS]; /* where an axis begins in a group's sums; -1: it is left out */
    int64_t total;           /* entries of one group's sums */
    struct group groups[GROUPS];
};

/* As spread.h has it, without lanes. */
static struct td_spread spread_slowly(const struct td_duet *duet, const void *a, const void *b, int64_t count,
                                      double *error, double *power)
{
    struct td_spread sum = {0};
    double x[STEP], y[STEP], d[STEP];
    td_duet_differences(duet, a, b, count, x, y, d);
    for (int64_t i = 0; i < count; i++) {
        double e = isfinite(d[i]) ? d[i] * d[i] : 0, p = isfinite(x[i]) ? x[i] * x[i] : 0;
        error[i] += e;
        power[i] += p;
        sum.error += e;
        sum.power += p;
    }
    return sum;
}

struct visit {
    const struct pass *pass;
    struct group *group;
    double spare[2][RUN]; /* columns that nobody asks for */
};

/* A run of one row, which begins at index `column` of it. */
static void add_run(struct visit *v, int64_t row, int64_t column, const void *a, const void *b, int64_t count)
{
    const struct pass *pass = v->pass;
    const struct td_shape *shape = pass->shape;
    struct group *g = v->group;
    int last = shape->ndim - 1;
    int64_t at = pass->at[last] + column;
    double *error = pass->at[last] < 0 ? v->spare[0] : g->error + at;
    double *power = pass->at[last] < 0 ? v->spare[1] : g->power + at;
    struct td_spread sum = pass->spread ? pass->spread(a, b, count, error, power)
                                        : spread_slowly(pass->duet, a, b, count, error, power);
    for (int i = last - 1; i >= 0; i--) {
        if (pass->at[i] >= 0) {
            g->error[pass->at[i] + row % shape->size[i]] += sum.error;
            g->power[pass->at[i] + row % shape->size[i]] += sum.power;
        }
        row /= shape->size[i];
    }
}

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    (void)chunk;
    struct visit *v = context;
    const struct td_duet *duet = v->pass->duet;
    int64_t size_a = (int64_t)td_dtype_size(duet->a.dtype), size_b = (int64_t)td_dtype_size(duet->b.dtype);
    int64_t width = v->pass->shape->size[v->pass->shape->ndim - 1], most = v->pass->spread ? RUN : STEP;
    for (int64_t at = 0; at < count;) {
        int64_t column = (start + at) % width, n = width - column;
        n = n < count - at ? n : count - at;
        n = n < most ? n : most;
        add_run(v, (start + at) / width, column, (const uint8_t *)a + at * size_a,
                (const uint8_t *)b + at * size_b, n);
        at += n;
    }
}

static void run_group(void *context, uint64_t index)
{
    struct pass *pass = context;
    struct group *g = &pass->groups[index];
    struct visit v = {.pass = pass, .group = g};
    struct td_duet_visitor visitor = {&v, visit};
    for (int64_t c = (int64_t)index; c < td_duet_chunks(pass->duet) && g->status == TDBG_OK; c += GROUPS) {
        g->status = td_job_cancelled(pass->job) ? td_fail(&g->failure, TDBG_CANCELLED, "stopped")
                                                : td_duet_play_chunk(pass->duet, c, &visitor, &g->failure);
    }
}

/* All of it ends up in the first group. */
static tdbg_status run(struct pass *pass, struct td_pool *pool, struct tdbg_error *error)
{
    td_pool_run(pool, GROUPS, run_group, pass);
    for (int g = 0; g < GROUPS; g++)
        if (pass->groups[g].status != TDBG_OK) {
            if (error)
                *error = pass->groups[g].failure;
            return pass->groups[g].status;
        }
    for (int g = 1; g < GROUPS; g++)
        for (int64_t i = 0; i < 2 * pass->total; i++)
            pass->groups[0].error[i] += pass->groups[g].error[i];
    return TDBG_OK;
}

static tdbg_status play(struct pass *pass, const struct td_operand *a, const struct td_operand *b,
                        double *space, struct td_pool *pool, struct tdbg_error *error)
{
    struct td_duet duet;
    TD_TRY(td_duet_init(&duet, a, b, error));
    bool floats = duet.a.dtype <= TD_BF16 && duet.b.dtype <= TD_BF16;
    pass->duet = &duet;
    pass->spread = floats ? duet.kernels->spreads->loop[duet.a.dtype][duet.b.dtype] : NULL;
    for (int g = 0; g < GROUPS; g++) {
        pass->groups[g].error = space + 2 * g * pass->total;
        pass->groups[g].power = pass->groups[g].error + pass->total;
    }
    tdbg_status status = run(pass, pool, error);
    td_duet_release(&duet);
    return status;
}

tdbg_status td_profile_sides(const struct td_operand *a, const struct td_operand *b, int64_t most,
                             struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                             const double *errors[TD_MAX_DIMS], const double *powers[TD_MAX_DIMS],
                             struct tdbg_error *error)
{
    struct pass pass = {.shape = &a->shape, .job = job};
    for (int i = 0; i < a->shape.ndim; i++) {
        bool kept = a->count > 0 && a->shape.size[i] <= most;
        errors[i] = powers[i] = NULL;
        pass.at[i] = kept ? pass.total : -1;
        pass.total += kept ? a->shape.size[i] : 0;
    }
    if (pass.total == 0)
        return TDBG_OK;
    size_t entries = 2 * (size_t)pass.total;
    double *kept = td_arena_array(arena, entries, sizeof *kept);
    double *space = calloc(entries * GROUPS, sizeof *space);
    tdbg_status status = kept && space ? play(&pass, a, b, space, pool, error) : td_fail_nomem(error);
    if (status == TDBG_OK) {
        memcpy(kept, space, entries * sizeof *kept);
        for (int i = 0; i < a->shape.ndim; i++)
            if (pass.at[i] >= 0) {
                errors[i] = kept + pass.at[i];
                powers[i] = errors[i] + pass.total;
            }
    }
    free(space);
    return status;
}

tdbg_status td_profile_axes(const struct td_operand *a, const struct td_operand *b, int64_t most,
                            struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                            const double *axes[TD_MAX_DIMS], struct tdbg_error *error)
{
    const double *powers[TD_MAX_DIMS];
    return td_profile_sides(a, b, most, pool, job, arena, axes, powers, error);
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
