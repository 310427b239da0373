/* judge.c: see judge.h. */
#include "compare/judge/judge.h"

#include "compare/judge/vanished.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct td_ruling td_ruling_failed(const char *why)
{
    struct td_ruling ruling = {.verdict = TD_ERROR};
    snprintf(ruling.reason, sizeof ruling.reason, "%.190s", why);
    return ruling;
}

static struct td_ruling one_sided(const struct td_match *match)
{
    struct td_ruling ruling = {.verdict = match->a ? TD_ONLY_A : TD_ONLY_B};
    snprintf(ruling.reason, sizeof ruling.reason, "no partner in %c", match->a ? 'B' : 'A');
    return ruling;
}

/* No layout fits the shapes of the two. */
static struct td_ruling refuse_shapes(const struct td_match *match)
{
    char text[2][80] = {"", ""};
    const struct td_item *items[] = {match->a, match->b};
    int64_t counts[2];
    for (int s = 0; s < 2; s++) {
        const struct td_tensor *t = items[s]->parts[0];
        size_t at = (size_t)snprintf(text[s], sizeof text[s], "[");
        for (int i = 0; i < t->shape.ndim && at + 24 < sizeof text[s]; i++)
            at += (size_t)snprintf(text[s] + at, sizeof text[s] - at, "%s%" PRId64, i ? ", " : "",
                                   t->shape.size[i]);
        snprintf(text[s] + at, sizeof text[s] - at, "]");
        counts[s] = t->count * items[s]->part_count;
    }
    struct td_ruling ruling = {.verdict = TD_ERROR};
    snprintf(ruling.reason, sizeof ruling.reason,
             "shapes %s and %s do not line up (%" PRId64 " and %" PRId64 " elements)", text[0], text[1],
             counts[0], counts[1]);
    return ruling;
}

struct td_ruling td_judge_values(const struct td_policy *policy, const struct td_match *match,
                                 const struct td_fitting *fitting)
{
    const struct td_measurement *m = &fitting->measurement;
    if (!match->a || !match->b)
        return one_sided(match);
    if (m->failure)
        return td_ruling_failed(m->failure);
    if (!fitting->layout)
        return refuse_shapes(match);
    struct td_ruling ruling;
    bool needs_count;
    td_rule(policy, &m->circumstances, &m->metrics, &ruling, &needs_count);
    if (needs_count)
        td_ruling_count(&ruling, m->beyond, m->metrics.count);
    return ruling;
}

/* Padding and the shares of other ranks are left out, and said. What diverged already needs no other reason.
 */
static void weigh_remnant(struct td_judgement *j, const struct td_remnant *r, bool in_b)
{
    if (r->cut == TD_CUT_NOTHING || (r->cut == TD_CUT_MISSING && j->ruling.verdict > TD_WITHIN))
        return;
    j->cut = r->cut;
    if (r->cut != TD_CUT_MISSING)
        return;
    j->ruling.verdict = TD_DIVERGED;
    snprintf(j->ruling.reason, sizeof j->ruling.reason,
             "%c has only %" PRId64 " of %" PRId64
             " of axis %d; they agree, but what is missing is no padding",
             in_b ? 'A' : 'B', r->kept, r->whole, r->axis);
}

static void weigh_vanished(struct td_ruling *ruling, const struct td_metrics *m, double weight_norm)
{
    double noise = ruling->noise * weight_norm;
    if (ruling->verdict != TD_DIVERGED || m->paired < m->count || !(fmax(m->a.norm, m->b.norm) <= noise))
        return;
    ruling->verdict = TD_WITHIN;
    snprintf(ruling->reason, sizeof ruling->reason,
             "zero but for rounding: norms %.3g and %.3g are below the noise %.3g of the weight's gradient",
             m->a.norm, m->b.norm, noise);
}

struct td_judgement td_judge(const struct td_policy *policy, const struct td_match *match,
                             const struct td_fitting *fitting, double weight_norm)
{
    struct td_judgement j = {.ruling = td_judge_values(policy, match, fitting)};
    for (int side = 0; side < 2; side++)
        weigh_remnant(&j, &fitting->remnant[side], side);
    weigh_vanished(&j.ruling, &fitting->measurement.metrics, weight_norm);
    return j;
}

/* Biases come last: what is said of the weights beside them goes into it. */
tdbg_status td_judge_all(struct td_judgement *out, const struct td_policy *policy,
                         const struct td_matches *matches, const struct td_fitting *fittings,
                         struct tdbg_error *error)
{
    struct td_weights weights = {0};
    for (size_t i = 0; i < matches->count; i++)
        if (!td_may_vanish(policy, &matches->pairs[i]))
            out[i] = td_judge(policy, &matches->pairs[i], &fittings[i], NAN);
    TD_TRY(td_weights_find(&weights, policy, matches, fittings, out, error));
    for (size_t i = 0; i < matches->count; i++)
        if (td_may_vanish(policy, &matches->pairs[i]))
            out[i] = td_judge(policy, &matches->pairs[i], &fittings[i],
                              td_weight_norm(&weights, &matches->pairs[i]));
    td_weights_release(&weights);
    return TDBG_OK;
}
