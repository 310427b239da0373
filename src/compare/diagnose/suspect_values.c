/* suspect_values.c: mistakes that change each value by a rule: a factor, an offset, a limit, a rounding.
 *
 * Factors and offsets are fitted for the whole tensor and for every way of sharing them: one per index of an
 * axis, or one per position with one axis averaged away (a bias of [heads, channels] over the tokens).
 */
#include "compare/diagnose/evidence.h"

#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one factor for all -------------------------------------------------------------------------------- */

/* What people multiply by: powers of the sizes at hand, small whole numbers and their roots. */
static void name_factor(const struct td_evidence *e, double s, char *out, size_t size)
{
    double x = fabs(s);
    out[0] = 0;
    int heads = e->c->heads->guessed ? 0 : e->c->heads->count;
    for (int i = 0; i < e->whole.ndim + heads; i++) {
        double n =
            i < e->whole.ndim ? (double)e->whole.size[i] : (double)e->c->heads->size[i - e->whole.ndim];
        const struct {
            double value;
            const char *format;
        } guesses[] = {
            {1 / sqrt(n), " = 1/sqrt(%g)"}, {sqrt(n), " = sqrt(%g)"}, {1 / n, " = 1/%g"}, {n, " = %g"}};
        for (size_t g = 0; n > 1 && g < sizeof guesses / sizeof *guesses; g++)
            if (fabs(x / guesses[g].value - 1) < 2e-3 && !out[0])
                snprintf(out, size, guesses[g].format, n);
    }
    for (int n = 2; n <= 64 && !out[0]; n++)
        if (fabs(x * n - 1) < 2e-3)
            snprintf(out, size, " = 1/%d", n);
    if (!out[0] && fabs(x / sqrt(2) - 1) < 2e-3)
        snprintf(out, size, " = sqrt(2)");
    if (!out[0] && fabs(x * sqrt(2) - 1) < 2e-3)
        snprintf(out, size, " = 1/sqrt(2)");
    if (!out[0] && fabs(x / 1.4426950408889634 - 1) < 2e-3)
        snprintf(out, size, " = log2(e)");
}

static void suspect_scale(struct td_evidence *e, struct td_diagnosis *d)
{
    double ab = 0;
    for (int64_t i = 0; i < e->count; i++)
        ab += e->a[i] * e->b[i];
    if (e->power_a == 0)
        return;
    double s = ab / e->power_a;
    double rest = e->power_b - s * ab;
    char meaning[64];
    name_factor(e, s, meaning, sizeof meaning);
    double share = 100 * td_explained(e, rest);
    if (fabs(s + 1) < 0.05)
        td_enter(e, d, TD_IS_SIGN, rest, 1, "%.1f %% explained by the opposite sign", share);
    else if (s != 0)
        td_enter(e, d, TD_IS_SCALE, rest, 1, "%.1f %% explained by x %.6g%s", share, s, meaning);
}

/* --- shared factors and offsets ------------------------------------------------------------------------- */

/* A way of sharing. Of element (outer, k, inner), k along the axis, the class is k, or, when averaging the
 * axis away, (outer, inner): all elements that differ from it in that axis only. */
struct sharing {
    int axis;
    bool along; /* one number per index of the axis; else one per position across it */
    int64_t outer, size, stride, classes; /* elements: outer * size * stride */
};

static struct sharing share(const struct td_evidence *e, int axis, bool along)
{
    struct sharing s = {.axis = axis, .along = along, .outer = 1, .size = e->shape.size[axis], .stride = 1};
    for (int i = 0; i < axis; i++)
        s.outer *= e->shape.size[i];
    for (int i = axis + 1; i < e->shape.ndim; i++)
        s.stride *= e->shape.size[i];
    s.classes = along ? s.size : e->count / (s.size ? s.size : 1);
    return s;
}

/* `moved` tells which classes the numbers change by more than noise. Where those are half of the indices of
 * an axis at most, they are named. */
