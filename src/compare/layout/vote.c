/* vote.c: see vote.h.
 *
 * The evidence of a layer is the squared correlation of a sample. A costlier layout must have more of it than
 * a cheaper one by a margin that samples of unrelated data do not reach; where none does, the shapes decide.
 */
#include "compare/layout/vote.h"

#include "compare/layout/sampled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How much more of the variance a costlier layout must explain, on average over the layers, to be preferred.
 */
static const double MARGIN = 0.02;

/* The pairs of one group, or of one set of groups. */
struct voters {
    const struct td_matches *matches;
    const struct td_ballot *ballots;
    const size_t *members; /* indices of ballots */
    size_t count;
};

static const struct td_ballot *ballot(const struct voters *v, size_t i)
{
    return &v->ballots[v->members[i]];
}

static double evidence(const struct td_ballot *b, int candidate)
{
    double r = b->scores && candidate < b->candidates.count ? b->scores[candidate] : NAN;
    return r > 0 ? r * r : 0;
}

static double convincing(void)
{
    return TD_CONVINCING * TD_CONVINCING;
}

/* What the evidence of all members may come to by chance: r^2 of n samples of unrelated data is 1 / n on
 * average and nearly never 25 / n, however many layouts are tried, and the layers average out. */
static double margin(const struct voters *v)
{
    int64_t elements = v->matches->pairs[v->members[0]].a->parts[0]->count;
    double n = elements < TD_FIT_SAMPLES ? (double)elements : TD_FIT_SAMPLES, layers = (double)v->count;
    double chance = (layers + 7 * sqrt(layers) + 17) / fmax(n, 1);
    return fmax(MARGIN * layers, chance);
}

/* Some members have more candidates than others, behind the ones that all have. */
static const struct td_ballot *longest(const struct voters *v)
{
    const struct td_ballot *most = ballot(v, 0);
    for (size_t i = 1; i < v->count; i++)
        if (ballot(v, i)->candidates.count > most->candidates.count)
            most = ballot(v, i);
    return most;
}

/* --- groups and sets ------------------------------------------------------------------------------------ */

struct keyed {
    const char *key;
    size_t index;
};

