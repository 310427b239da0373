/* fill.c: see fill.h. */
#include "compare/fill.h"

#include <math.h>

/* Values that were computed are hardly ever equal to the largest of all, and large ones do not lie orders of
 * magnitude beyond everything else: where one in 32 of a sample is that value, and the others are a thousand
 * times smaller, somebody put it there. */
enum { SAMPLES = 256, LEAST_FILLED = SAMPLES / 32 };
static const double FAR_BEYOND = 1000;

enum { PIECE = 4096 };

/* The value of A that is furthest from zero. */
static double extreme(const struct td_metrics *m)
{
    return fabs(m->a.min) > fabs(m->a.max) ? m->a.min : m->a.max;
}

/* For free: next to a fill everything else is nothing, so the mean is its share times the value, and the mean
 * of squares its share times the square. A thousandth of the value is 3 % of the least share. */
static bool may_have_fill(const struct td_metrics *m, double value)
{
    double square = m->a.norm * m->a.norm / (double)m->a.finite;
    return m->differing > 0 && fabs(m->a.mean * value - square) <= 0.05 * square;
}

static tdbg_status has_fill(const struct td_operand *a, double value, bool *out, struct tdbg_error *error)
{
    int64_t indices[SAMPLES] = {0};
    double v[SAMPLES], largest = 0;
    int filled = 0, n = a->count < SAMPLES ? (int)a->count : SAMPLES;
    for (int i = 0; i < n; i++)
        indices[i] = (int64_t)((double)a->count * i / n);
    TD_TRY(td_operand_gather(a, indices, n, v, error));
    for (int i = 0; i < n; i++) {
        filled += v[i] == value;
        if (v[i] != value && isfinite(v[i]))
            largest = fmax(largest, fabs(v[i]));
    }
    *out = filled >= LEAST_FILLED && largest > 0 && largest * FAR_BEYOND < fabs(value);
    return TDBG_OK;
}

tdbg_status td_fill_find(const struct td_operand *a, const struct td_operand *b,
                         const struct td_metrics *metrics, struct td_fill *out, struct tdbg_error *error)
{
    double x[PIECE], y[PIECE], square = 0, difference = 0, value = extreme(metrics);
    int64_t beside = 0;
    bool found = false;
    *out = (struct td_fill){0};
    if (may_have_fill(metrics, value))
        TD_TRY(has_fill(a, value, &found, error));
    for (int64_t at = 0; found && at < a->count; at += PIECE) {
        int64_t count = a->count - at < PIECE ? a->count - at : PIECE;
        TD_TRY(td_operand_load(a, at, count, x, error));
        TD_TRY(td_operand_load(b, at, count, y, error));
        for (int64_t i = 0; i < count; i++)
            if (x[i] != value && isfinite(x[i]) && isfinite(y[i])) {
                square += x[i] * x[i];
                difference += (x[i] - y[i]) * (x[i] - y[i]);
                beside++;
            }
    }
    if (square > 0)
        *out = (struct td_fill){value, sqrt(difference / square), sqrt(square / (double)beside)};
    return TDBG_OK;
}
