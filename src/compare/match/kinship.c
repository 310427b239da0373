/* kinship.c: see kinship.h. */
#include "compare/match/kinship.h"

#include "base/pattern.h"
#include "compare/judge/verdict.h"
#include "compare/match/twins.h"
#include "compare/match/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values agree within this share of their size: a thousandth where both are of float32, more where one was
 * rounded to fewer bits. */
static const double FINE = 1e-3, FINE_UNIT = 0x1p-20, HALF = 0.015, HALF_UNIT = 0x1p-11, COARSE = 0.06;

/* Agreement is worth this, and a decade closer this much more. Two tensors of one stream may lie within the
 * tolerance of each other; the true pair is closer. */
static const double AS_THEY_STAND = 4.5, REORDERED = 3.5, BUT_FOR_FACTORS = 3, A_DECADE = 1.5, DECADES = 3;

/* Unrelated values of this many correlate by less than three standard deviations of chance. */
static const double CHANCE = 3;

static const double LIKENESS = 2.5, GRAM_LIKENESS = 0.3, NORM_RATIO = 0.3, MOST_NORM_RATIO = 0.6;
static const double MEANS_SAME = 1.5, MEANS_PERHAPS = 1, MEANS_NEAR = 0.3, MEANS_OTHER = -1.5, MEANS_NEXT = 1,
                    BAG = 0.5;

/* Where no engine means anything else by the words, and no other tensor is called so. */
static const double PLAINLY_SAME = 8.5, PLAINLY_OTHER = -6;

/* The same name on both sides is believed before any value: else a mistake would pair itself away. */
static const double SAME_NAME = 13;

/* So many of the names of the side with fewer are on the other, too: one engine wrote both, and means the
 * same by them. */
static const double ONE_ENGINE = 0.9;

/* A template that agrees one layer on, and the only ones behind the layers. */
static const double SHIFTED = 0.5, BEHIND = 0.7;

/* --- names ---------------------------------------------------------------------------------------------- */

/* Different stages that often hold the same values, or that engines tell apart in different ways. */
static bool are_near(enum td_role a, enum td_role b)
{
    static const enum td_role near[][2] = {
        {TD_ROLE_ATTN_O, TD_ROLE_ATTN},
        {TD_ROLE_ATTN_O, TD_ROLE_NORM_ATTN_POST},
        {TD_ROLE_MLP_DOWN, TD_ROLE_MLP},
        {TD_ROLE_MLP_DOWN, TD_ROLE_NORM_MLP_POST},
        {TD_ROLE_LAYER, TD_ROLE_STREAM},
        {TD_ROLE_ATTN, TD_ROLE_NORM_ATTN_POST},
        {TD_ROLE_MLP, TD_ROLE_NORM_MLP_POST},
        {TD_ROLE_MLP_UP, TD_ROLE_MLP_GATE_UP},
        {TD_ROLE_NORM_MLP, TD_ROLE_NORM_ATTN_POST},
    };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if ((near[i][0] == a && near[i][1] == b) || (near[i][0] == b && near[i][1] == a))
            return true;
    return false;
}

enum td_meaning td_roles_meet(const struct td_scheme *a, const struct td_scheme *b)
{
    if (a->role == TD_ROLE_NONE || b->role == TD_ROLE_NONE)
        return TD_MEANS_NOTHING;
    if (a->role == b->role)
        return TD_MEANS_SAME;
    if (a->other == b->role || a->role == b->other)
        return TD_MEANS_PERHAPS;
    bool near = are_near(a->role, b->role) ||
                (a->other && (a->other == b->other || are_near(a->other, b->role))) ||
                (b->other && are_near(a->role, b->other));
    return near ? TD_MEANS_NEAR : TD_MEANS_OTHER;
}

/* By how many layers B's template is ahead, where roles tell: what a layer puts out is what the next takes
 * in. */
static int64_t shift_of_roles(const struct td_scheme *a, const struct td_scheme *b)
{
    if (a->role == TD_ROLE_LAYER && b->role == TD_ROLE_STREAM)
        return 1;
    return a->role == TD_ROLE_STREAM && b->role == TD_ROLE_LAYER ? -1 : 0;
}

static bool has_one_meaning(const struct td_scheme *s)
{
    return (s->other == TD_ROLE_NONE || s->settled) && !s->guessed;
}

