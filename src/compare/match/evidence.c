/* evidence.c: computed values are paired by all that speaks for it at once: values, names, shapes.
 *
 *     sure      what agrees in a layer, or has one name on both sides: the assignment with the most points
 *     fused     one tensor of several parts, by what adds up
 *     covered   what holds the same values as something paired is another name of that
 *     alike     the rest: the assignment by resemblance in the first layer, and by words
 *
 * Templates are paired, and so all layers at once. Once something agrees, the layers before it are known to
 * be right, and what differs in them is no pair after all (kinship.h: flow); the assignment is made anew
 * then. What is left alone here has no counterpart as far as anybody can tell, and no later strategy guesses
 * again.
 */
#include "compare/match/assign.h"
#include "compare/match/fusion.h"
#include "compare/match/kinship.h"
#include "compare/match/twins.h"

#include <math.h>
#include <stdlib.h>

/* A pair below this is none; and one that is hardly better than the next is left alone. */
static const double LEAST = 0.9, MARGIN = 0.15;

/* Agreement that no name contradicts. */
static const double LEAST_EQUAL = 2;

/* Pairs of templates that are weighed with all their values: a second or two. */
#define MOST_WEIGHED (INT64_C(1) << 21)

/* A mistake may move what follows by as little as rounding does: what proves that there is none is closer. */
static const double RIGHT = 0.3;

enum phase { SURE, ALIKE, LEFT };

/* What is left by elimination: one of a width on either side, whatever little speaks for it. */
static const double LEAST_LEFT = 0.1;

/* Templates of one width: only these can be pairs. */
struct group {
    size_t *list[2], count[2];
};

struct hearing {
    struct td_matching *m;
    struct td_schemes *schemes;
    struct td_kin kin;
    struct td_twins twins[2];
    struct group group;
    double *scores;
};

/* --- who is heard together ------------------------------------------------------------------------------ */

struct sized {
    int64_t width;
    size_t scheme;
};

static int by_width(const void *x, const void *y)
{
    const struct sized *a = x, *b = y;
    int order = td_compare_numbers(a->width, b->width);
    return order ? order : (a->scheme > b->scheme) - (a->scheme < b->scheme);
}

static int64_t width_of(const struct td_schemes *s, const struct td_scheme *scheme)
{
    for (size_t i = 0; i < scheme->count; i++) {
        const struct td_reading *r = s->readings[scheme->items[i]];
        if (r && r->count)
            return r->prints[0].width;
    }
    return 0;
}

static struct sized *sort_by_width(const struct td_schemes *s, struct td_arena *arena)
{
    struct sized *list = td_arena_array(arena, s->count + 1, sizeof *list);
    for (size_t k = 0; list && k < s->count; k++)
        list[k] = (struct sized){width_of(s, &s->list[k]), k};
    if (list && s->count)
        qsort(list, s->count, sizeof *list, by_width);
    return list;
}

static size_t run_length(const struct sized *list, size_t count, size_t from)
{
    size_t n = 1;
    while (from + n < count && list[from + n].width == list[from].width)
        n++;
    return n;
}

/* --- one assignment ------------------------------------------------------------------------------------- */

static bool is_heard(const struct td_scheme *s)
{
    return s->partner == TD_NO_SCHEME && !s->covered;
}

static double score_in(const struct td_kinship *k, enum phase phase)
{
    bool sure = k->same_name || k->same_role || (k->equal > 0 && k->equal + k->words >= LEAST_EQUAL);
    if ((phase == SURE && !sure) || (phase == LEFT && k->words < 0))
        return -INFINITY;
    return k->score;
}

static bool same_tensor(const struct td_schemes *s, size_t x, size_t y)
{
    return x == y || td_twins_are(s, x, y);
}

/* By how much the pair beats the next that is another tensor. */
static double margin_of(const struct hearing *h, size_t row, size_t column)
{
    const struct group *g = &h->group;
    double mine = h->scores[row * g->count[1] + column], next = 0;
    for (size_t j = 0; j < g->count[1]; j++)
        if (h->scores[row * g->count[1] + j] > next && j != column &&
            !same_tensor(&h->schemes[1], g->list[1][column], g->list[1][j]))
            next = h->scores[row * g->count[1] + j];
    for (size_t i = 0; i < g->count[0]; i++)
        if (h->scores[i * g->count[1] + column] > next && i != row &&
            !same_tensor(&h->schemes[0], g->list[0][row], g->list[0][i]))
            next = h->scores[i * g->count[1] + column];
    return mine - next;
}

