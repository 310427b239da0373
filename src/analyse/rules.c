/* rules.c: the rules, each a function that measures one number of one row.
 *
 * All of them live on statistics, which every recorded tensor has, whatever else was kept of it. Where a
 * statistic allows no exact answer, the number is a bound that can only be too mild: the update ratio is at
 * least what the norms say, the saturated share at least what the second moment says.
 */
#include "analyse/series.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double says_nothing = (double)NAN;

/* Fewer values than this make no statistics. */
enum { FEW = 16 };

/* --- Any tensor ----------------------------------------------------------------------------------------- */

static double nan_values(const struct td_moment *m)
{
    return (double)m->tensor->stats.nan;
}

/* A mask of attention is made of infinities. */
static double inf_values(const struct td_moment *m)
{
    return strstr(m->tensor->name, "mask") ? says_nothing : (double)m->tensor->stats.inf;
}

static double share_of_range(const struct td_moment *m)
{
    static const struct {
        const char *dtype;
        double max;
    } narrow[] = {{"float16", 65504},
                  {"float8_e4m3fn", 448},
                  {"float8_e5m2", 57344},
                  {"float8_e4m3fnuz", 240},
                  {"float8_e5m2fnuz", 57344}};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (strcmp(m->tensor->dtype, narrow[i].dtype) == 0)
            return m->tensor->stats.absmax / narrow[i].max;
    return says_nothing;
}

/* --- Gradients ------------------------------------------------------------------------------------------ */

static double gradient_size(const struct td_moment *m)
{
    return td_root_mean_square(&m->tensor->stats);
}

/* Against the geometric mean of the steps before: sizes of gradients spread over orders of magnitude. */
static double gradient_jump(const struct td_moment *m)
{
    const struct td_series *s = m->series;
    double size = gradient_size(m);
    return s->log_count < 5 || !(size > 0) ? says_nothing : size / exp(s->log_sum / (double)s->log_count);
}

/* --- Activations ---------------------------------------------------------------------------------------- */

/* What comes out of a ReLU is never negative, and zero where it is off. */
static double share_of_zeros(const struct td_moment *m)
{
    const struct tdbg_stats *s = &m->tensor->stats;
    if (s->finite < FEW || s->min < 0 || s->zeros == 0)
        return says_nothing;
    return (double)s->zeros / (double)s->finite;
}

static double share_at_ends(const struct td_run_tensor *t, double low, double high, double margin)
{
    uint64_t at_ends = 0;
    if (t->stats.min <= low + margin)
        at_ends += t->bins[0];
    if (t->stats.max >= high - margin)
        at_ends += t->bins[TD_SKETCH_BINS - 1];
    return (double)at_ends / (double)t->stats.finite;
}

/* The share of values of tanh or sigmoid at the ends of its range. A sketch counts those in its outer bins.
 * Without one, with y the value scaled to [-1, 1] and s the share of |y| > a: E[y²] <= s + (1 - s) a², which
 * bounds s from below. A sigmoid is known by its name only, as softmax lies between 0 and 1 too. */
static double share_saturated(const struct td_moment *m)
{
    const struct td_run_tensor *t = m->tensor;
    const struct tdbg_stats *s = &t->stats;
    bool sigmoid = strcasestr(t->name, "sigmoid") != NULL;
    double low = sigmoid ? 0 : -1;
    if (s->finite < FEW || s->min < low || s->max > 1 || (!sigmoid && !(s->min < 0 && s->max > 0)))
        return says_nothing;
    if (t->bins && s->max - s->min > 0.9 * (1 - low))
        return share_at_ends(t, low, 1, (1 - low) / TD_SKETCH_BINS);
    double n = (double)s->finite, a = 0.9, scale = 2 / (1 - low);
    double mean = (s->mean - low) * scale - 1, spread = s->std * scale;
    double square = mean * mean + spread * spread * (n - 1) / n;
    return fmax(0, (square - a * a) / (1 - a * a));
}