/* What a word means in one engine only is no doubt, and no other name of the side says the same. */
static bool is_plain(const struct td_scheme *s)
{
    return has_one_meaning(s) && s->only_one;
}

/* No engine means one thing by both words. */
static bool are_plainly_other(const struct td_scheme *a, const struct td_scheme *b)
{
    return td_roles_meet(a, b) == TD_MEANS_OTHER && has_one_meaning(a) && has_one_meaning(b);
}

static double points_of_words(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b,
                              int64_t shift)
{
    static const double points[] = {[TD_MEANS_SAME] = MEANS_SAME,
                                    [TD_MEANS_PERHAPS] = MEANS_PERHAPS,
                                    [TD_MEANS_NEAR] = MEANS_NEAR,
                                    [TD_MEANS_NOTHING] = 0,
                                    [TD_MEANS_OTHER] = MEANS_OTHER};
    size_t i = (size_t)(a - kin->schemes[0].list), j = (size_t)(b - kin->schemes[1].list);
    enum td_meaning meaning = shift ? TD_MEANS_NOTHING : td_roles_meet(a, b);
    double sum = points[meaning];
    if (shift && shift == shift_of_roles(a, b))
        sum = MEANS_NEXT;
    if (meaning == TD_MEANS_SAME && is_plain(a) && is_plain(b))
        sum = PLAINLY_SAME;
    if (meaning == TD_MEANS_OTHER && are_plainly_other(a, b))
        sum = PLAINLY_OTHER;
    if (a->stack != b->stack)
        sum += MEANS_OTHER;
    return sum + BAG * td_word_bag_likeness(&kin->bags[0][i], &kin->bags[1][j]);
}

/* --- values --------------------------------------------------------------------------------------------- */

static double tolerance_of(const struct td_kin *kin, size_t item_a, size_t item_b)
{
    const size_t items[] = {item_a, item_b};
    double unit = 0;
    for (int s = 0; s < 2; s++) {
        const struct td_item *item = &kin->schemes[s].side->items[items[s]];
        unit = fmax(unit, fmax(kin->schemes[s].unit, td_unit_roundoff(item->parts[0]->dtype)));
    }
    return unit <= FINE_UNIT ? FINE : unit <= HALF_UNIT ? HALF : COARSE;
}

static double graded(double error, double tolerance, double worth)
{
    if (!(error <= tolerance))
        return 0;
    double decades = log10(tolerance / fmax(error, tolerance * 1e-9));
    return worth + A_DECADE * fmin(decades, DECADES);
}

double td_equal_points(const struct td_likeness *l, double tolerance)
{
    double best = graded(l->error, tolerance, AS_THEY_STAND);
    best = fmax(best, graded(l->gram_error, tolerance, REORDERED));
    return fmax(best, graded(l->even_error, tolerance, BUT_FOR_FACTORS));
}

bool td_kin_compare(const struct td_kin *kin, size_t item_a, size_t item_b, struct td_likeness *out,
                    double *tolerance)
{
    const struct td_reading *a = kin->schemes[0].readings[item_a], *b = kin->schemes[1].readings[item_b];
    if (!a || !b || !a->count || !b->count)
        return false;
    *tolerance = tolerance_of(kin, item_a, item_b);
    double best = -1;
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) {
            struct td_likeness l = td_print_compare(&a->prints[i], &b->prints[j]);
            double worth = td_equal_points(&l, *tolerance) + l.cosine + GRAM_LIKENESS * l.shape;
            if (worth > best) {
                best = worth;
                *out = l;
            }
        }
    return true;
}

/* Two templates of which only one has layers go together where that one has no more than one. */
static bool levels_meet(const struct td_scheme *a, const struct td_scheme *b)
{
    return a->layered == b->layered || (a->layered ? a->count : b->count) == 1;
}

/* The item of B in the layer that an item of A is in. */
static size_t counterpart(const struct td_kin *kin, const struct td_scheme *a, size_t item_a,
                          const struct td_scheme *b, int64_t shift)
{
    int64_t layer = kin->schemes[0].side->items[item_a].layer;
    if (a->layered && b->layered)
        return td_scheme_at(&kin->schemes[1], b, layer + kin->m->layer_offset + shift);
    return b->items[0];
}

struct tally {
    bool any, against_flow, agrees, turned;
    double ratio;
};

