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
#include "compare/match/fusion.h"
#include "compare/match/hearing.h"

#include <string.h>

/* A mistake may move what follows by as little as rounding does: what proves that there is none is closer. */
static const double RIGHT = 0.3;

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
static bool agrees_with_any(const struct td_hearing *h, const struct td_scheme *a, size_t item)
{
    int64_t layer = h->schemes[0].side->items[item].layer, width = td_scheme_width(&h->schemes[0], a);
    for (size_t k = 0; k < h->schemes[1].count; k++) {
        const struct td_scheme *b = &h->schemes[1].list[k];
        if (b->layered != a->layered || td_scheme_width(&h->schemes[1], b) != width)
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
static int64_t find_clean(const struct td_hearing *h)
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

static void forget_partners(struct td_hearing *h)
{
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++)
            h->schemes[s].list[k].partner = TD_NO_SCHEME;
}

static tdbg_status pair_sure(struct td_hearing *h, struct tdbg_error *error)
{
    TD_TRY(td_hearing_assign(h, TD_SURE, error));
    h->kin.clean = find_clean(h);
    if (h->kin.clean < 0)
        return TDBG_OK;
    forget_partners(h);
    return td_hearing_assign(h, TD_SURE, error);
}

/* --- other names of what is paired -----------------------------------------------------------------------
 */

/* In B, equal values under two names that mean two stages may be the mistake: the second has a partner of its
 * own waiting in A then. The name of a container says where, and not what. */
static bool waits_for_partner(const struct td_hearing *h, const struct td_scheme *b)
{
    for (size_t k = 0; !b->container && k < h->schemes[0].count; k++) {
        const struct td_scheme *a = &h->schemes[0].list[k];
        if (td_is_heard(a) && !a->container && td_roles_meet(a, b) == TD_MEANS_SAME &&
            td_scheme_width(&h->schemes[0], a) == td_scheme_width(&h->schemes[1], b))
            return true;
    }
    return false;
}

static void cover(struct td_hearing *h)
{
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++) {
            struct td_scheme *scheme = &h->schemes[s].list[k];
            if (scheme->partner == TD_NO_SCHEME && td_twins_cover(&h->twins[s], k))
                scheme->covered = s == 0 || !waits_for_partner(h, scheme);
        }
}

/* What values could tell nothing of is left to the strategies that go by names. */
static bool was_heard(const struct td_schemes *s, const struct td_scheme *scheme)
{
    for (size_t i = 0; i < scheme->count; i++) {
        const struct td_reading *r = s->readings[scheme->items[i]];
        if (r && r->count && !r->prints[0].constant)
            return !scheme->unweighed || scheme->partner != TD_NO_SCHEME;
    }
    return false;
}

static void close_rest(struct td_hearing *h)
{
    for (enum td_which s = TD_SIDE_A; s <= TD_SIDE_B; s++)
        for (size_t k = 0; k < h->schemes[s].count; k++) {
            const struct td_scheme *scheme = &h->schemes[s].list[k];
            for (size_t i = 0; i < scheme->count && was_heard(&h->schemes[s], scheme); i++)
                h->m->closed[s][scheme->items[i]] = true;
        }
}

/* A name that came up again with the same values is no second tensor. */
static void cover_repeated(struct td_schemes *s)
{
    for (size_t k = 0; k < s->count; k++) {
        const char *mark = strchr(s->list[k].name, '#');
        size_t length = mark ? (size_t)(mark - s->list[k].name) : 0;
        for (size_t j = 0; length && j < s->count && !s->list[k].covered; j++)
            s->list[k].covered = strncmp(s->list[j].name, s->list[k].name, length) == 0 &&
                                 s->list[j].name[length] == 0 && td_twins_are(s, k, j);
    }
}

tdbg_status td_match_by_evidence(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct td_schemes schemes[2];
    TD_TRY(td_schemes_init(schemes, m, error));
    if (schemes[0].count == 0 || schemes[1].count == 0)
        return TDBG_OK;
    struct td_hearing h = {.m = m, .schemes = schemes};
    TD_TRY(td_kin_init(&h.kin, schemes, m, error));
    for (int s = 0; s < 2; s++)
        TD_TRY(td_twins_init(&h.twins[s], &schemes[s], &m->scratch, error));
    for (int s = 0; s < 2; s++)
        cover_repeated(&schemes[s]);
    TD_TRY(pair_sure(&h, error));
    cover(&h);
    TD_TRY(td_match_fusions(m, &h.kin, error));
    cover(&h);
    TD_TRY(td_hearing_assign(&h, TD_ALIKE, error));
    TD_TRY(td_hearing_assign(&h, TD_LEFT, error));
    TD_TRY(td_hearing_join(&h, error));
    close_rest(&h);
    return TDBG_OK;
}