static void fill_scores(struct hearing *h, enum phase phase)
{
    const struct group *g = &h->group;
    for (size_t i = 0; i < g->count[0]; i++)
        for (size_t j = 0; j < g->count[1]; j++) {
            struct td_kinship k = td_kinship_of(&h->kin, &h->schemes[0].list[g->list[0][i]],
                                                &h->schemes[1].list[g->list[1][j]]);
            h->scores[i * g->count[1] + j] = score_in(&k, phase);
        }
}

/* One tensor on either side, whatever names it has. */
static bool is_one_left(const struct hearing *h)
{
    for (int s = 0; s < 2; s++)
        for (size_t i = 1; i < h->group.count[s]; i++)
            if (!td_twins_are(&h->schemes[s], h->group.list[s][0], h->group.list[s][i]))
                return false;
    return true;
}

static tdbg_status assign_group(struct hearing *h, enum phase phase, struct tdbg_error *error)
{
    const struct group *g = &h->group;
    size_t cells = g->count[0] * g->count[1];
    if (cells == 0 || (int64_t)cells > MOST_WEIGHED || (phase == LEFT && !is_one_left(h)))
        return TDBG_OK;
    h->scores = malloc(cells * sizeof *h->scores);
    size_t *partner = malloc(g->count[0] * sizeof *partner);
    tdbg_status status = h->scores && partner ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        fill_scores(h, phase);
        if (!td_assign(h->scores, g->count[0], g->count[1], phase == LEFT ? LEAST_LEFT : LEAST, partner))
            status = td_fail_nomem(error);
    }
    for (size_t i = 0; status == TDBG_OK && i < g->count[0]; i++) {
        if (partner[i] == TD_ASSIGNED_TO_NOBODY || (phase == ALIKE && margin_of(h, i, partner[i]) < MARGIN))
            continue;
        struct td_scheme *a = &h->schemes[0].list[g->list[0][i]];
        struct td_scheme *b = &h->schemes[1].list[g->list[1][partner[i]]];
        a->partner = g->list[1][partner[i]];
        b->partner = g->list[0][i];
        a->shift = td_kinship_of(&h->kin, a, b).shift;
    }
    free(partner);
    free(h->scores);
    h->scores = NULL;
    return status;
}