static void weigh_layer(const struct td_kin *kin, const struct td_likeness *l, double tolerance,
                        int64_t layer, struct td_kinship *out, struct tally *tally)
{
    double points = td_equal_points(l, tolerance);
    /* A factor of each channel would show in what follows. */
    bool agrees = l->error <= tolerance || l->gram_error <= tolerance;
    if (!tally->any) {
        tally->any = true;
        tally->ratio = l->ratio;
        out->likeness = l->cosine > CHANCE / sqrt((double)l->count) ? l->cosine : 0;
        out->score += LIKENESS * out->likeness + GRAM_LIKENESS * fmax(l->shape, 0);
    }
    if (points > out->equal) {
        out->equal = points;
        out->layer = layer < INT64_MAX - 2 ? layer : -1;
    }
    tally->agrees = tally->agrees || agrees;
    out->scaled = out->scaled || (!agrees && l->even_error <= tolerance);
    tally->turned = tally->turned || (!agrees && l->norm_error <= tolerance);
    if (!agrees && layer < kin->clean)
        tally->against_flow = true;
}

/* What runs before the layers is right when something behind them is; what runs after them when the result
 * is. */
static int64_t layer_of(const struct td_kin *kin, const struct td_scheme *a, size_t item)
{
    if (a->layered)
        return kin->schemes[0].side->items[item].layer;
    return a->order < kin->schemes[0].first_layered ? -1
           : a->role == TD_ROLE_HEAD                ? INT64_MAX - 1
                                                    : INT64_MAX - 2;
}

static bool may_be_turned(const struct td_scheme *s)
{
    return s->role == TD_ROLE_ATTN_Q_ROPE || s->role == TD_ROLE_ATTN_K_ROPE ||
           s->other == TD_ROLE_ATTN_Q_ROPE || s->other == TD_ROLE_ATTN_K_ROPE;
}

/* The same tensor before and after its rotation, of which only one has a name for that. */
static bool is_other_end_of_rotation(const struct td_scheme *a, const struct td_scheme *b)
{
    bool before_a = a->role == TD_ROLE_ATTN_Q || a->role == TD_ROLE_ATTN_K;
    bool before_b = b->role == TD_ROLE_ATTN_Q || b->role == TD_ROLE_ATTN_K;
    return (before_a && may_be_turned(b) && !may_be_turned(a)) ||
           (before_b && may_be_turned(a) && !may_be_turned(b));
}

/* Ids and masks are not what was computed from them. */
static bool differ_in_kind(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b)
{
    enum td_dtype x = kin->schemes[0].side->items[a->items[0]].parts[0]->dtype,
                  y = kin->schemes[1].side->items[b->items[0]].parts[0]->dtype;
    return (td_unit_roundoff(x) > 0) != (td_unit_roundoff(y) > 0);
}

/* Both behind the layers, one after the other: the final norm, the head. */
static bool are_behind(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b)
{
    return !a->layered && !b->layered && a->order > kin->schemes[0].last_layered &&
           b->order > kin->schemes[1].last_layered;
}

static const char *bare_of(const struct td_kin *kin, int side, const struct td_scheme *s)
{
    return kin->bare[side][s - kin->schemes[side].list];
}

static bool have_one_name(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b)
{
    return strcmp(bare_of(kin, 0, a), bare_of(kin, 1, b)) == 0 || (a == kin->last[0] && b == kin->last[1]);
}

/* The user's names say that the two are one. */
static bool are_told(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b)
{
    return (a->told && td_pattern_fits(a->told, bare_of(kin, 1, b))) ||
           (b->told && td_pattern_fits(b->told, bare_of(kin, 0, a))) ||
           (a->told && b->told && strcmp(a->told, b->told) == 0);
}

