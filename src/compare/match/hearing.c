/* hearing.c: see hearing.h. Templates are heard together that have one width, each pair weighed by kinship.h.
 */
#include "compare/match/hearing.h"

#include "compare/match/assign.h"

#include <math.h>
#include <stdlib.h>

/* A pair below this is none; and one that is hardly better than the next is left alone. */
const double TD_LEAST_POINTS = 0.9;
static const double MARGIN = 0.15;

/* Agreement that no name contradicts. */
static const double LEAST_EQUAL = 2;

/* Pairs of templates that are weighed with all their values: a second or two. */
#define MOST_WEIGHED (INT64_C(1) << 21)

/* What is left by elimination: one of a width on either side, whatever little speaks for it. */
static const double LEAST_LEFT = 0.1;

/* Templates of one width: only these can be pairs. */
struct group {
    size_t *list[2], count[2];
};

/* One width at a time. */
struct round {
    struct td_hearing *h;
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

int64_t td_scheme_width(const struct td_schemes *s, const struct td_scheme *scheme)
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
        list[k] = (struct sized){td_scheme_width(s, &s->list[k]), k};
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

bool td_is_heard(const struct td_scheme *s)
{
    return s->partner == TD_NO_SCHEME && !s->covered;
}

static double score_in(const struct td_kinship *k, enum td_phase phase)
{
    bool sure = k->same_name || k->same_role || (k->equal > 0 && k->equal + k->words >= LEAST_EQUAL);
    if ((phase == TD_SURE && !sure) || (phase == TD_LEFT && k->words < 0))
        return -INFINITY;
    return k->score;
}

static bool same_tensor(const struct td_schemes *s, size_t x, size_t y)
{
    return x == y || td_twins_are(s, x, y);
}

/* By how much the pair beats the next that is another tensor. */
static double margin_of(const struct round *r, size_t row, size_t column)
{
    const struct group *g = &r->group;
    double mine = r->scores[row * g->count[1] + column], next = 0;
    for (size_t j = 0; j < g->count[1]; j++)
        if (r->scores[row * g->count[1] + j] > next && j != column &&
            !same_tensor(&r->h->schemes[1], g->list[1][column], g->list[1][j]))
            next = r->scores[row * g->count[1] + j];
    for (size_t i = 0; i < g->count[0]; i++)
        if (r->scores[i * g->count[1] + column] > next && i != row &&
            !same_tensor(&r->h->schemes[0], g->list[0][row], g->list[0][i]))
            next = r->scores[i * g->count[1] + column];
    return mine - next;
}

static void fill_scores(struct round *r, enum td_phase phase)
{
    const struct group *g = &r->group;
    for (size_t i = 0; i < g->count[0]; i++)
        for (size_t j = 0; j < g->count[1]; j++) {
            struct td_kinship k = td_kinship_of(&r->h->kin, &r->h->schemes[0].list[g->list[0][i]],
                                                &r->h->schemes[1].list[g->list[1][j]]);
            r->scores[i * g->count[1] + j] = score_in(&k, phase);
        }
}

/* One tensor on either side, whatever names it has. */
static bool is_one_left(const struct round *r)
{
    for (int s = 0; s < 2; s++)
        for (size_t i = 1; i < r->group.count[s]; i++)
            if (!td_twins_are(&r->h->schemes[s], r->group.list[s][0], r->group.list[s][i]))
                return false;
    return true;
}

static tdbg_status assign_group(struct round *r, enum td_phase phase, struct tdbg_error *error)
{
    const struct group *g = &r->group;
    size_t cells = g->count[0] * g->count[1];
    for (int s = 0; s < 2 && (int64_t)cells > MOST_WEIGHED; s++)
        for (size_t i = 0; i < g->count[s]; i++)
            r->h->schemes[s].list[g->list[s][i]].unweighed = true;
    if (cells == 0 || (int64_t)cells > MOST_WEIGHED || (phase == TD_LEFT && !is_one_left(r)))
        return TDBG_OK;
    r->scores = malloc(cells * sizeof *r->scores);
    size_t *partner = malloc(g->count[0] * sizeof *partner);
    tdbg_status status = r->scores && partner ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        fill_scores(r, phase);
        if (!td_assign(r->scores, g->count[0], g->count[1], phase == TD_LEFT ? LEAST_LEFT : TD_LEAST_POINTS,
                       partner))
            status = td_fail_nomem(error);
    }
    for (size_t i = 0; status == TDBG_OK && i < g->count[0]; i++) {
        if (partner[i] == TD_ASSIGNED_TO_NOBODY ||
            (phase == TD_ALIKE && margin_of(r, i, partner[i]) < MARGIN))
            continue;
        struct td_scheme *a = &r->h->schemes[0].list[g->list[0][i]];
        struct td_scheme *b = &r->h->schemes[1].list[g->list[1][partner[i]]];
        a->partner = g->list[1][partner[i]];
        b->partner = g->list[0][i];
        a->shift = td_kinship_of(&r->h->kin, a, b).shift;
    }
    free(partner);
    free(r->scores);
    r->scores = NULL;
    return status;
}

/* Templates of both sides with one width after the other. */
tdbg_status td_hearing_assign(struct td_hearing *h, enum td_phase phase, struct tdbg_error *error)
{
    struct round r = {.h = h};
    struct td_arena *arena = &h->m->scratch;
    const struct sized *a = sort_by_width(&h->schemes[0], arena), *b = sort_by_width(&h->schemes[1], arena);
    size_t na, nb, counts[] = {h->schemes[0].count, h->schemes[1].count};
    r.group.list[0] = td_arena_array(arena, counts[0] + 1, sizeof *r.group.list[0]);
    r.group.list[1] = td_arena_array(arena, counts[1] + 1, sizeof *r.group.list[1]);
    if (!a || !b || !r.group.list[0] || !r.group.list[1])
        return td_fail_nomem(error);
    for (size_t i = 0, j = 0; i < counts[0] && j < counts[1];) {
        int order = td_compare_numbers(a[i].width, b[j].width);
        na = order <= 0 ? run_length(a, counts[0], i) : 0;
        nb = order >= 0 ? run_length(b, counts[1], j) : 0;
        r.group.count[0] = r.group.count[1] = 0;
        for (size_t k = i; order == 0 && k < i + na; k++)
            if (td_is_heard(&h->schemes[0].list[a[k].scheme]))
                r.group.list[0][r.group.count[0]++] = a[k].scheme;
        for (size_t k = j; order == 0 && k < j + nb; k++)
            if (td_is_heard(&h->schemes[1].list[b[k].scheme]))
                r.group.list[1][r.group.count[1]++] = b[k].scheme;
        if (td_job_cancelled(h->m->work.job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        TD_TRY(assign_group(&r, phase, error));
        i += na;
        j += nb;
    }
    return TDBG_OK;
}
