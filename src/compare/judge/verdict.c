/* verdict.c: see verdict.h. */
#include "compare/judge/verdict.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The rms of the relative error of one rounding, in units of u: the mantissa is spread evenly over [1, 2) and
 * the error over +-u, so the mean square is (u^2 / 3) * E[1/m^2] = u^2 / 6. */
static const double ROUNDING_RMS = 0.41;

/* How far above the expected error the floor lies. Depth, width and data move the constant within a factor of
 * two of the model above; three keeps a right implementation below the floor. */
static const double FLOOR_SIGMAS = 3;

/* What stands before the first layer: the input, the weights, the norm and its scale, each rounded once.
 * Within a layer up to a dozen more stand before the last stage. From layer to layer only four stay: the two
 * sums of the residual stream, the norm and its scale round the stream itself, while what happens in the
 * branches touches only the share that a branch adds to it. */
enum { ROUNDINGS_BEFORE = 4, ROUNDINGS_WITHIN = 12, ROUNDINGS_PER_LAYER = 4 };

/* The norm of n random errors scatters by itself, and errors that came through the same few channels scatter
 * together: small tensors get 4 / sqrt(n) on top, a quarter at 256 elements, nothing to speak of at 10^5. */
static const double SMALL_TENSOR = 4;

/* The largest of a million Gaussian errors is five sigma; errors of attention and gated products have longer
 * tails. An element off by eight floors (24 sigma) is no rounding. */
static const double OUTLIER = 8;

/* With a reference: B may be this much further from the truth than A. Two implementations with the same
 * types have errors of the same size; three times is half a decade apart. */
static const double REFERENCE_RATIO = 3;

static const char *const verdicts[] = {"identical", "within", "diverged", "error", "only_a", "only_b"};
static const char *const policies[] = {"noise", "strict", "tolerance", "reference"};

const char *td_verdict_name(enum td_verdict verdict)
{
    return verdicts[verdict];
}

const char *td_policy_name(enum td_policy_kind kind)
{
    return policies[kind];
}

double td_unit_roundoff(enum td_dtype dtype)
{
    switch (dtype) {
    case TD_F64:
    case TD_C128:
        return 0x1p-53;
    case TD_F32:
    case TD_C64:
        return 0x1p-24;
    case TD_F16:
        return 0x1p-11;
    case TD_BF16:
        return 0x1p-8;
    case TD_F8_E4M3FN:
    case TD_F8_E4M3FNUZ:
        return 0x1p-4;
    case TD_F8_E5M2:
    case TD_F8_E5M2FNUZ:
        return 0x1p-3;
    /* Blocks: half a step of the block's largest value, which is about three times its rms. */
    case TD_Q8_0:
    case TD_QINT8:
    case TD_QUINT8:
        return 3 * 0x1p-8;
    case TD_Q6_K:
        return 3 * 0x1p-6;
    case TD_Q5_0:
    case TD_Q5_1:
    case TD_Q5_K:
        return 3 * 0x1p-5;
    case TD_Q4_0:
    case TD_Q4_1:
    case TD_Q4_K:
    case TD_IQ4_NL:
    case TD_IQ4_XS:
        return 3 * 0x1p-4;
    case TD_Q3_K:
        return 3 * 0x1p-3;
    case TD_Q2_K:
        return 3 * 0x1p-2;
    default:
        return 0;
    }
}

int td_roundings(const struct td_item *item, int64_t layers)
{
    if (item->parameter)
        return ROUNDINGS_BEFORE; /* a weight was rounded when it was stored, whatever its layer */
    int64_t layer = item->layer >= 0 ? item->layer : layers;
    int within = item->layer >= 0 ? item->stage_rank : 0;
    if (layer > 10000)
        layer = 10000;
    return ROUNDINGS_BEFORE + (int)layer * ROUNDINGS_PER_LAYER +
           (within < ROUNDINGS_WITHIN ? within : ROUNDINGS_WITHIN);
}

/* Of the type as stored, or as the values tell. */
static double unit_of(const struct td_circumstances *c, int side)
{
    return fmax(td_unit_roundoff(side ? c->b : c->a), c->grid[side]);
}

static double coarser_unit(const struct td_circumstances *c)
{
    return fmax(unit_of(c, 0), unit_of(c, 1));
}