static struct td_kinship weigh(const struct td_kin *kin, const struct td_scheme *a, const struct td_scheme *b,
                               int64_t shift)
{
    struct td_kinship out = {.layer = -1, .shift = shift};
    struct tally tally = {.ratio = 1};
    for (size_t k = 0; k < a->count; k++) {
        struct td_likeness l;
        double tolerance;
        size_t item_b =
            kin->schemes[0].readings[a->items[k]] ? counterpart(kin, a, a->items[k], b, shift) : SIZE_MAX;
        if (item_b != SIZE_MAX && td_kin_compare(kin, a->items[k], item_b, &l, &tolerance))
            weigh_layer(kin, &l, tolerance, layer_of(kin, a, a->items[k]), &out, &tally);
    }
    out.words = points_of_words(kin, a, b, shift);
    out.same_name =
        shift == 0 && (are_told(kin, a, b) || (!are_plainly_other(a, b) && have_one_name(kin, a, b)));
    out.same_role = out.words >= PLAINLY_SAME;
    out.scaled = out.scaled && !tally.agrees;
    double apart = tally.ratio > 0 ? fabs(log(tally.ratio)) : 0;
    out.score += out.equal + out.words - fmin(NORM_RATIO * apart, MOST_NORM_RATIO) +
                 (out.same_name ? SAME_NAME : 0) + (are_behind(kin, a, b) ? BEHIND : 0);
    if (!out.same_name && differ_in_kind(kin, a, b))
        out.score = -INFINITY;
    if (tally.against_flow)
        out.score += out.same_name && (kin->one_engine || out.equal > 0) ? 0 : -INFINITY;
    bool turned = tally.turned && is_other_end_of_rotation(a, b);
    if (!out.same_name && !tally.agrees && (turned || (out.scaled && td_roles_meet(a, b) != TD_MEANS_SAME)))
        out.score = -INFINITY;
    return out;
}

struct td_kinship td_kinship_of(const struct td_kin *kin, const struct td_scheme *a,
                                const struct td_scheme *b)
{
    if (!levels_meet(a, b))
        return (struct td_kinship){.score = -INFINITY, .layer = -1};
    bool layered = a->layered && b->layered;
    int64_t told = layered ? shift_of_roles(a, b) : 0;
    struct td_kinship best = weigh(kin, a, b, told);
    for (int64_t shift = -1; layered && told == 0 && shift <= 1; shift += 2) {
        struct td_kinship other = weigh(kin, a, b, shift);
        other.score -= SHIFTED;
        if (other.equal >= AS_THEY_STAND && other.score > best.score)
            best = other;
    }
    return best;
}

/* --- setting up ----------------------------------------------------------------------------------------- */

/* Without the folders that all names of the side share, and without the extension. */
static const char *bare_name(const struct td_scheme *s, size_t common, struct td_arena *arena)
{
    struct td_name name = td_name_split(s->name);
    if (name.key)
        return name.key;
    return td_arena_strndup(arena, s->name + common, name.stem > common ? name.stem - common : 0);
}

/* The name of a model's result; its head may stand beside it. */
static bool names_result(const struct td_scheme *s)
{
    return !s->layered && (strstr(s->name, "logits") || strstr(s->name, "result_output"));
}

static bool is_head(const struct td_scheme *s)
{
    return !s->layered && s->role == TD_ROLE_HEAD;
}

/* What a dump ends in is its result, whatever it is called. NULL where a head stands beside what was made of
 * it, and no name tells which is which. */
static const struct td_scheme *last_of(const struct td_schemes *s)
{
    const struct td_scheme *last = NULL;
    for (size_t k = 0; k < s->count; k++)
        if (!last || (names_result(&s->list[k]) > names_result(last)) ||
            (names_result(&s->list[k]) == names_result(last) && s->list[k].order > last->order))
            last = &s->list[k];
    if (!last || last->layered || (last->role != TD_ROLE_HEAD && last->role != TD_ROLE_NONE))
        return NULL;
    for (size_t k = 0; k < s->count && !names_result(last); k++)
        if (&s->list[k] != last && is_head(&s->list[k]) && !td_twins_are(s, k, (size_t)(last - s->list)))
            return NULL;
    return last;
}

/* Besides the last a head that holds something else: what is made of it is scaled or capped. */
static bool has_head_beside(const struct td_schemes *s, const struct td_scheme *last)
{
    for (size_t k = 0; k < s->count; k++)
        if (&s->list[k] != last && is_head(&s->list[k]) && !td_twins_are(s, k, (size_t)(last - s->list)))
            return true;
    return false;
}

/* A head alone may be that of a model that goes on behind it: then values decide, unless its name says that
 * it is the result. */
static bool end_in_one(const struct td_schemes schemes[2], const struct td_scheme *a,
                       const struct td_scheme *b)
{
    if (!a || !b || (a->role != TD_ROLE_HEAD && b->role != TD_ROLE_HEAD))
        return false;
    bool results =
        (names_result(a) || a->role == TD_ROLE_NONE) && (names_result(b) || b->role == TD_ROLE_NONE);
    return results || (!has_head_beside(&schemes[0], a) && !has_head_beside(&schemes[1], b));
}

