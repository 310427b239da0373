/* joining.c: pairs of items, from the partners of templates. See hearing.h.
 *
 * A pair of templates is a pair in every layer that both have. What single items show comes behind that: a
 * first or last layer that is called otherwise, what goes into the first layer, other names, one name for two
 * widths.
 */
#include "compare/match/hearing.h"

/* --- pairs of items --------------------------------------------------------------------------------------
 */

static double sureness(const struct td_kinship *k)
{
    if (k->same_name)
        return 1;
    if (k->equal > 0)
        return k->equal + k->words >= 5 ? 0.999 : k->equal + k->words >= 4 ? 0.97 : 0.85;
    if (k->likeness == 0 && k->words < 1)
        return 0.5;
    return k->score >= 2.5 ? 0.97 : k->score >= 1.5 ? 0.8 : 0.6;
}

static const char *tell(const struct td_kinship *k, struct td_arena *arena)
{
    const char *names = k->words >= 1 ? ", and the names mean the same" : "";
    if (k->equal > 0 && k->layer >= 0)
        return td_arena_printf(arena, "values agree in layer %lld%s", (long long)k->layer, names);
    if (k->equal > 0)
        return td_arena_printf(arena, "values agree%s", names);
    if (k->same_name)
        return NULL;
    return td_arena_printf(arena, "values correlate by %.2f where they are nearest%s", k->likeness, names);
}

static enum td_strategy strategy_of(const struct td_kinship *k)
{
    if (k->same_name)
        return TD_MATCH_EXACT;
    return k->words >= 1 ? TD_MATCH_FUZZY : TD_MATCH_VALUE;
}

static void pair_items(struct td_hearing *h, const struct td_scheme *a, const struct td_scheme *b)
{
    struct td_matching *m = h->m;
    struct td_kinship k = td_kinship_of(&h->kin, a, b);
    const char *evidence = tell(&k, m->kept);
    for (size_t i = 0; i < a->count; i++) {
        int64_t layer = h->schemes[0].side->items[a->items[i]].layer;
        size_t other = a->layered && b->layered
                           ? td_scheme_at(&h->schemes[1], b, layer + m->layer_offset + k.shift)
                           : b->items[0];
        if (other == SIZE_MAX || m->paired[TD_SIDE_B][other] || m->paired[TD_SIDE_A][a->items[i]])
            continue;
        td_pair(m, a->items[i], other, strategy_of(&k));
        struct td_match *match = &m->pairs[m->count - 1];
        match->sure = sureness(&k);
        match->evidence = evidence;
        match->template_a = a->layered ? a->name : NULL;
        match->template_b = b->layered ? b->name : NULL;
    }
}

/* Templates that are each other's partners. Fused ones are paired already. */
static void pair_partners(struct td_hearing *h)
{
    for (size_t k = 0; k < h->schemes[0].count; k++) {
        const struct td_scheme *a = &h->schemes[0].list[k];
        if (a->partner != TD_NO_SCHEME && !h->m->paired[TD_SIDE_A][a->items[0]] &&
            h->schemes[1].list[a->partner].partner == k)
            pair_items(h, a, &h->schemes[1].list[a->partner]);
    }
}

/* --- layers that are called otherwise ---------------------------------------------------------------------
 */

/* What is left of a template whose partner lacks layers: engines call the first or the last layer's
 * otherwise. The best other template that has just those. */
static void complete(struct td_hearing *h, enum td_which which)
{
    struct td_matching *m = h->m;
    struct td_schemes *left = &h->schemes[which], *other = &h->schemes[!which];
    for (size_t k = 0; k < left->count; k++) {
        struct td_scheme *rest = &left->list[k];
        const struct td_scheme *best = NULL;
        double most = TD_LEAST_POINTS;
        if (rest->partner != TD_NO_SCHEME || rest->covered || !rest->layered)
            continue;
        for (size_t j = 0; j < other->count; j++) {
            const struct td_scheme *o = &other->list[j];
            if (o->partner == TD_NO_SCHEME || !o->layered ||
                td_scheme_width(left, rest) != td_scheme_width(other, o))
                continue;
            struct td_kinship kinship =
                which == TD_SIDE_A ? td_kinship_of(&h->kin, rest, o) : td_kinship_of(&h->kin, o, rest);
            size_t there = td_scheme_at(other, o,
                                        left->side->items[rest->items[0]].layer +
                                            (which == TD_SIDE_A ? 1 : -1) * m->layer_offset);
            bool gap = there != SIZE_MAX && !m->paired[!which][there];
            if (gap && kinship.score > most) {
                most = kinship.score;
                best = o;
            }
        }
        if (best) {
            rest->partner = (size_t)(best - other->list);
            if (which == TD_SIDE_A)
                pair_items(h, rest, best);
            else
                pair_items(h, best, rest);
        }
    }
}