/* --- Parameters ----------------------------------------------------------------------------------------- */

/* Only what is being trained is expected to change. */
static double rows_unchanged(const struct td_moment *m)
{
    bool trained = m->gradients ? m->series->has_gradient : m->losses;
    return trained ? (double)m->series->unchanged : says_nothing;
}

/* How far the spread of a weight matrix is from what the usual schemes give: from the least of them
 * (uniform over 1/sqrt(fan in), as torch does) to the most (He: sqrt(2 / fan in)). Tables of embeddings have
 * no fan in, and the second half of a low-rank adapter begins at zero on purpose. */
static double factor_off_schemes(const struct td_moment *m)
{
    const struct td_run_tensor *t = m->tensor;
    if (m->series->seen || t->step != 0 || t->ndim != 2 || t->stats.finite < FEW ||
        strcasestr(t->name, "emb") || strcasestr(t->name, "wte") || strcasestr(t->name, "wpe") ||
        strcasestr(t->name, "lora"))
        return says_nothing;
    double wide = (double)(t->shape[0] > t->shape[1] ? t->shape[0] : t->shape[1]);
    double narrow = (double)(t->shape[0] < t->shape[1] ? t->shape[0] : t->shape[1]);
    double least = sqrt(1 / (3 * wide)), most = sqrt(2 / narrow), std = t->stats.std;
    return std > most ? std / most : std < least ? least / std : 1;
}

/* At least: with c the part beside the mean, |a - b|² = n (mean a - mean b)² + |c(a) - c(b)|², and the last
 * term is no less than (|c(a)| - |c(b)|)². */
static double update_ratio(const struct td_moment *m)
{
    const struct tdbg_stats *now = &m->tensor->stats, *before = &m->series->last;
    if (!m->series->seen || m->tensor->ndim < 2 || now->finite < FEW || now->finite != before->finite ||
        !(before->norm > 0))
        return says_nothing;
    double n = (double)now->finite, shift = now->mean - before->mean, spread = now->std - before->std;
    return sqrt(n * shift * shift + (n - 1) * spread * spread) / before->norm;
}

/* --- Scalars -------------------------------------------------------------------------------------------- */

