/* fusion.c: see fusion.h. */
#include "compare/match/fusion.h"

#include <math.h>

enum {
    MOST_PARTS = 3,
    MOST_CANDIDATES = 48 /* templates that may be parts of one: all sets of three are tried */
};

/* Grams of rounded values add up within this; a set that is wrong is far off. */
static const double ADDS_UP = 0.1, ADDS_UP_FINE = 5e-3;

/* Where no layer adds up, tokens that lie to each other as in the whole. */
static const double ALIKE = 0.9;

struct fusion {
    enum td_which whole_side;
    size_t whole, parts[MOST_PARTS];
    int count;
    double error;      /* of the layer that adds up best */
    double likeness;   /* of the first layer, where none adds up */
    int words;         /* names that say so */
    int free;          /* parts that have no partner yet */
    bool against_flow; /* a layer that is right does not add up */
};

static const struct td_print *print_at(const struct td_schemes *s, size_t scheme, int64_t layer)
{
    size_t item = td_scheme_at(s, &s->list[scheme], layer);
    const struct td_reading *r = item == SIZE_MAX ? NULL : s->readings[item];
    return r && r->count && r->prints[0].rows > 1 ? &r->prints[0] : NULL;
}

/* How far the parts are from adding up, in the layer where they do best. */
static void compare_sums(const struct td_kin *kin, struct fusion *f, double tolerance)
{
    const struct td_schemes *whole = &kin->schemes[f->whole_side], *other = &kin->schemes[!f->whole_side];
    const struct td_scheme *w = &whole->list[f->whole];
    int64_t offset = f->whole_side == TD_SIDE_A ? kin->m->layer_offset : -kin->m->layer_offset;
    bool first = true;
    f->error = INFINITY;
    for (size_t i = 0; i < w->count; i++) {
        int64_t layer = whole->side->items[w->items[i]].layer;
        const struct td_print *print = print_at(whole, f->whole, layer), *parts[MOST_PARTS];
        int found = 0;
        while (print && found < f->count && (parts[found] = print_at(other, f->parts[found], layer + offset)))
            found++;
        if (!print || found < f->count)
            continue;
        struct td_likeness l = td_print_compare_sum(print, parts, f->count);
        double error = fmin(l.gram_error, l.even_error);
        f->error = fmin(f->error, error);
        f->against_flow =
            f->against_flow ||
            (!(error <= tolerance) && (f->whole_side == TD_SIDE_A ? layer : layer + offset) < kin->clean);
        if (first)
            f->likeness = l.shape;
        first = false;
    }
}

static int64_t width_of(const struct td_schemes *s, size_t scheme)
{
    const struct td_scheme *x = &s->list[scheme];
    for (size_t i = 0; i < x->count; i++)
        if (s->readings[x->items[i]] && s->readings[x->items[i]]->count &&
            s->readings[x->items[i]]->prints[0].rows > 1)
            return s->readings[x->items[i]]->prints[0].width;
    return 0;
}

static bool is_free(const struct td_schemes *s, size_t scheme)
{
    return s->list[scheme].partner == TD_NO_SCHEME && !s->list[scheme].covered;
}

static enum td_role role_of_whole(const struct fusion *f)
{
    return f->count == 3 ? TD_ROLE_ATTN_QKV : TD_ROLE_MLP_GATE_UP;
}