static void describe_sharing(const struct td_evidence *e, const struct sharing *s, const bool *moved,
                             char *out, size_t size)
{
    if (!s->along) {
        snprintf(out, size, "the same for every %s (axis %d)", td_axis_word(e, s->axis), s->axis);
        return;
    }
    int64_t count = 0, whole = e->whole.size[s->axis];
    if (s->size < whole) /* not looked at whole, but surveyed */
        moved = e->survey->touched[s->axis];
    for (int64_t k = 0; moved && k < whole; k++)
        count += moved[k];
    snprintf(out, size, "per %s (axis %d)", td_axis_word(e, s->axis), s->axis);
    if (count == 0 || 2 * count > whole)
        return;
    char list[96];
    td_print_indices(list, sizeof list, moved, whole);
    size_t at = strlen(out);
    snprintf(out + at, size - at, ", only %s %s",
             count == 1 ? td_axis_word(e, s->axis) : td_axis_plural(e, s->axis), list);
}

/* What the classes of a sharing have: sums of a a, a b, b - a; all have as many elements. */
struct class_sums {
    double *aa, *ab, *dd, n;
    bool *moved;
};

static void add_along(struct class_sums *c, const struct td_evidence *e, const struct sharing *s)
{
    const double *a = e->a, *b = e->b;
    for (int64_t outer = 0; outer < s->outer; outer++)
        for (int64_t k = 0; k < s->size; k++, a += s->stride, b += s->stride) {
            double aa = c->aa[k], ab = c->ab[k], dd = c->dd[k];
            for (int64_t i = 0; i < s->stride; i++) {
                aa += a[i] * a[i];
                ab += a[i] * b[i];
                dd += b[i] - a[i];
            }
            c->aa[k] = aa;
            c->ab[k] = ab;
            c->dd[k] = dd;
        }
}

/* A class each; a function of its own because only there compilers believe that nothing overlaps. */
static void add_each(const double *restrict a, const double *restrict b, int64_t count, double *restrict aa,
                     double *restrict ab, double *restrict dd)
{
    for (int64_t i = 0; i < count; i++) {
        aa[i] += a[i] * a[i];
        ab[i] += a[i] * b[i];
        dd[i] += b[i] - a[i];
    }
}

static void add_across(struct class_sums *c, const struct td_evidence *e, const struct sharing *s)
{
    const double *a = e->a, *b = e->b;
    for (int64_t outer = 0; outer < s->outer; outer++) {
        int64_t first = outer * s->stride;
        for (int64_t k = 0; k < s->size; k++, a += s->stride, b += s->stride)
            add_each(a, b, s->stride, c->aa + first, c->ab + first, c->dd + first);
    }
}

static bool class_sums_init(struct class_sums *c, struct td_evidence *e, const struct sharing *s)
{
    c->aa = calloc((size_t)s->classes * 3, sizeof *c->aa);
    c->moved = calloc((size_t)s->classes, sizeof *c->moved);
    if (!c->aa || !c->moved) {
        free(c->aa);
        free(c->moved);
        e->starved = true;
        return false;
    }
    c->ab = c->aa + s->classes;
    c->dd = c->ab + s->classes;
    c->n = (double)(e->count / s->classes);
    if (s->along && s->stride == 1)
        for (int64_t at = 0; at < e->count; at += s->size)
            add_each(e->a + at, e->b + at, s->size, c->aa, c->ab, c->dd);
    else if (s->along)
        add_along(c, e, s);
    else
        add_across(c, e, s);
    return true;
}

static void class_sums_release(struct class_sums *c)
{
    free(c->aa);
    free(c->moved);
}

static void enter_offsets(struct td_evidence *e, struct td_diagnosis *d, const struct sharing *s,
                          const struct class_sums *c)
{
    double rest = e->power_d;
    for (int64_t k = 0; k < s->classes; k++) {
        double change = c->dd[k] * c->dd[k] / c->n;
        rest -= change;
        c->moved[k] = td_is_touched(e, s->classes, change, c->aa[k]);
    }
    char how[224];
    describe_sharing(e, s, c->moved, how, sizeof how);
    td_enter(e, d, TD_IS_BIAS, rest, (double)s->classes, "%.1f %% explained by an offset %s",
             100 * td_explained(e, rest), how);
}