static double not_finite(const struct td_moment *m)
{
    return isfinite(m->scalar->value) ? 0 : 1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The fall from the median of the older half of the window to that of the newer: single spikes do not count.
 */
static double loss_fall(const struct td_moment *m)
{
    const struct td_series *s = m->series;
    double older[TD_RULE_WINDOW], newer[TD_RULE_WINDOW];
    uint64_t steps = (uint64_t)m->steps, half = steps / 2, seen = s->seen + 1;
    if (half == 0 || seen < steps)
        return says_nothing;
    for (uint64_t i = 0; i < steps; i++) {
        double value = s->window[(seen - steps + i) % TD_RULE_WINDOW];
        if (!isfinite(value))
            return says_nothing;
        *(i < half ? &older[i] : &newer[i - half]) = value;
    }
    double before = median(older, half), now = median(newer, steps - half);
    return (before - now) / fmax(fmax(fabs(before), fabs(now)), DBL_MIN);
}

/* --- The table ------------------------------------------------------------------------------------------ */

const struct td_rule td_rules[TD_RULES] = {
    {"nan", "NaN in a tensor", "NaN values", 0, false, false, 1, TD_ROLE_VALUES | TD_ROLE_NUMBERS,
     nan_values},
    {"inf", "infinity in a tensor (masks aside)", "infinite values", 0, false, false, 1,
     TD_ROLE_VALUES | TD_ROLE_NUMBERS, inf_values},
    {"scalar-nan", "a scalar that is NaN or infinite", "not finite", 0, false, false, 1, TD_ROLE_SCALARS,
     not_finite},
    {"near-overflow", "values near the end of float16 or float8", "share of the range", 0.5, false, false, 1,
     TD_ROLE_VALUES, share_of_range},
    {"loss-not-decreasing", "a loss that does not fall", "fall over the window", 1e-3, true, true, 20,
     TD_ROLE_LOSS, loss_fall},
    {"exploding-gradient", "a large gradient", "root mean square", 100, false, false, 1, TD_ROLE_GRADIENT,
     gradient_size},
    {"gradient-jump", "a gradient far above its steps before", "times the usual", 100, false, false, 1,
     TD_ROLE_GRADIENT, gradient_jump},
    {"vanishing-gradient", "a gradient of next to nothing", "root mean square", 1e-7, true, false, 3,
     TD_ROLE_GRADIENT, gradient_size},
    {"dead-relu", "an activation that is nearly all zeros", "share of zeros", 0.95, false, false, 1,
     TD_ROLE_ACTIVATION, share_of_zeros},
    {"saturated-activation", "tanh or sigmoid at the ends of its range", "share at the ends", 0.5, false,
     false, 1, TD_ROLE_ACTIVATION, share_saturated},
    {"unchanged-tensor", "a trained parameter that stays the same", "rows without change", 3, false, false, 1,
     TD_ROLE_PARAMETER, rows_unchanged},
    {"poor-initialisation", "a weight matrix whose spread fits no scheme", "factor beside the schemes", 10,
     false, false, 1, TD_ROLE_PARAMETER, factor_off_schemes},
    {"update-ratio", "a parameter that changes too much in one step", "change against the norm, at least",
     0.1, false, false, 1, TD_ROLE_PARAMETER, update_ratio},
};

/* --- Settings ------------------------------------------------------------------------------------------- */

void td_rules_default(struct td_rule_setting settings[TD_RULES])
{
    for (size_t i = 0; i < TD_RULES; i++)
        settings[i] =
            (struct td_rule_setting){.threshold = td_rules[i].threshold, .steps = td_rules[i].steps};
}

static tdbg_status find_rule(const char *name, size_t length, size_t *out, struct tdbg_error *error)
{
    for (size_t i = 0; i < TD_RULES; i++)
        if (strlen(td_rules[i].name) == length && strncmp(td_rules[i].name, name, length) == 0) {
            *out = i;
            return TDBG_OK;
        }
    return td_fail(error, TDBG_MISUSE, "no rule '%.*s'", (int)length, name);
}

tdbg_status td_rules_set(struct td_rule_setting settings[TD_RULES], const char *text,
                         struct tdbg_error *error)
{
    static const char suffix[] = ".steps";
    const char *equals = strchr(text, '=');
    if (!equals)
        return td_fail(error, TDBG_MISUSE, "'%s' is not RULE=VALUE", text);
    size_t length = (size_t)(equals - text), rule = 0, tail = sizeof suffix - 1;
    bool steps = length > tail && strncmp(equals - tail, suffix, tail) == 0;
    TD_TRY(find_rule(text, steps ? length - tail : length, &rule, error));
    char *end = NULL;
    double value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || isnan(value))
        return td_fail(error, TDBG_MISUSE, "'%s' is no number", equals + 1);
    if (!steps) {
        settings[rule].threshold = value;
        return TDBG_OK;
    }
    if (!(value >= (td_rules[rule].window ? 2 : 1) && value <= TD_RULE_WINDOW) || value != floor(value))
        return td_fail(error, TDBG_MISUSE, "%s.steps takes %d to %d", td_rules[rule].name,
                       td_rules[rule].window ? 2 : 1, TD_RULE_WINDOW);
    settings[rule].steps = (int64_t)value;
    return TDBG_OK;
}

tdbg_status td_rules_disable(struct td_rule_setting settings[TD_RULES], const char *name,
                             struct tdbg_error *error)
{
    size_t rule = 0;
    TD_TRY(find_rule(name, strlen(name), &rule, error));
    settings[rule].disabled = true;
    return TDBG_OK;
}