/* How many parts have the role that is theirs in the whole; `order` puts them into that order. */
static int order_parts(const struct td_kin *kin, struct fusion *f)
{
    const struct td_schemes *other = &kin->schemes[!f->whole_side];
    enum td_role role = kin->schemes[f->whole_side].list[f->whole].role, roles[MOST_PARTS];
    int of = td_role_parts(role, roles), known = 0;
    if (of != f->count) { /* its name does not tell: q, k, v or gate, up */
        role = role_of_whole(f);
        of = td_role_parts(role, roles);
    } else {
        known++;
    }
    size_t sorted[MOST_PARTS] = {0};
    bool used[MOST_PARTS] = {false};
    int placed = 0;
    for (int r = 0; r < of; r++) {
        sorted[r] = TD_NO_SCHEME;
        for (int p = 0; p < f->count && sorted[r] == TD_NO_SCHEME; p++)
            if (!used[p] && other->list[f->parts[p]].role == roles[r]) {
                sorted[r] = f->parts[p];
                used[p] = true;
                placed++;
            }
    }
    for (int p = 1; p < f->count; p++) /* those that no name places in the order in which they run */
        for (int q = p; q > 0 && other->list[f->parts[q]].order < other->list[f->parts[q - 1]].order; q--) {
            size_t part = f->parts[q];
            bool taken = used[q];
            f->parts[q] = f->parts[q - 1];
            f->parts[q - 1] = part;
            used[q] = used[q - 1];
            used[q - 1] = taken;
        }
    for (int r = 0, p = 0; r < of; r++) {
        if (sorted[r] != TD_NO_SCHEME)
            continue;
        while (p < f->count && used[p])
            p++;
        sorted[r] = f->parts[p++];
    }
    for (int p = 0; p < f->count; p++)
        f->parts[p] = sorted[p];
    return placed == f->count ? known + placed : placed;
}

/* Names before values that are merely alike. */
static bool is_better(const struct fusion *f, const struct fusion *best)
{
    if (f->words != best->words)
        return f->words > best->words;
    if (f->free != best->free)
        return f->free > best->free;
    return f->error != best->error ? f->error < best->error : f->likeness > best->likeness;
}

/* A part whose name says that it is something else. */
static bool has_stranger(const struct td_kin *kin, const struct fusion *f, bool guesses)
{
    const struct td_schemes *other = &kin->schemes[!f->whole_side];
    enum td_role roles[MOST_PARTS];
    int of = td_role_parts(role_of_whole(f), roles);
    for (int p = 0; p < f->count; p++) {
        enum td_role role = other->list[f->parts[p]].role;
        bool known = role == TD_ROLE_NONE || (!guesses && other->list[f->parts[p]].guessed);
        for (int r = 0; r < of; r++)
            known = known || role == roles[r] || other->list[f->parts[p]].other == roles[r];
        if (!known)
            return true;
    }
    return false;
}

static void consider(const struct td_kin *kin, struct fusion f, double tolerance, struct fusion *best)
{
    const struct td_schemes *other = &kin->schemes[!f.whole_side];
    for (int p = 0; p < f.count; p++)
        f.free += other->list[f.parts[p]].partner == TD_NO_SCHEME && !other->list[f.parts[p]].covered;
    if (f.free == 0)
        return;
    compare_sums(kin, &f, tolerance);
    f.words = order_parts(kin, &f);
    bool adds = f.error <= tolerance;
    if (f.against_flow || has_stranger(kin, &f, !adds))
        return;
    bool by_name = f.words == f.count + 1 && f.free == f.count;
    bool alike = kin->schemes[f.whole_side].list[f.whole].role == role_of_whole(&f) && f.free == f.count &&
                 f.likeness >= ALIKE;
    bool best_adds = best->count && best->error <= tolerance;
    if (!adds && !by_name && !alike)
        return;
    if (best->count == 0 || adds > best_adds || (adds == best_adds && is_better(&f, best)))
        *best = f;
}

/* Sets that are tried, each in all layers of the whole; a second or two. */
#define MOST_TRIED (INT64_C(1) << 26)
enum { A_SET = 64 }; /* what a set costs beside a look at every layer */

struct budget {
    int64_t left;
};

static bool afford(struct budget *budget, const struct td_scheme *whole)
{
    budget->left -= A_SET + (int64_t)whole->count;
    return budget->left >= 0;
}

/* The templates of the other side that may be parts. */
static int list_parts(const struct td_kin *kin, enum td_which side, int64_t width, bool layered,
                      size_t out[MOST_CANDIDATES], int64_t widths[MOST_CANDIDATES])
{
    const struct td_schemes *s = &kin->schemes[side];
    int count = 0;
    for (size_t k = 0; k < s->count && count < MOST_CANDIDATES; k++) {
        int64_t w = width_of(s, k);
        if (s->list[k].layered == layered && w > 0 && w < width) {
            out[count] = k;
            widths[count++] = w;
        }
    }
    return count;
}