/* What the user calls a stage. One that tdbg knows gives the template its role; any other is a name of the
 * other side, or a word that both sides' rules use. */
static void apply_rules(const struct td_match_options *options, struct td_scheme *s, const char *bare)
{
    for (size_t i = 0; i < options->name_count && !s->told; i++) {
        if (!td_pattern_fits(options->names[i].pattern, bare))
            continue;
        s->told = options->names[i].stage;
        struct td_identity id = td_role_of(s->told, s->layered ? 0 : -1, s->told);
        if (id.role != TD_ROLE_NONE) {
            s->role = id.role;
            s->other = TD_ROLE_NONE;
            s->guessed = false;
            s->only_one = true;
        }
    }
}

/* A word of two meanings has the one that somebody on the other side has, where nobody there has the first.
 */
static void meet_roles(struct td_schemes schemes[2])
{
    bool has[2][TD_ROLES] = {{false}};
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < schemes[s].count; k++)
            has[s][schemes[s].list[k].role] = true;
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < schemes[s].count; k++) {
            struct td_scheme *x = &schemes[s].list[k];
            /* Nobody has the second: the first is meant, as far as names tell. */
            x->settled = x->other != TD_ROLE_NONE && has[!s][x->role] && !has[!s][x->other];
            if (x->other != TD_ROLE_NONE && !has[!s][x->role] && has[!s][x->other] && !has[s][x->other]) {
                enum td_role first = x->role;
                x->role = x->other;
                x->other = first;
            }
        }
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Of sorted copies. False where there is no memory: then nothing is taken for granted. */
static bool share_names(const struct td_kin *kin)
{
    size_t n[2] = {kin->schemes[0].count, kin->schemes[1].count}, both = 0;
    const char **sorted[2] = {calloc(n[0] + 1, sizeof(char *)), calloc(n[1] + 1, sizeof(char *))};
    for (int s = 0; s < 2 && sorted[0] && sorted[1]; s++) {
        memcpy(sorted[s], kin->bare[s], n[s] * sizeof(char *));
        if (n[s])
            qsort(sorted[s], n[s], sizeof(char *), compare_names);
    }
    for (size_t i = 0, j = 0; sorted[0] && sorted[1] && i < n[0] && j < n[1];) {
        int order = strcmp(sorted[0][i], sorted[1][j]);
        both += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    free(sorted[0]);
    free(sorted[1]);
    size_t fewer = n[0] < n[1] ? n[0] : n[1];
    return (double)both >= ONE_ENGINE * (double)fewer;
}

tdbg_status td_kin_init(struct td_kin *kin, struct td_schemes schemes[2], struct td_matching *m,
                        struct tdbg_error *error)
{
    *kin = (struct td_kin){.schemes = schemes, .m = m, .clean = -1};
    for (int s = 0; s < 2; s++) {
        size_t count = schemes[s].count + 1, common = td_common_folder(m->side[s]);
        kin->bare[s] = td_arena_array(&m->scratch, count, sizeof(*kin->bare[s]));
        kin->bags[s] = td_arena_array(&m->scratch, count, sizeof *kin->bags[s]);
        if (!kin->bare[s] || !kin->bags[s])
            return td_fail_nomem(error);
        for (size_t k = 0; k < schemes[s].count; k++) {
            const struct td_item *item = &schemes[s].side->items[schemes[s].list[k].items[0]];
            const char *words = item->layer >= 0 ? item->stage : item->name;
            if (!(kin->bare[s][k] = bare_name(&schemes[s].list[k], common, &m->scratch)))
                return td_fail_nomem(error);
            td_word_bag_read(&kin->bags[s][k], words, strlen(words));
            apply_rules(m->options, &schemes[s].list[k], kin->bare[s][k]);
        }
    }
    kin->one_engine = share_names(kin);
    meet_roles(schemes);
    const struct td_scheme *a = last_of(&schemes[0]), *b = last_of(&schemes[1]);
    if (end_in_one(schemes, a, b)) {
        kin->last[0] = a;
        kin->last[1] = b;
    }
    return TDBG_OK;
}
