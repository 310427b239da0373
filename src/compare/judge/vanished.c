/* vanished.c: see vanished.h. */
#include "compare/judge/vanished.h"

#include "compare/name/name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char BIAS[] = ".bias.grad", WEIGHT[] = ".weight.grad";

/* The gradient of a weight, and how much of its name is that of the module. */
struct td_weight {
    const char *name;
    size_t stem;
    double norm;
};

/* How much of the name, without a file's extension, stands before `ending`; 0: it does not end so. */
static size_t stem_before(const char *name, const char *ending)
{
    struct td_name parts = td_name_split(name);
    size_t length = parts.key ? strlen(name) : parts.stem, n = strlen(ending);
    return length > n && strncmp(name + length - n, ending, n) == 0 ? length - n : 0;
}

static const char *name_of(const struct td_match *match)
{
    return match->a ? match->a->name : match->b->name;
}

bool td_may_vanish(const struct td_policy *policy, const struct td_match *match)
{
    return policy->kind == TD_POLICY_NOISE && stem_before(name_of(match), BIAS) > 0;
}

static int compare_modules(const void *x, const void *y)
{
    const struct td_weight *a = x, *b = y;
    return a->stem != b->stem ? (a->stem > b->stem) - (a->stem < b->stem)
                              : strncmp(a->name, b->name, a->stem);
}

tdbg_status td_weights_find(struct td_weights *out, const struct td_policy *policy,
                            const struct td_matches *matches, const struct td_fitting *fittings,
                            const struct td_judgement *judgements, struct tdbg_error *error)
{
    struct td_weights weights = {0};
    if (policy->kind == TD_POLICY_NOISE) {
        weights.list = calloc(matches->count + 1, sizeof *weights.list);
        if (!weights.list)
            return td_fail_nomem(error);
    }
    for (size_t i = 0; weights.list && i < matches->count; i++) {
        const char *name = name_of(&matches->pairs[i]);
        size_t stem = stem_before(name, WEIGHT);
        if (stem && judgements[i].ruling.verdict <= TD_WITHIN)
            weights.list[weights.count++] =
                (struct td_weight){name, stem, fittings[i].measurement.metrics.a.norm};
    }
    if (weights.count)
        qsort(weights.list, weights.count, sizeof *weights.list, compare_modules);
    *out = weights;
    return TDBG_OK;
}

void td_weights_release(struct td_weights *weights)
{
    free(weights->list);
    *weights = (struct td_weights){0};
}

double td_weight_norm(const struct td_weights *weights, const struct td_match *bias)
{
    const struct td_weight module = {.name = name_of(bias), .stem = stem_before(name_of(bias), BIAS)};
    const struct td_weight *beside = weights->count ? bsearch(&module, weights->list, weights->count,
                                                              sizeof *weights->list, compare_modules)
                                                    : NULL;
    return beside ? beside->norm : NAN;
}