/* Templates of both sides with one width after the other. */
static tdbg_status assign_all(struct hearing *h, enum phase phase, struct tdbg_error *error)
{
    struct td_arena *arena = &h->m->scratch;
    const struct sized *a = sort_by_width(&h->schemes[0], arena), *b = sort_by_width(&h->schemes[1], arena);
    size_t na, nb, counts[] = {h->schemes[0].count, h->schemes[1].count};
    h->group.list[0] = td_arena_array(arena, counts[0] + 1, sizeof *h->group.list[0]);
    h->group.list[1] = td_arena_array(arena, counts[1] + 1, sizeof *h->group.list[1]);
    if (!a || !b || !h->group.list[0] || !h->group.list[1])
        return td_fail_nomem(error);
    for (size_t i = 0, j = 0; i < counts[0] && j < counts[1];) {
        int order = td_compare_numbers(a[i].width, b[j].width);
        na = order <= 0 ? run_length(a, counts[0], i) : 0;
        nb = order >= 0 ? run_length(b, counts[1], j) : 0;
        h->group.count[0] = h->group.count[1] = 0;
        for (size_t k = i; order == 0 && k < i + na; k++)
            if (is_heard(&h->schemes[0].list[a[k].scheme]))
                h->group.list[0][h->group.count[0]++] = a[k].scheme;
        for (size_t k = j; order == 0 && k < j + nb; k++)
            if (is_heard(&h->schemes[1].list[b[k].scheme]))
                h->group.list[1][h->group.count[1]++] = b[k].scheme;
        if (td_job_cancelled(h->m->work.job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        TD_TRY(assign_group(h, phase, error));
        i += na;
        j += nb;
    }
    return TDBG_OK;
}

/* --- layers that are right ------------------------------------------------------------------------------ */

/* The same values in another layer: a table of positions, a mask. It does not depend on the layers before. */
static bool is_fixed(const struct td_schemes *s, const struct td_scheme *scheme, size_t item)
{
    for (size_t i = 0; i < scheme->count; i++) {
        const struct td_reading *x = s->readings[item], *y = s->readings[scheme->items[i]];
        if (scheme->items[i] != item && x && y && x->count && y->count &&
            td_print_equal(&x->prints[0], &y->prints[0]))
            return true;
    }
    return false;
}

/* Whether any of B's has the values of an item of A in the same layer. */
static bool agrees_with_any(const struct hearing *h, const struct td_scheme *a, size_t item)
{
    int64_t layer = h->schemes[0].side->items[item].layer, width = width_of(&h->schemes[0], a);
    for (size_t k = 0; k < h->schemes[1].count; k++) {
        const struct td_scheme *b = &h->schemes[1].list[k];
        if (b->layered != a->layered || width_of(&h->schemes[1], b) != width)
            continue;
        size_t other = td_scheme_at(&h->schemes[1], b, layer + h->m->layer_offset);
        struct td_likeness l;
        double tolerance;
        if (other != SIZE_MAX && td_kin_compare(&h->kin, item, other, &l, &tolerance) &&
            l.error <= RIGHT * tolerance)
            return true;
    }
    return false;
}

/* What agrees behind a layer was computed from it. Returns the layer up to which all is right. */
static int64_t find_clean(const struct hearing *h)
{
    const struct td_schemes *a = &h->schemes[0];
    int64_t clean = -1, last = -1;
    for (size_t i = 0; i < a->side->count; i++)
        last = a->side->items[i].layer > last ? a->side->items[i].layer : last;
    for (size_t k = 0; k < a->count; k++)
        for (size_t i = 0; i < a->list[k].count; i++) {
            const struct td_scheme *s = &a->list[k];
            bool behind = !s->layered && s->order > a->last_layered &&
                          (s->role == TD_ROLE_HEAD || s->role == TD_ROLE_NORM_FINAL);
            int64_t right = behind ? (s->role == TD_ROLE_HEAD ? INT64_MAX - 1 : last + 1)
                                   : a->side->items[s->items[i]].layer;
            if (right > clean && a->readings[s->items[i]] && !is_fixed(a, s, s->items[i]) &&
                agrees_with_any(h, s, s->items[i]))
                clean = right;
        }
    return clean;
}

static void forget_partners(struct hearing *h)
{
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++)
            h->schemes[s].list[k].partner = TD_NO_SCHEME;
}

static tdbg_status pair_sure(struct hearing *h, struct tdbg_error *error)
{
    TD_TRY(assign_all(h, SURE, error));
    h->kin.clean = find_clean(h);
    if (h->kin.clean < 0)
        return TDBG_OK;
    forget_partners(h);
    return assign_all(h, SURE, error);
}

/* --- other names of what is paired -----------------------------------------------------------------------
 */

/* In B, equal values under two names that mean two stages may be the mistake: the second has a partner of its
 * own waiting in A then. The name of a container says where, and not what. */
static bool waits_for_partner(const struct hearing *h, const struct td_scheme *b)
{
    for (size_t k = 0; !b->container && k < h->schemes[0].count; k++) {
        const struct td_scheme *a = &h->schemes[0].list[k];
        if (is_heard(a) && !a->container && td_roles_meet(a, b) == TD_MEANS_SAME &&
            width_of(&h->schemes[0], a) == width_of(&h->schemes[1], b))
            return true;
    }
    return false;
}

static void cover(struct hearing *h)
{
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++) {
            struct td_scheme *scheme = &h->schemes[s].list[k];
            if (scheme->partner == TD_NO_SCHEME && td_twins_cover(&h->twins[s], k))
                scheme->covered = s == 0 || !waits_for_partner(h, scheme);
        }
}

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

static tdbg_status pair_items(struct hearing *h, const struct td_scheme *a, const struct td_scheme *b,
                              struct tdbg_error *error)
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
    (void)error;
    return TDBG_OK;
}

/* Templates that are each other's partners. Fused ones are paired already. */
static tdbg_status pair_partners(struct hearing *h, struct tdbg_error *error)
{
    for (size_t k = 0; k < h->schemes[0].count; k++) {
        const struct td_scheme *a = &h->schemes[0].list[k];
        if (a->partner != TD_NO_SCHEME && !h->m->paired[TD_SIDE_A][a->items[0]] &&
            h->schemes[1].list[a->partner].partner == k)
            TD_TRY(pair_items(h, a, &h->schemes[1].list[a->partner], error));
    }
    return TDBG_OK;
}

