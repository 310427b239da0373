/* look.c: see look.h. Kernels over the operands of the subject; then a look whether its files are still
 * whole.
 *
 * Where there is one side only, a side of zeros stands in for the other: a single zero, seen in the shape of
 * the first.
 */
#include "session/look.h"

#include "kernel/density.h"
#include "kernel/stats.h"
#include "session/input.h"

#include <inttypes.h>
#include <math.h>

/* Elements one search reads at most: some 50 ms. */
#define SCAN_MOST (INT64_C(1) << 25)

enum { SCAN_STEP = 4096 };

static const struct td_operand *operand(const struct td_subject *s, int side)
{
    return &s->side[side].operand;
}

static tdbg_status check_size(const struct td_subject *s, struct tdbg_error *error)
{
    if (s->count > TD_MAX_LOOK)
        return td_fail(error, TDBG_LIMIT, "%" PRId64 " elements are too many to look at all of them",
                       s->count);
    return TDBG_OK;
}

static tdbg_status check_both(const struct td_subject *s, struct tdbg_error *error)
{
    if (!s->has[0] || !s->has[1])
        return td_fail(error, TDBG_MISUSE, "this needs two sides; there is only %c", s->has[0] ? 'a' : 'b');
    return check_size(s, error);
}

static tdbg_status check_side(const struct td_subject *s, int side, struct tdbg_error *error)
{
    return s->has[side] ? TDBG_OK : td_fail(error, TDBG_MISUSE, "this pair has no side %c", 'a' + side);
}

/* --- numbers -------------------------------------------------------------------------------------------- */

/* A side that is one tensor; the layout changes its order, not its values, but for a slice of it. */
static const struct td_tensor *only_tensor(const struct td_operand *o)
{
    return td_tensor_is_dense(&o->parts[0]) ? &o->parts[0] : o->stored[0];
}

tdbg_status td_look_stats(const struct td_subject *s, int side, struct td_pool *pool, struct tdbg_stats *out,
                          struct tdbg_error *error)
{
    TD_TRY(check_side(s, side, error));
    if (s->pair && td_pair_measured(s->pair) && !s->as_real) {
        *out = side ? s->pair->outcome.metrics.b : s->pair->outcome.metrics.a;
        return TDBG_OK;
    }
    if (operand(s, side)->part_count == 1)
        return td_input_stats(only_tensor(operand(s, side)), pool, NULL, out, error);
    struct td_metrics m;
    TD_TRY(check_size(s, error));
    TD_TRY(td_measure(operand(s, side), operand(s, side), pool, NULL, &m, error));
    TD_TRY(td_subject_verify(s, error));
    *out = m.a;
    return TDBG_OK;
}

tdbg_status td_look_at_values(const double *values, int64_t count, struct tdbg_stats *out,
                              struct tdbg_error *error)
{
    struct td_tensor t = {.dtype = TD_F64, .shape = {.ndim = 1, .size = {count}}, .count = count};
    TD_TRY(td_view_packed(&t.view, values, (uint64_t)count * sizeof *values, TD_F64, &t.shape, error));
    return td_stats(&t, NULL, NULL, out, error);
}

/* --- places --------------------------------------------------------------------------------------------- */

tdbg_status td_look_worst(const struct td_subject *s, int count, struct td_pool *pool, struct td_arena *arena,
                          struct td_examination *out, struct tdbg_error *error)
{
    struct td_examination x;
    TD_TRY(check_both(s, error));
    TD_TRY(td_examine(operand(s, 0), operand(s, 1), (struct td_tolerance){0}, count, pool, NULL, arena, &x,
                      error));
    TD_TRY(td_subject_verify(s, error));
    *out = x;
    return TDBG_OK;
}

static bool fits(const struct td_search *search, double x)
{
    switch (search->what) {
    case TD_SOUGHT_RANGE:
        return x >= search->low && x <= search->high;
    case TD_SOUGHT_NAN:
        return isnan(x);
    case TD_SOUGHT_INF:
        return isinf(x);
    case TD_SOUGHT_ZERO:
        return x == 0;
    }
    return false;
}

