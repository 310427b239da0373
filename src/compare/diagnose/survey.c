/* survey.c: see survey.h. */
#include "compare/diagnose/survey.h"

#include "kernel/compare.h"

/* The rows of the largest vocabularies that are in use. */
static const int64_t LONGEST = INT64_C(1) << 18;

static tdbg_status sum_sides(struct td_survey *out, const struct td_operand *a, const struct td_operand *b,
                             const double *profile, struct td_pool *pool, struct td_job *job,
                             struct td_arena *arena, const double *power[TD_MAX_DIMS],
                             struct tdbg_error *error)
{
    int64_t total = 0;
    if (!profile)
        return td_profile_sides(a, b, LONGEST, pool, job, arena, out->error, power, error);
    for (int axis = 0; axis < a->shape.ndim; axis++)
        total += a->shape.size[axis];
    for (int axis = 0; axis < a->shape.ndim; axis++) {
        out->error[axis] = profile;
        power[axis] = profile + total;
        profile += a->shape.size[axis];
    }
    return TDBG_OK;
}

tdbg_status td_survey_make(struct td_survey *out, const struct td_operand *a, const struct td_operand *b,
                           const double *profile, double floor, struct td_pool *pool, struct td_job *job,
                           struct td_arena *arena, struct tdbg_error *error)
{
    const double *power[TD_MAX_DIMS];
    *out = (struct td_survey){.shape = a->shape};
    TD_TRY(sum_sides(out, a, b, profile, pool, job, arena, power, error));
    for (int axis = 0; axis < a->shape.ndim; axis++) {
        int64_t size = a->shape.size[axis];
        double total = 0;
        if (!out->error[axis] || !power[axis])
            continue;
        bool *touched = td_arena_array(arena, (size_t)size + 1, sizeof *touched);
        if (!touched)
            return td_fail_nomem(error);
        for (int64_t k = 0; k < size; k++)
            total += power[axis][k];
        for (int64_t k = 0; k < size; k++) {
            touched[k] = td_is_off(floor, out->error[axis][k], power[axis][k], total / (double)size);
            out->count[axis] += touched[k];
        }
        out->touched[axis] = touched;
    }
    return TDBG_OK;
}

static int64_t worst_index(const struct td_survey *s, int axis)
{
    int64_t worst = 0;
    for (int64_t k = 1; k < s->shape.size[axis]; k++)
        if (s->error[axis][k] > s->error[axis][worst])
            worst = k;
    return worst;
}

int64_t td_survey_window(const struct td_survey *s, int axis, int64_t keep)
{
    int64_t size = s->shape.size[axis];
    if (!s->touched[axis] || s->count[axis] == size || keep >= size)
        return 0; /* as good as any, and where the sequence begins */
    int64_t worst = worst_index(s, axis), edge = worst;
    if (keep == 1)
        return worst;
    /* The border between wrong and right, at whichever end of the worst run there is one, in the middle. */
    while (edge > 0 && s->touched[axis][edge - 1])
        edge--;
    if (edge == 0)
        for (edge = worst; edge < size && s->touched[axis][edge];)
            edge++;
    int64_t start = edge - keep / 2;
    return start < 0 ? 0 : start > size - keep ? size - keep : start;
}