/* --- layers that are called otherwise ---------------------------------------------------------------------
 */

/* What is left of a template whose partner lacks layers: engines call the first or the last layer's
 * otherwise. The best other template that has just those. */
static tdbg_status complete(struct hearing *h, enum td_which which, struct tdbg_error *error)
{
    struct td_matching *m = h->m;
    struct td_schemes *left = &h->schemes[which], *other = &h->schemes[!which];
    for (size_t k = 0; k < left->count; k++) {
        struct td_scheme *rest = &left->list[k];
        const struct td_scheme *best = NULL;
        double most = LEAST;
        if (rest->partner != TD_NO_SCHEME || rest->covered || !rest->layered)
            continue;
        for (size_t j = 0; j < other->count; j++) {
            const struct td_scheme *o = &other->list[j];
            if (o->partner == TD_NO_SCHEME || !o->layered || width_of(left, rest) != width_of(other, o))
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
            TD_TRY(which == TD_SIDE_A ? pair_items(h, rest, best, error) : pair_items(h, best, rest, error));
        }
    }
    return TDBG_OK;
}

/* The stream that goes into the first layer, and the last tensor that runs before the layers. */
static bool are_entry(const struct hearing *h, enum td_which which, size_t scheme, size_t at, size_t other)
{
    const struct td_schemes *left = &h->schemes[which], *right = &h->schemes[!which];
    const struct td_scheme *before = &right->list[other];
    if (left->list[scheme].role != TD_ROLE_STREAM || at != 0 ||
        width_of(left, &left->list[scheme]) != width_of(right, before) ||
        before->order > right->first_layered)
        return false;
    for (size_t k = 0; k < right->count; k++)
        if (!right->list[k].layered && right->list[k].order > before->order &&
            right->list[k].order < right->first_layered)
            return false;
    return true;
}

/* The first layer's input is what runs before the layers, the last one's output what runs behind them: items
 * that a template has beyond its partner go with templates that have no layers. */
static tdbg_status pair_ends(struct hearing *h, enum td_which which, struct tdbg_error *error)
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
    (void)error;
    return TDBG_OK;
}

/* What values could tell nothing of is left to the strategies that go by names. */
static bool was_heard(const struct td_schemes *s, const struct td_scheme *scheme)
{
    for (size_t i = 0; i < scheme->count; i++) {
        const struct td_reading *r = s->readings[scheme->items[i]];
        if (r && r->count && !r->prints[0].constant)
            return true;
    }
    return false;
}

static bool is_of_other_width(const struct hearing *h, const struct td_scheme *a, size_t item, size_t other)
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
static tdbg_status pair_namesakes(struct hearing *h, struct tdbg_error *error)
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

static void close_rest(struct hearing *h)
{
    for (enum td_which s = TD_SIDE_A; s <= TD_SIDE_B; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++) {
            const struct td_scheme *scheme = &h->schemes[s].list[k];
            for (size_t i = 0; i < scheme->count && was_heard(&h->schemes[s], scheme); i++)
                h->m->closed[s][scheme->items[i]] = true;
        }
}

tdbg_status td_match_by_evidence(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct td_schemes schemes[2];
    TD_TRY(td_schemes_init(schemes, m, error));
    if (schemes[0].count == 0 || schemes[1].count == 0)
        return TDBG_OK;
    struct hearing h = {.m = m, .schemes = schemes};
    TD_TRY(td_kin_init(&h.kin, schemes, m, error));
    for (int s = 0; s < 2; s++)
        TD_TRY(td_twins_init(&h.twins[s], &schemes[s], &m->scratch, error));
    TD_TRY(pair_sure(&h, error));
    cover(&h);
    TD_TRY(td_match_fusions(m, &h.kin, error));
    cover(&h);
    TD_TRY(assign_all(&h, ALIKE, error));
    TD_TRY(assign_all(&h, LEFT, error));
    TD_TRY(pair_partners(&h, error));
    TD_TRY(complete(&h, TD_SIDE_A, error));
    TD_TRY(complete(&h, TD_SIDE_B, error));
    TD_TRY(td_twins_attach(m, schemes, h.twins, error));
    TD_TRY(pair_ends(&h, TD_SIDE_A, error));
    TD_TRY(pair_ends(&h, TD_SIDE_B, error));
    TD_TRY(pair_namesakes(&h, error));
    close_rest(&h);
    return TDBG_OK;
}