static int by_key(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

struct division {
    struct keyed *keys;
    size_t *members; /* of the keys, in their order: those of one key are neighbours */
    size_t count;
};

static void divide_release(struct division *d)
{
    free(d->keys);
    free(d->members);
    *d = (struct division){0};
}

static tdbg_status divide(struct division *out, const struct td_matches *matches,
                          const struct td_ballot *ballots, bool in_sets, struct tdbg_error *error)
{
    *out = (struct division){.keys = calloc(matches->count + 1, sizeof *out->keys),
                             .members = calloc(matches->count + 1, sizeof *out->members)};
    if (!out->keys || !out->members) {
        divide_release(out);
        return td_fail_nomem(error);
    }
    for (size_t i = 0; i < matches->count; i++) {
        const char *key = in_sets ? ballots[i].set : ballots[i].group;
        if (key && ballots[i].candidates.count)
            out->keys[out->count++] = (struct keyed){key, i};
    }
    qsort(out->keys, out->count, sizeof *out->keys, by_key);
    for (size_t i = 0; i < out->count; i++)
        out->members[i] = out->keys[i].index;
    return TDBG_OK;
}

/* The end of those that have the key of `begin`. */
static size_t end_of(const struct division *d, size_t begin)
{
    size_t end = begin + 1;
    while (end < d->count && strcmp(d->keys[end].key, d->keys[begin].key) == 0)
        end++;
    return end;
}

/* --- how a fused tensor is cut -------------------------------------------------------------------------- */

/* The best that one part of one layer has to say for a cut; negative when it cannot be cut so. */
static double evidence_for_cut(const struct td_ballot *b, int64_t cut)
{
    double best = -1;
    for (int c = 0; c < b->candidates.count; c++)
        if (b->candidates.list[c].cut == cut)
            best = fmax(best, evidence(b, c));
    return best;
}

static double total_for_cut(const struct voters *v, int64_t cut)
{
    double total = 0;
    for (size_t i = 0; i < v->count; i++) {
        double layer = evidence_for_cut(ballot(v, i), cut);
        if (layer < 0)
            return -1;
        total += layer;
    }
    return total;
}

/* 0: the parts can be cut in no common way. The cheapest comes first in the list. */
static int64_t common_cut(const struct voters *v)
{
    const struct td_candidates *all = &ballot(v, 0)->candidates;
    double best_total = -1, needed = margin(v);
    int64_t best = 0;
    for (int c = 0; c < all->count; c++) {
        int64_t cut = all->list[c].cut;
        bool seen = cut == 0;
        for (int k = 0; k < c && !seen; k++)
            seen = all->list[k].cut == cut;
        double total = seen ? -1 : total_for_cut(v, cut);
        if (total >= 0 && (best == 0 || total > best_total + needed)) {
            best_total = total;
            best = cut;
        }
    }
    return best;
}

tdbg_status td_vote_on_cuts(const struct td_matches *matches, struct td_ballot *ballots,
                            struct tdbg_error *error)
{
    struct division sets;
    TD_TRY(divide(&sets, matches, ballots, true, error));
    for (size_t i = 0, end; i < sets.count; i = end) {
        end = end_of(&sets, i);
        struct voters v = {matches, ballots, sets.members + i, end - i};
        int64_t cut = common_cut(&v);
        for (size_t k = i; k < end; k++)
            ballots[sets.members[k]].cut = cut;
    }
    divide_release(&sets);
    return TDBG_OK;
}

/* --- the layout of a group ------------------------------------------------------------------------------ */

struct outcome {
    int best; /* -1: none */
    bool by_value;
};

/* What the member says for the layouts that shapes alone suggest. */
static double evidence_as_usual(const struct td_ballot *b, bool as_it_stands)
{
    double best = 0;
    for (int c = 0; c < b->candidates.count && (c == 0 || !as_it_stands); c++)
        if (!b->candidates.list[c].layout.rotary && (b->cut == 0 || b->candidates.list[c].cut == b->cut))
            best = fmax(best, evidence(b, c));
    return best;
}

/* Shapes that agree are taken as they stand, and heads in the order they stand in, unless the layers say
 * otherwise: one layer in another order is a mistake, all layers in another order are a convention. A layer
 * that fits neither way has no say. */
static bool every_layer_needs(const struct voters *v, int candidate, bool as_it_stands)
{
    size_t supporters = 0;
    for (size_t i = 0; i < v->count; i++) {
        double usual = evidence_as_usual(ballot(v, i), as_it_stands);
        double here = evidence(ballot(v, i), candidate);
        if (here >= convincing() && here > usual + MARGIN)
            supporters++;
        else if (!ballot(v, i)->scores || usual >= convincing())
            return false;
    }
    return supporters > 1;
}

static bool is_proven(const struct td_candidate *c, double total, double most, size_t count)
{
    return c->proof == TD_PROOF_NONE ||
           (c->proof == TD_PROOF_ONCE ? most : total / (double)count) >= convincing();
}

static bool may_be_chosen(const struct voters *v, const struct td_candidates *all, int c)
{
    const struct td_candidate *one = &all->list[c];
    int64_t cut = ballot(v, 0)->cut;
    bool stands = all->list[0].as_it_stands;
    return (cut == 0 || one->cut == cut) &&
           ((!(stands && c > 0) && !one->layout.rotary) || every_layer_needs(v, c, stands)) &&
           td_layout_feasible(&v->matches->pairs[v->members[0]], &one->layout);
}

/* Two matrices of equally many elements that have nothing in common are no transposes of each other. */
static int plain_matrix(const struct voters *v, const struct td_candidates *all, int best)
{
    for (int c = best; c < all->count && all->list[best].layout.shape.ndim == 2; c++)
        if (all->list[c].plain && may_be_chosen(v, all, c))
            return c;
    return best;
}

/* The values of one layer at least say something, be it no. */
static bool is_heard(const struct voters *v, int candidate)
{
    for (size_t i = 0; i < v->count; i++)
        if (ballot(v, i)->scores && candidate < ballot(v, i)->candidates.count &&
            !isnan(ballot(v, i)->scores[candidate]))
            return true;
    return false;
}

static struct outcome choose(const struct voters *v)
{
    const struct td_candidates *all = &longest(v)->candidates;
    struct outcome out = {.best = -1};
    double best_total = 0, least_total = INFINITY, needed = margin(v);
    for (int c = 0; c < all->count; c++) {
        double total = 0, most = 0;
        for (size_t i = 0; i < v->count; i++) {
            double layer = evidence(ballot(v, i), c);
            total += layer;
            most = fmax(most, layer);
        }
        if (!may_be_chosen(v, all, c))
            continue;
        least_total = fmin(least_total, total);
        if (is_proven(&all->list[c], total, most, v->count) &&
            (out.best < 0 || total > best_total + needed)) {
            best_total = total;
            out.best = c;
        }
    }
    out.by_value = best_total > least_total + needed;
    if (out.best >= 0 && best_total <= needed && is_heard(v, out.best))
        out.best = plain_matrix(v, all, out.best);
    return out;
}

/* What an activation is compared in when nothing that is computed from it bears the chosen layout out: as the
 * shapes alone suggest, or cut in the other way. -1: the layout needs nobody's word. */
static int unless_borne_out(const struct voters *v, int chosen)
{
    const struct td_candidates *all = &longest(v)->candidates;
    const struct td_match *match = &v->matches->pairs[v->members[0]];
    const struct td_candidate *best = &all->list[chosen];
    if (match->a->parameter || match->b->parameter)
        return -1;
    bool parts_of_a = match->fused_a.of > 0 && match->fused_b.of == 0;
    bool doubtful = best->layout.rotary || (all->list[0].as_it_stands && chosen > 0);
    bool recut = !doubtful && best->cut != 0 && (parts_of_a || best->cost > all->list[0].cost);
    bool reshaped = !doubtful && best->cut == 0 && best->plain && best->cost > all->list[0].cost;
    for (int c = 0; c < all->count && (doubtful || recut || reshaped); c++)
        if (c != chosen && !all->list[c].layout.rotary && all->list[c].proof == TD_PROOF_NONE &&
            (recut ? all->list[c].cut != best->cut : all->list[c].cut == best->cut) &&
            td_layout_feasible(match, &all->list[c].layout))
            return c;
    return -1;
}

/* The candidates do not outlive the vote. */
static tdbg_status keep_order(struct td_alignments *out, struct td_step *step, struct tdbg_error *error)
{
    int64_t *order = td_arena_array(&out->arena, (size_t)step->to, sizeof *order);
    if (!order)
        return td_fail_nomem(error);
    memcpy(order, step->order, (size_t)step->to * sizeof *order);
    step->order = order;
    return TDBG_OK;
}

static tdbg_status keep_layout(struct td_alignments *out, const struct td_layout *layout, bool by_value,
                               struct td_layout **kept, struct tdbg_error *error)
{
    *kept = td_arena_alloc(&out->arena, sizeof **kept);
    if (!*kept)
        return td_fail_nomem(error);
    **kept = *layout;
    (*kept)->by_value = by_value;
    struct td_steps *steps[] = {&(*kept)->a, &(*kept)->b};
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < steps[s]->count; i++)
            if (steps[s]->step[i].kind == TD_STEP_REORDER)
                TD_TRY(keep_order(out, &steps[s]->step[i], error));
    return TDBG_OK;
}