static double noise_floor(const struct td_circumstances *c)
{
    double u = coarser_unit(c);
    double accumulation = (u <= 0x1p-53 ? 0x1p-53 : 0x1p-24) * sqrt((double)c->longest_axis);
    double scatter = 1 + SMALL_TENSOR / sqrt((double)(c->count > 0 ? c->count : 1));
    return FLOOR_SIGMAS * ROUNDING_RMS * sqrt(c->roundings) * hypot(u, accumulation) * scatter;
}

static struct td_tolerance strict_tolerance(const struct td_circumstances *c)
{
    enum td_dtype coarse = td_unit_roundoff(c->a) >= td_unit_roundoff(c->b) ? c->a : c->b;
    double u = td_unit_roundoff(coarse);
    if (u == 0)
        return (struct td_tolerance){0, 0};
    if (u <= 0x1p-53)
        return (struct td_tolerance){1e-7, 1e-7};
    if (u <= 0x1p-24)
        return (struct td_tolerance){1.3e-6, 1e-5};
    if (u <= 0x1p-11)
        return (struct td_tolerance){1e-3, 1e-5};
    if (u <= 0x1p-8)
        return (struct td_tolerance){1.6e-2, 1e-5};
    return (struct td_tolerance){4 * u, 1e-5}; /* float8 and blocks: the same four units as bfloat16 */
}

static bool one_sided_nonfinite(const struct td_metrics *m, struct td_ruling *out)
{
    uint64_t nan_a = m->nan_a - m->nan_both, nan_b = m->nan_b - m->nan_both;
    uint64_t inf_a = m->inf_a - m->inf_same, inf_b = m->inf_b - m->inf_same;
    if (nan_a + nan_b + inf_a + inf_b == 0)
        return false;
    const char *what = nan_a + nan_b ? "NaN" : "infinity";
    uint64_t a = nan_a + nan_b ? nan_a : inf_a, b = nan_a + nan_b ? nan_b : inf_b;
    out->verdict = TD_DIVERGED;
    snprintf(out->reason, sizeof out->reason, "%s %s: %" PRIu64 " in A, %" PRIu64 " in B", what,
             td_metrics_mixed(m) ? "that the other side does not share" : "where the other side has none", a,
             b);
    return true;
}

static void rule_exact(const struct td_circumstances *c, const struct td_metrics *m, struct td_ruling *out,
                       bool *needs_count)
{
    double u = coarser_unit(c);
    bool same = c->scalar && u > 0 && m->max_abs <= 2 * u * fabs(m->argmax_a);
    out->verdict = same ? TD_WITHIN : TD_DIVERGED;
    *needs_count = !same; /* the tolerance is zero: every element that differs */
    if (same)
        snprintf(out->reason, sizeof out->reason,
                 "a scalar, the same but for the rounding of the coarser type");
    else if (c->scalar)
        snprintf(out->reason, sizeof out->reason, "scalars are exact: %.9g against %.9g", m->argmax_a,
                 m->argmax_b);
    else
        snprintf(out->reason, sizeof out->reason, "integers are exact: %" PRIu64 " of %" PRIu64 " differ",
                 m->differing, m->count);
}

static struct td_tolerance outlier_tolerance(const struct td_circumstances *c, const struct td_metrics *m,
                                             double floor)
{
    double rms = m->paired ? m->a.norm / sqrt((double)m->paired) : 0;
    if (c->fill.value != 0)
        rms = c->fill.rms;
    return (struct td_tolerance){OUTLIER * floor, OUTLIER * floor * rms};
}

