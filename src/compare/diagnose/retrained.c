/* retrained.c: see retrained.h.
 *
 * Two trainings of one architecture differ in every tensor, each in its own values and by about as much as
 * the others: trained further they correlate by 0.9 to 0.97, from another start not at all. A mistake of a
 * conversion is in some tensors and leaves others alone, or follows a rule (a factor, an order) that the
 * diagnosis names. So: nearly all weights differ, hardly any in a way that is fully explained, and their
 * correlations are of one kind. The few that correlate far less than the rest are told by name: they are a
 * mistake besides.
 */
#include "compare/diagnose/retrained.h"

#include <math.h>
#include <stdlib.h>

/* Fewer elements correlate by chance, and fewer tensors are no model. */
enum { LEAST_ELEMENTS = 64, LEAST_WEIGHTS = 4 };

/* Of the weights, so many changed: some are frozen in training. Of what was compared, so much is weights. */
static const double NEARLY_ALL = 0.9, MOSTLY_WEIGHTS = 0.9;

/* Of those that were diagnosed, more than so many are explained by a rule: that is no training. */
static const double FEW = 0.2;

/* Median correlation from which on the two have a common origin. Measured: 0.9 to 0.97. */
static const double COMMON = 0.25;

/* A weight correlates far less than the others: by so much, and by so many times their usual distance. */
static const double FAR_LESS = 0.25, TIMES = 5;

/* More odd ones than this share are no exception. */
static const double MOST_ODD = 0.34;

/* Without a common origin, at least the sizes of most weights are alike. */
static const double LIKE_SIZE = 5;

/* Correlation from which on the difference is no training but rounding or a factor. */
static const double THE_SAME = 0.9999;

struct weight {
    double correlation;
    const struct td_pair *pair;
};

static double correlation_of(const struct td_metrics *m)
{
    double n = (double)m->paired;
    double a = m->a.norm * m->a.norm - n * m->a.mean * m->a.mean;
    double b = m->b.norm * m->b.norm - n * m->b.mean * m->b.mean;
    return a > 0 && b > 0 ? (m->dot - n * m->a.mean * m->b.mean) / sqrt(a * b) : 0;
}

static bool is_stored(const struct td_pair *p)
{
    return p->a->parameter || p->b->parameter;
}

static bool tells(const struct td_pair *p)
{
    const struct td_metrics *m = &p->outcome.metrics;
    return m->paired == m->count && m->count >= LEAST_ELEMENTS && m->a.norm > 0 && m->b.norm > 0 &&
           m->a.min < m->a.max && m->b.min < m->b.max;
}

static int by_correlation(const void *x, const void *y)
{
    const struct weight *a = x, *b = y;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return (a->pair > b->pair) - (a->pair < b->pair);
}

/* What the others say. */
struct tally {
    size_t measured, stored, weights, changed, diagnosed, explained, alike;
};

static void count_weights(struct tally *t, struct weight *list, const struct td_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_pair *p = &pairs[i];
        if (!p->a || !p->b || !td_pair_measured(p))
            continue;
        t->measured++;
        t->stored += is_stored(p);
        if (!is_stored(p) || !tells(p))
            continue;
        t->weights++;
        if (p->outcome.ruling.verdict != TD_DIVERGED)
            continue;
        const struct td_diagnosis *d = p->outcome.diagnosis;
        double ratio = p->outcome.metrics.b.norm / p->outcome.metrics.a.norm;
        t->diagnosed += d != NULL;
        t->explained += d && d->count > 0 && d->list[0].complete;
        t->alike += ratio < LIKE_SIZE && ratio > 1 / LIKE_SIZE;
        list[t->changed++] = (struct weight){correlation_of(&p->outcome.metrics), p};
    }
}

/* The usual distance from the middle one. `list` is sorted. */
static double usual_distance(const struct weight *list, size_t n)
{
    double middle = list[n / 2].correlation;
    size_t low = 0, high = n - 1; /* take the farthest from either end until half is left */
    for (size_t left = n; left > n / 2 + 1; left--)
        if (middle - list[low].correlation > list[high].correlation - middle)
            low++;
        else
            high--;
    return fmax(middle - list[low].correlation, list[high].correlation - middle);
}

static bool is_retraining(const struct tally *t)
{
    return t->weights >= LEAST_WEIGHTS && (double)t->stored >= MOSTLY_WEIGHTS * (double)t->measured &&
           (double)t->changed >= NEARLY_ALL * (double)t->weights &&
           (double)t->explained <= FEW * (double)t->diagnosed;
}

/* Biases are small next to what training changes; matrices all change by about as much. */
static bool is_matrix(const struct td_pair *p)
{
    return p->a->parts[0]->shape.ndim >= 2;
}

static void add_odd(struct td_retrained *r, const struct td_pair *p)
{
    if (r->odd_count < TD_MOST_ODD)
        r->odd[r->odd_count] = p;
    r->odd_count++;
}

bool td_retrained_find(struct td_retrained *out, const struct td_pair *pairs, size_t count)
{
    struct tally t = {0};
    struct weight *list = malloc((count + 1) * sizeof *list);
    if (!list)
        return false;
    count_weights(&t, list, pairs, count);
    bool yes = is_retraining(&t);
    if (yes) {
        struct td_retrained r = {.weights = t.weights, .changed = t.changed};
        qsort(list, t.changed, sizeof *list, by_correlation);
        r.middle = list[t.changed / 2].correlation;
        r.further = r.middle >= COMMON;
        double far = fmax(FAR_LESS, TIMES * usual_distance(list, t.changed));
        r.low = r.middle;
        for (size_t i = 0; i < t.changed; i++)
            if (r.further && is_matrix(list[i].pair) && list[i].correlation < r.middle - far)
                add_odd(&r, list[i].pair);
            else
                r.low = fmin(r.low, list[i].correlation);
        r.high = list[t.changed - 1].correlation;
        yes = r.middle < THE_SAME && (double)r.odd_count <= MOST_ODD * (double)t.changed &&
              (r.further || (double)t.alike >= NEARLY_ALL * (double)t.changed);
        if (yes)
            *out = r;
    }
    free(list);
    return yes;
}