static void enter_factors(struct td_evidence *e, struct td_diagnosis *d, const struct sharing *s,
                          const struct class_sums *c)
{
    double rest = e->power_b, low = INFINITY, high = -INFINITY;
    for (int64_t k = 0; k < s->classes; k++) {
        if (!(c->aa[k] > 0))
            continue;
        double factor = c->ab[k] / c->aa[k];
        rest -= factor * c->ab[k];
        low = fmin(low, factor);
        high = fmax(high, factor);
        c->moved[k] = td_is_touched(e, s->classes, (factor - 1) * (factor - 1) * c->aa[k], c->aa[k]);
    }
    char how[224];
    describe_sharing(e, s, c->moved, how, sizeof how);
    td_enter(e, d, TD_IS_CHANNEL_SCALE, rest, (double)s->classes,
             "%.1f %% explained by factors %.4g to %.4g %s", 100 * td_explained(e, rest), low, high, how);
}

static void suspect_shared(struct td_evidence *e, struct td_diagnosis *d, const struct sharing *s)
{
    struct class_sums c;
    if (!class_sums_init(&c, e, s))
        return;
    enter_offsets(e, d, s, &c);
    memset(c.moved, 0, (size_t)s->classes * sizeof *c.moved);
    enter_factors(e, d, s, &c);
    class_sums_release(&c);
}

static void suspect_offset(struct td_evidence *e, struct td_diagnosis *d)
{
    double sum = 0;
    for (int64_t i = 0; i < e->count; i++)
        sum += e->b[i] - e->a[i];
    double n = (double)e->usable, mean = n > 0 ? sum / n : 0;
    td_enter(e, d, TD_IS_BIAS, e->power_d - n * mean * mean, 1, "%.1f %% explained by adding %.6g everywhere",
             100 * td_explained(e, e->power_d - n * mean * mean), mean);
}

/* --- limits and rounding -------------------------------------------------------------------------------- */

static void suspect_clamp(struct td_evidence *e, struct td_diagnosis *d)
{
    const double most = td_most_left(e);
    double low = INFINITY, high = -INFINITY, rest = 0;
    int64_t at_low = 0, at_high = 0;
    for (int64_t i = 0; i < e->count; i++) {
        low = e->b[i] < low ? e->b[i] : low;
        high = e->b[i] > high ? e->b[i] : high;
    }
    for (int64_t i = 0; i < e->count && rest <= most; i++) {
        double a = e->a[i], x = a < low ? low : a > high ? high : a;
        at_low += a < low;
        at_high += a > high;
        rest += (e->b[i] - x) * (e->b[i] - x);
    }
    if (at_low + at_high == 0 || rest > most)
        return;
    char limits[96];
    if (at_low && at_high)
        snprintf(limits, sizeof limits, "to [%.6g, %.6g]", low, high);
    else
        snprintf(limits, sizeof limits, at_low ? "from below at %.6g" : "from above at %.6g",
                 at_low ? low : high);
    td_enter(e, d, TD_IS_CLAMP, rest, 2, "%.1f %% explained by limiting A %s (%lld values)",
             100 * td_explained(e, rest), limits, (long long)(at_low + at_high));
}

/* Of whole numbers every one would be a float of few digits. */
static bool are_floats(const struct td_evidence *e)
{
    const struct td_item *items[] = {e->c->item_a, e->c->item_b};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < items[side]->part_count; i++)
            if (td_unit_roundoff(items[side]->parts[i]->dtype) == 0)
                return false;
    return true;
}

/* B holds nothing finer than `bits` of mantissa although its type could, and is A rounded to that. */
static void suspect_rounded(struct td_evidence *e, struct td_diagnosis *d, int bits, const char *name)
{
    double unit = ldexp(1, -bits - 1);
    if (unit <= td_unit_roundoff(e->c->item_b->parts[0]->dtype) * 1.01)
        return;
    const uint64_t finer = (UINT64_C(1) << (DBL_MANT_DIG - 1 - bits)) - 1;
    int64_t coarse = 0, near = 0, nonzero = 0;
    double rest = 0; /* of those that are not near */
    for (int64_t i = 0; i < e->count && (double)(nonzero - coarse) <= 0.01 * (double)e->count; i++) {
        if (e->b[i] == 0)
            continue;
        uint64_t digits;
        memcpy(&digits, &e->b[i], sizeof digits);
        nonzero++;
        coarse += (digits & finer) == 0;
        double off = e->a[i] - e->b[i];
        bool is_near = fabs(off) <= 1.01 * unit * fabs(e->b[i]) * 2;
        near += is_near;
        rest += is_near ? 0 : off * off;
    }
    /* A handful of finer values may come from elsewhere (a residual added later); most must be on the grid.
     */
    if (nonzero == 0 || (double)coarse < 0.99 * (double)nonzero)
        return;
    if ((double)near < 0.99 * (double)nonzero)
        rest = 0.24 * e->to_explain;
    td_enter(e, d, TD_IS_PRECISION, rest, 1, "%.1f %% of B's values are %s numbers stored as %s",
             100.0 * (double)coarse / (double)nonzero, name, td_dtype_name(e->c->item_b->parts[0]->dtype));
}