static void rule_noise(const struct td_circumstances *c, const struct td_metrics *m, struct td_ruling *out,
                       bool *needs_count)
{
    bool narrow = coarser_unit(c) > fmax(td_unit_roundoff(c->a), td_unit_roundoff(c->b));
    const char *whose = narrow ? " of the type that the values were rounded to" : "";
    bool other_fill = c->fill.value != 0 && c->fill.in_b != c->fill.value;
    bool beside = other_fill || (c->fill.value != 0 && c->fill.rel_l2 > m->rel_l2);
    double error = beside ? c->fill.rel_l2 : m->rel_l2;
    char where[64] = "";
    if (other_fill)
        snprintf(where, sizeof where, " beside the value %.3g, which is %.3g in B", c->fill.value,
                 c->fill.in_b);
    else if (beside)
        snprintf(where, sizeof where, " beside the value %.3g", c->fill.value);
    out->floor = out->noise;
    out->tolerance = outlier_tolerance(c, m, out->floor);
    if (other_fill && c->fill.max_abs > out->tolerance.atol + out->tolerance.rtol * fabs(c->fill.max_abs_a))
        other_fill = false;       /* one element beside it stands out, and all are counted */
    if (!(error <= out->floor)) { /* NaN where sums of squares overflow: no proof of agreement */
        out->verdict = TD_DIVERGED;
        char times[TD_NUMBER_SIZE];
        snprintf(out->reason, sizeof out->reason, "relative error %.3g%s is %s x the noise floor %.3g%s",
                 error, where, td_number_factor(times, error / out->floor), out->floor, whose);
        *needs_count = true;
        return;
    }
    out->verdict = TD_WITHIN;
    snprintf(out->reason, sizeof out->reason, "relative error %.3g%s, noise floor %.3g%s", error, where,
             out->floor, whose);
    *needs_count = !other_fill && m->max_abs > out->tolerance.atol;
}

static void rule_tolerance(struct td_tolerance tolerance, const struct td_metrics *m, struct td_ruling *out,
                           bool *needs_count)
{
    out->tolerance = tolerance;
    out->verdict = TD_WITHIN;
    snprintf(out->reason, sizeof out->reason, "within rtol %g, atol %g", tolerance.rtol, tolerance.atol);
    *needs_count = m->max_abs > tolerance.atol;
}

static void rule_reference(const struct td_circumstances *c, const struct td_metrics *m,
                           struct td_ruling *out, bool *needs_count)
{
    /* The error of A is no measure for a B of a coarser type: that one may be off by its own noise. */
    bool coarser = unit_of(c, 1) > unit_of(c, 0);
    double least = coarser ? fmax(out->noise, 2 * unit_of(c, 1)) : 2 * coarser_unit(c);
    double allowed = fmax(REFERENCE_RATIO * c->error_a, least);
    out->verdict = c->error_b > allowed ? TD_DIVERGED : TD_WITHIN;
    out->floor = allowed;
    out->tolerance = outlier_tolerance(c, m, allowed);
    *needs_count = out->verdict == TD_DIVERGED; /* to show the worst; the count decides nothing here */
    snprintf(out->reason, sizeof out->reason,
             "error against the reference: A %.3g, B %.3g (ratio %.3g, allowed %g)", c->error_a, c->error_b,
             c->error_a > 0 ? c->error_b / c->error_a : INFINITY, REFERENCE_RATIO);
}

void td_rule(const struct td_policy *policy, const struct td_circumstances *c, const struct td_metrics *m,
             struct td_ruling *out, bool *needs_count)
{
    *out = (struct td_ruling){.verdict = TD_IDENTICAL, .noise = noise_floor(c)};
    *needs_count = false;
    if (m->differing == 0) {
        snprintf(out->reason, sizeof out->reason, "every element is the same");
        return;
    }
    bool exact = c->scalar || (td_unit_roundoff(c->a) == 0 && td_unit_roundoff(c->b) == 0);
    if (policy->kind == TD_POLICY_TOLERANCE)
        rule_tolerance(policy->tolerance, m, out, needs_count);
    else if (exact)
        rule_exact(c, m, out, needs_count);
    else if (policy->kind == TD_POLICY_STRICT)
        rule_tolerance(strict_tolerance(c), m, out, needs_count);
    else if (policy->kind == TD_POLICY_REFERENCE && c->has_reference)
        rule_reference(c, m, out, needs_count);
    else
        rule_noise(c, m, out, needs_count);
    if (one_sided_nonfinite(m, out)) /* whatever the rule says of the others */
        *needs_count = true;
}

void td_ruling_count(struct td_ruling *ruling, uint64_t beyond, uint64_t count)
{
    if (ruling->verdict != TD_WITHIN || beyond == 0)
        return;
    ruling->verdict = TD_DIVERGED;
    snprintf(ruling->reason, sizeof ruling->reason,
             "%" PRIu64 " of %" PRIu64 " elements beyond rtol %.3g, atol %.3g%s", beyond, count,
             ruling->tolerance.rtol, ruling->tolerance.atol, ruling->floor > 0 ? " (8 noise floors)" : "");
}
