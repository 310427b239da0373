/* between.c: see between.h. Pairs come in the order of execution, and so do the tensors without a partner. A
 * weight is no witness: it agrees wherever it stands, and computes nothing. */
#include "compare/judge/between.h"

static bool is_parameter(const struct td_pair *p)
{
    return (p->a && p->a->parameter) || (p->b && p->b->parameter);
}

void td_between_find(struct td_between *out, const struct td_pair *pairs, const struct td_pair *first,
                     enum td_order_evidence order)
{
    *out = (struct td_between){{0}, {{0}}};
    if (!first || order == TD_ORDER_UNKNOWN || is_parameter(first))
        return;
    const struct td_pair *begin = first;
    while (begin > pairs && (begin[-1].outcome.ruling.verdict > TD_WITHIN || is_parameter(&begin[-1])))
        begin--;
    for (const struct td_pair *p = begin; p < first; p++) {
        bool in_b = p->outcome.ruling.verdict == TD_ONLY_B;
        if (is_parameter(p) || (p->outcome.ruling.verdict != TD_ONLY_A && !in_b))
            continue;
        size_t n = out->count[in_b]++;
        if (n < TD_BETWEEN_NAMES)
            out->names[in_b][n] = p->name;
    }
}