/* to += x times factor; in fours, of which compilers make vectors. */
static void add_scaled(double *restrict to, const double *restrict x, double factor, int64_t count)
{
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            to[i + k] += x[i + k] * factor;
    for (; i < count; i++)
        to[i] += x[i] * factor;
}

static void normalise(double *x, int64_t count)
{
    double scale = 1 / (sqrt(td_dot(x, x, count)) + 1e-300);
    for (int64_t i = 0; i < count; i++)
        x[i] *= scale;
}

/* One step of a power iteration: v becomes E'E v, each row being read once. The share of the squared error
 * that E v / |E v| as a factor per row explains. */
static double iterate(const double *error, int64_t rows, int64_t columns, double power, double *v,
                      double *next)
{
    double squares = 0;
    memset(next, 0, (size_t)columns * sizeof *next);
    for (int64_t i = 0; i < rows; i++) {
        double u = td_dot(error + i * columns, v, columns);
        squares += u * u;
        add_scaled(next, error + i * columns, u, columns);
    }
    memcpy(v, next, (size_t)columns * sizeof *v);
    double share = td_dot(v, v, columns) / (squares + 1e-300) / power;
    normalise(v, columns);
    return share;
}

/* Whether one pattern (a factor per row times a factor per column) explains more than `most` of the squared
 * error: the largest singular value, by power iteration, in which the share never falls. Rounding has no
 * pattern. */
static bool has_pattern(struct td_evidence *e, double most)
{
    int64_t columns = e->shape.size[e->shape.ndim - 1], rows = e->count / columns;
    double *v = malloc((size_t)columns * 2 * sizeof *v), *error = td_evidence_work(e);
    bool found = !v || !error;
    e->starved |= !v;
    for (int64_t i = 0; !found && i < e->count; i++)
        error[i] = e->b[i] - e->a[i];
    for (int64_t j = 0; !found && j < columns; j++)
        v[j] = 1 + 0.1 * sin((double)j);
    for (int step = 0; !found && step < 20; step++)
        found = iterate(error, rows, columns, e->power_d, v, v + columns) > most;
    free(v);
    return found;
}

/* Small, without a pattern, and growing with the values: rounding, though more of it than the types explain.
 * Beyond five per cent nobody would call it that. */
void td_suspect_noise(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    double relative = sqrt(e->power_d / e->power_a);
    if (!(relative < 0.05) || relative < e->c->floor || e->count < 64 || e->shape.ndim == 0 || !are_floats(e))
        return;
    int64_t columns = e->shape.size[e->shape.ndim - 1], rows = e->count / columns;
    double chance = pow(sqrt((double)rows) + sqrt((double)columns), 2) / (double)e->count;
    double worst = e->c->metrics->max_abs / sqrt(e->power_d / (double)e->usable);
    if (rows < 4 || columns < 4 || worst > 20 || has_pattern(e, 2 * chance + 0.05))
        return;
    char times[TD_NUMBER_SIZE];
    td_enter(e, d, TD_IS_PRECISION, 0.24 * e->to_explain, 1,
             "a patternless error of %.2g of the values, %s x what %s alone explains", relative,
             td_number_factor(times, relative / e->c->floor), td_dtype_name(e->c->item_b->parts[0]->dtype));
}

void td_suspect_rule(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    suspect_scale(e, d);
    suspect_offset(e, d);
}

void td_suspect_sharing(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    for (int along = 0; along < 2; along++) {
        struct sharing s = share(e, axis, along);
        if (s.classes > 1 && s.classes * 2 <= e->usable)
            suspect_shared(e, d, &s);
    }
}

void td_suspect_limits(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    suspect_clamp(e, d);
    if (!are_floats(e))
        return;
    suspect_rounded(e, d, 7, "bfloat16");
    suspect_rounded(e, d, 10, "float16");
    suspect_rounded(e, d, 3, "float8");
}
