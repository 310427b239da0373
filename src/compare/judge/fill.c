/* fill.c: see fill.h. */
#include "compare/judge/fill.h"

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

/* What a pass over both sides finds out. */
struct pass {
    struct td_fill fill;
    double square, difference, largest;
    int64_t beside, filled, same_in_b, there_only_in_b;
};

static void look_at(struct pass *p, double x, double y)
{
    if (x == p->fill.value) {
        if (p->filled++ == 0)
            p->fill.in_b = y;
        p->same_in_b += y == p->fill.in_b;
        return;
    }
    p->there_only_in_b += p->filled > 0 && y == p->fill.in_b;
    if (!isfinite(x) || !isfinite(y))
        return;
    p->square += x * x;
    p->difference += (x - y) * (x - y);
    p->largest = fmax(p->largest, fabs(x));
    p->beside++;
    if (fabs(x - y) > p->fill.max_abs) {
        p->fill.max_abs = fabs(x - y);
        p->fill.max_abs_a = x;
    }
}

/* B has one value wherever A has the fill, on the same side of zero and as far beyond everything else as a
 * typical value tells; and has it nowhere else. */
static bool fills_alike(const struct pass *p)
{
    return p->same_in_b == p->filled && p->there_only_in_b == 0 && p->fill.in_b * p->fill.value > 0 &&
           isfinite(p->fill.in_b) && fabs(p->fill.in_b) > FAR_BEYOND * p->fill.rms &&
           fabs(p->fill.in_b) > p->largest;
}

tdbg_status td_fill_find(const struct td_operand *a, const struct td_operand *b,
                         const struct td_metrics *metrics, struct td_fill *out, struct tdbg_error *error)
{
    double x[PIECE], y[PIECE];
    struct pass p = {.fill = {.value = extreme(metrics)}};
    bool found = false;
    *out = (struct td_fill){0};
    if (may_have_fill(metrics, p.fill.value))
        TD_TRY(has_fill(a, p.fill.value, &found, error));
    for (int64_t at = 0; found && at < a->count; at += PIECE) {
        int64_t count = a->count - at < PIECE ? a->count - at : PIECE;
        TD_TRY(td_operand_load(a, at, count, x, error));
        TD_TRY(td_operand_load(b, at, count, y, error));
        for (int64_t i = 0; i < count; i++)
            look_at(&p, x[i], y[i]);
    }
    if (!(p.square > 0))
        return TDBG_OK;
    p.fill.rel_l2 = sqrt(p.difference / p.square);
    p.fill.rms = sqrt(p.square / (double)p.beside);
    if (!fills_alike(&p))
        p.fill.in_b = p.fill.value;
    *out = p.fill;
    return TDBG_OK;
}
