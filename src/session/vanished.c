/* vanished.c: see vanished.h. */
#include "session/vanished.h"

#include "compare/name/name.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BIAS[] = ".bias.grad", WEIGHT[] = ".weight.grad";

/* How much of the name, without a file's extension, stands before `ending`; 0: it does not end so. */
static size_t stem_before(const char *name, const char *ending)
{
    struct td_name parts = td_name_split(name);
    size_t length = parts.key ? strlen(name) : parts.stem, n = strlen(ending);
    return length > n && strncmp(name + length - n, ending, n) == 0 ? length - n : 0;
}

/* The gradient of a weight on which both sides agree, and how much of its name is that of the module. */
struct weight {
    const struct td_pair *pair;
    size_t stem;
};

static int compare_modules(const void *x, const void *y)
{
    const struct weight *a = x, *b = y;
    return a->stem != b->stem ? (a->stem > b->stem) - (a->stem < b->stem)
                              : strncmp(a->pair->name, b->pair->name, a->stem);
}

/* The weights by their modules. */
static size_t collect_weights(const struct td_diff *diff, struct weight *weights)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->count; i++) {
        const struct td_pair *p = &diff->pairs[i];
        size_t stem = p->a && p->b && p->ruling.verdict <= TD_WITHIN ? stem_before(p->name, WEIGHT) : 0;
        if (stem)
            weights[count++] = (struct weight){p, stem};
    }
    if (count)
        qsort(weights, count, sizeof *weights, compare_modules);
    return count;
}

static void forgive(struct td_pair *p, const struct td_pair *weight)
{
    const struct td_metrics *m = &p->metrics;
    double noise = p->ruling.noise * weight->metrics.a.norm;
    if (m->paired < m->count || !(fmax(m->a.norm, m->b.norm) <= noise))
        return;
    p->ruling.verdict = TD_WITHIN;
    snprintf(p->ruling.reason, sizeof p->ruling.reason,
             "zero but for rounding: norms %.3g and %.3g are below the noise %.3g of the weight's gradient",
             m->a.norm, m->b.norm, noise);
}

tdbg_status td_forgive_vanished(struct td_diff *diff, struct tdbg_error *error)
{
    if (diff->policy.kind != TD_POLICY_NOISE)
        return TDBG_OK;
    struct weight *weights = calloc(diff->count + 1, sizeof *weights);
    if (!weights)
        return td_fail_nomem(error);
    size_t count = collect_weights(diff, weights);
    for (size_t i = 0; i < diff->count; i++) {
        struct td_pair *p = &diff->pairs[i];
        struct weight bias = {p, p->ruling.verdict == TD_DIVERGED ? stem_before(p->name, BIAS) : 0};
        const struct weight *beside =
            bias.stem && count ? bsearch(&bias, weights, count, sizeof *weights, compare_modules) : NULL;
        if (beside)
            forgive(p, beside->pair);
    }
    free(weights);
    return TDBG_OK;
}