tdbg_status td_look_find(const struct td_subject *s, const struct td_search *search, struct td_arena *arena,
                         struct td_places *out, struct tdbg_error *error)
{
    TD_TRY(check_side(s, search->side, error));
    struct td_places found = {.list = td_arena_array(arena, (size_t)search->limit + 1, sizeof *found.list)};
    if (!found.list)
        return td_fail_nomem(error);
    int64_t at = search->from, end = s->count - at > SCAN_MOST ? at + SCAN_MOST : s->count;
    while (at < end && found.count < search->limit) {
        double values[SCAN_STEP];
        int64_t n = end - at < SCAN_STEP ? end - at : SCAN_STEP, i = 0;
        TD_TRY(td_access_run(&s->side[search->side].access, at, n, values, error));
        for (; i < n && found.count < search->limit; i++)
            if (fits(search, values[i]))
                found.list[found.count++] = (struct td_place){at + i, values[i]};
        at += i;
    }
    TD_TRY(td_subject_verify(s, error));
    found.next = at < s->count ? at : -1;
    *out = found;
    return TDBG_OK;
}

/* --- how values lie ------------------------------------------------------------------------------------- */

/* Of the finite values of all sides; [0, 1] where there is none. */
static tdbg_status range(const struct td_subject *s, struct td_pool *pool, double *low, double *high,
                         struct tdbg_error *error)
{
    bool any = false;
    *low = 0;
    *high = 1;
    for (int side = 0; side < 2; side++) {
        struct tdbg_stats stats;
        if (!s->has[side])
            continue;
        TD_TRY(td_look_stats(s, side, pool, &stats, error));
        if (stats.finite == 0)
            continue;
        *low = any ? fmin(*low, stats.min) : stats.min;
        *high = any ? fmax(*high, stats.max) : stats.max;
        any = true;
    }
    return TDBG_OK;
}

tdbg_status td_look_histogram(const struct td_subject *s, int bins, struct td_pool *pool, double *edges,
                              uint64_t *const counts[2], struct tdbg_error *error)
{
    double low, high;
    TD_TRY(range(s, pool, &low, &high, error));
    if (s->has[0] && s->has[1]) {
        TD_TRY(check_size(s, error));
        TD_TRY(td_histograms(operand(s, 0), operand(s, 1), pool, NULL, low, high, bins, edges, counts[0],
                             counts[1], error));
    } else {
        int side = s->has[0] ? 0 : 1;
        TD_TRY(td_histogram(only_tensor(operand(s, side)), pool, NULL, low, high, bins, edges, counts[side],
                            error));
    }
    return td_subject_verify(s, error);
}

tdbg_status td_look_density(const struct td_subject *s, int size, struct td_pool *pool, double *low,
                            double *high, uint64_t *counts, struct tdbg_error *error)
{
    TD_TRY(check_both(s, error));
    TD_TRY(range(s, pool, low, high, error));
    if (*low == *high) { /* as the bins see it */
        *low -= 0.5;
        *high += 0.5;
    }
    TD_TRY(td_density(operand(s, 0), operand(s, 1), pool, NULL, *low, *high, size, counts, error));
    return td_subject_verify(s, error);
}

/* --- axes ----------------------------------------------------------------------------------------------- */

static tdbg_status sum_squares(const struct td_subject *s, struct td_pool *pool, struct td_arena *arena,
                               const double *axes[TD_MAX_DIMS], struct tdbg_error *error)
{
    static const float zero = 0;
    if (s->has[0] && s->has[1])
        return td_profile_axes(operand(s, 0), operand(s, 1), TD_MAX_PROFILE, pool, NULL, arena, axes, error);
    const struct td_operand *one = operand(s, s->has[0] ? 0 : 1);
    const int64_t still[TD_MAX_DIMS] = {0};
    struct td_tensor zeros = {.dtype = TD_F32, .shape = one->shape, .count = one->count};
    const struct td_tensor *stored = &zeros;
    TD_TRY(td_view_strided(&zeros.view, &zero, sizeof zero, TD_F32, 0, &one->shape, still, error));
    struct td_operand other = {
        .shape = one->shape, .count = one->count, .part_count = 1, .parts = &zeros, .stored = &stored};
    return td_profile_axes(one, &other, TD_MAX_PROFILE, pool, NULL, arena, axes, error);
}

tdbg_status td_look_profile(const struct td_subject *s, struct td_pool *pool, struct td_arena *arena,
                            const double *axes[TD_MAX_DIMS], struct tdbg_error *error)
{
    TD_TRY(check_size(s, error));
    TD_TRY(sum_squares(s, pool, arena, axes, error));
    TD_TRY(td_subject_verify(s, error));
    for (int i = 0; i < s->shape.ndim; i++) {
        int64_t size = s->shape.size[i];
        double *rms = axes[i] ? td_arena_array(arena, (size_t)size, sizeof *rms) : NULL;
        if (axes[i] && !rms)
            return td_fail_nomem(error);
        for (int64_t k = 0; rms && k < size; k++)
            rms[k] = sqrt(axes[i][k] / (double)(s->count / size));
        axes[i] = rms;
    }
    return TDBG_OK;
}