static void search(const struct td_kin *kin, enum td_which side, size_t whole, double tolerance,
                   struct budget *budget, struct fusion *best)
{
    const struct td_schemes *s = &kin->schemes[side];
    size_t parts[MOST_CANDIDATES];
    int64_t widths[MOST_CANDIDATES], width = width_of(s, whole);
    int n = width ? list_parts(kin, !side, width, s->list[whole].layered, parts, widths) : 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            if (widths[i] + widths[j] == width && afford(budget, &s->list[whole]))
                consider(kin, (struct fusion){side, whole, {parts[i], parts[j]}, 2, 0, 0, 0, 0, false},
                         tolerance, best);
            for (int k = j + 1; k < n; k++)
                if (widths[i] + widths[j] + widths[k] == width && afford(budget, &s->list[whole]))
                    consider(
                        kin,
                        (struct fusion){side, whole, {parts[i], parts[j], parts[k]}, 3, 0, 0, 0, 0, false},
                        tolerance, best);
        }
}

static void pair_fusion(struct td_matching *m, const struct td_kin *kin, const struct fusion *f,
                        double tolerance)
{
    struct td_schemes *whole = &kin->schemes[f->whole_side], *other = &kin->schemes[!f->whole_side];
    const struct td_scheme *w = &whole->list[f->whole];
    int64_t offset = f->whole_side == TD_SIDE_A ? m->layer_offset : -m->layer_offset;
    for (size_t i = 0; i < w->count; i++) {
        int64_t layer = whole->side->items[w->items[i]].layer;
        size_t parts[MOST_PARTS];
        int found = 0;
        while (found < f->count && (parts[found] = td_scheme_at(other, &other->list[f->parts[found]],
                                                                layer + offset)) != SIZE_MAX)
            found++;
        for (int p = 0; found == f->count && p < f->count; p++) {
            bool in_a = f->whole_side == TD_SIDE_A;
            if (other->list[f->parts[p]].partner != TD_NO_SCHEME) /* of a tensor of its own */
                continue;
            td_pair(m, in_a ? w->items[i] : parts[p], in_a ? parts[p] : w->items[i], TD_MATCH_FUSED);
            struct td_match *match = &m->pairs[m->count - 1];
            *(in_a ? &match->fused_a : &match->fused_b) = (struct td_fusion){p, f->count};
            match->template_a = (in_a ? w : &other->list[f->parts[p]])->name;
            match->template_b = (in_a ? &other->list[f->parts[p]] : w)->name;
            match->sure = f->error <= tolerance ? 0.999 : 0.97;
            match->evidence = f->error <= tolerance ? "the parts add up to the whole"
                                                    : "names and sizes of parts and whole";
        }
    }
    whole->list[f->whole].partner = f->parts[0];
    for (int p = 0; p < f->count; p++)
        if (other->list[f->parts[p]].partner == TD_NO_SCHEME)
            other->list[f->parts[p]].partner = f->whole;
}

tdbg_status td_match_fusions(struct td_matching *m, const struct td_kin *kin, struct tdbg_error *error)
{
    bool fine = kin->schemes[0].unit < 0x1p-20 && kin->schemes[1].unit < 0x1p-20;
    double tolerance = fine ? ADDS_UP_FINE : ADDS_UP;
    struct budget budget = {MOST_TRIED};
    for (enum td_which side = TD_SIDE_A; side <= TD_SIDE_B; side++)
        for (size_t k = 0; k < kin->schemes[side].count; k++) {
            struct fusion best = {.count = 0};
            if (td_job_cancelled(m->work.job))
                return td_fail(error, TDBG_CANCELLED, "stopped");
            if (is_free(&kin->schemes[side], k))
                search(kin, side, k, tolerance, &budget, &best);
            if (best.count)
                pair_fusion(m, kin, &best, tolerance);
        }
    return TDBG_OK;
}
