/* origins.c: see origins.h. */
#include "compare/judge/origins.h"

#include "compare/judge/flow.h"

#include <math.h>

/* A stage passes an error on; a softmax or a sum that cancels enlarges it a few times. Beyond that, the stage
 * adds one of its own. */
static const double AMPLIFICATION = 4;

/* A NaN or an infinity may become an error of any size. */
static double size_of_error(const struct td_metrics *m)
{
    bool lost = m->nan_a + m->nan_b + m->inf_a + m->inf_b > 0;
    return lost || !isfinite(m->rel_l2) ? INFINITY : m->rel_l2;
}

/* A NaN that only one side has is no small error, however close the rest is. */
static double size_to_explain(const struct td_metrics *m)
{
    return td_metrics_lost(m) > 0 ? INFINITY : m->rel_l2;
}

/* A tensor that feeds this one diverged, by enough to explain it. In a run that went wrong the first that is
 * asked mostly does: the search must not take the square of a long run's length. */
static bool inherits(const struct td_pair *pairs, size_t count, const struct td_pair *p)
{
    for (size_t j = 0; j < count && !p->a->parameter; j++) {
        const struct td_pair *q = &pairs[j];
        if (q == p || q->outcome.ruling.verdict != TD_DIVERGED)
            continue;
        double fed = size_of_error(&q->outcome.metrics);
        if (fed > 0 && size_to_explain(&p->outcome.metrics) <= AMPLIFICATION * fed && td_feeds(q->a, p->a))
            return true;
    }
    return false;
}

struct td_pair *td_origins_find(struct td_pair *pairs, size_t count)
{
    struct td_pair *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct td_pair *p = &pairs[i];
        if (p->outcome.ruling.verdict != TD_DIVERGED)
            continue;
        p->outcome.origin = inherits(pairs, count, p) ? TD_INHERITED : TD_BORN;
        if (!first)
            first = p;
    }
    return first;
}