/* The stream that goes into the first layer, and the last tensor that runs before the layers. */
static bool are_entry(const struct td_hearing *h, enum td_which which, size_t scheme, size_t at, size_t other)
{
    const struct td_schemes *left = &h->schemes[which], *right = &h->schemes[!which];
    const struct td_scheme *before = &right->list[other];
    if (left->list[scheme].role != TD_ROLE_STREAM || at != 0 ||
        td_scheme_width(left, &left->list[scheme]) != td_scheme_width(right, before) ||
        before->order > right->first_layered)
        return false;
    for (size_t k = 0; k < right->count; k++)
        if (!right->list[k].layered && right->list[k].order > before->order &&
            right->list[k].order < right->first_layered && !td_twins_are(right, k, other))
            return false;
    return true;
}

/* The first layer's input is what runs before the layers, the last one's output what runs behind them: items
 * that a template has beyond its partner go with templates that have no layers. */
static void pair_ends(struct td_hearing *h, enum td_which which)
{
    struct td_matching *m = h->m;
    struct td_schemes *left = &h->schemes[which], *other = &h->schemes[!which];
    for (size_t k = 0; k < left->count; k++)
        for (size_t i = 0; left->list[k].layered && i < left->list[k].count; i++) {
            size_t item = left->list[k].items[i];
            for (size_t j = 0; j < other->count && !m->paired[which][item] && left->readings[item]; j++) {
                struct td_likeness l;
                double tolerance;
                size_t there = other->list[j].items[0];
                bool in_a = which == TD_SIDE_A;
                if (other->list[j].layered || m->paired[!which][there] ||
                    !td_kin_compare(&h->kin, in_a ? item : there, in_a ? there : item, &l, &tolerance))
                    continue;
                bool equal = l.error <= tolerance, entry = h->kin.clean < 0 && are_entry(h, which, k, i, j);
                if (!equal && !entry)
                    continue;
                td_pair(m, in_a ? item : there, in_a ? there : item, TD_MATCH_VALUE);
                m->pairs[m->count - 1].sure = equal ? 0.99 : 0.6;
                m->pairs[m->count - 1].evidence =
                    equal ? "values agree" : "what goes into the first layer, and what came before it";
            }
        }
}

static bool is_of_other_width(const struct td_hearing *h, const struct td_scheme *a, size_t item,
                              size_t other)
{
    const struct td_reading *x = h->schemes[0].readings[item], *y = h->schemes[1].readings[other];
    if (x && y && x->count && y->count)
        return x->prints[0].width != y->prints[0].width;
    const struct td_tensor *s = h->schemes[0].side->items[item].parts[0],
                           *t = h->schemes[1].side->items[other].parts[0];
    return a->partner == TD_NO_SCHEME && s->count != t->count;
}

/* One name on both sides, and two widths: not the same tensor, or one that was cut or padded. Who gave them
 * one name shall be told. */
static tdbg_status pair_namesakes(struct td_hearing *h, struct tdbg_error *error)
{
    struct td_keys keys;
    TD_TRY(td_keys_init(&keys, h->m, TD_SIDE_B, td_bare_name, error));
    for (size_t k = 0; k < h->schemes[0].count; k++) {
        const struct td_scheme *a = &h->schemes[0].list[k];
        for (size_t i = 0; i < a->count; i++) {
            const char *key = td_bare_name(h->m, TD_SIDE_A, a->items[i]);
            size_t first,
                n = key && !h->m->paired[TD_SIDE_A][a->items[i]] ? td_keys_find(&keys, key, &first) : 0;
            if (!key)
                return td_fail_nomem(error);
            size_t other = n == 1 ? keys.list[first].index : SIZE_MAX;
            if (other == SIZE_MAX || h->m->paired[TD_SIDE_B][other] ||
                !is_of_other_width(h, a, a->items[i], other))
                continue;
            td_pair(h->m, a->items[i], other, TD_MATCH_EXACT);
        }
    }
    return TDBG_OK;
}

tdbg_status td_hearing_join(struct td_hearing *h, struct tdbg_error *error)
{
    pair_partners(h);
    complete(h, TD_SIDE_A);
    complete(h, TD_SIDE_B);
    TD_TRY(td_twins_attach(h->m, h->schemes, h->twins, error));
    pair_ends(h, TD_SIDE_A);
    pair_ends(h, TD_SIDE_B);
    return pair_namesakes(h, error);
}