/* A layout that fits this pair alone far better than the chosen one. */
static tdbg_status note_other(struct td_alignments *out, const struct td_ballot *b, size_t index, int chosen,
                              struct tdbg_error *error)
{
    int other = -1;
    for (int c = 0; b->scores && c < b->candidates.count; c++)
        if (c != chosen && b->scores[c] > TD_CONVINCING &&
            (other < 0 || b->scores[c] > b->scores[other] + MARGIN))
            other = c;
    if (other < 0 || evidence(b, other) < evidence(b, chosen) + MARGIN)
        return TDBG_OK;
    return keep_layout(out, &b->candidates.list[other].layout, true, &out->list[index].other, error);
}

static tdbg_status settle(struct td_alignments *out, const struct voters *v, struct tdbg_error *error)
{
    struct outcome outcome = choose(v);
    if (outcome.best < 0)
        return TDBG_OK;
    const struct td_candidate *list = longest(v)->candidates.list;
    int instead = unless_borne_out(v, outcome.best);
    struct td_layout *layout, *doubted = NULL;
    TD_TRY(keep_layout(out, &list[outcome.best].layout, outcome.by_value, &layout, error));
    if (instead >= 0)
        TD_TRY(keep_layout(out, &list[instead].layout, false, &doubted, error));
    for (size_t i = 0; i < v->count; i++) {
        out->list[v->members[i]] = (struct td_alignment){.layout = layout, .instead = doubted};
        TD_TRY(note_other(out, ballot(v, i), v->members[i], outcome.best, error));
    }
    return TDBG_OK;
}

tdbg_status td_vote(struct td_alignments *out, const struct td_matches *matches,
                    const struct td_ballot *ballots, struct tdbg_error *error)
{
    struct division groups;
    tdbg_status status = divide(&groups, matches, ballots, false, error);
    for (size_t i = 0, end; status == TDBG_OK && i < groups.count; i = end) {
        end = end_of(&groups, i);
        struct voters v = {matches, ballots, groups.members + i, end - i};
        status = settle(out, &v, error);
    }
    if (groups.keys)
        divide_release(&groups);
    return status;
}
