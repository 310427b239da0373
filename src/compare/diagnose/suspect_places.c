/* suspect_places.c: mistakes that show by where they are: NaN, infinities, zeros, some tokens or heads only,
 * the shadow of an attention mask.
 */
#include "compare/diagnose/evidence.h"

#include "kernel/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- where along the axes ------------------------------------------------------------------------------- */

/* For each axis which of its indices differ by more than noise: of the whole pair, also where only some of it
 * is looked at. */
struct places {
    const bool *touched[TD_MAX_DIMS]; /* NULL: not known */
    int64_t count[TD_MAX_DIMS];
    double *error[TD_MAX_DIMS]; /* squared, by index of what is looked at; NULL: nobody has asked */
    bool *own[TD_MAX_DIMS];     /* to be freed */
};

static int64_t stride_of(const struct td_evidence *e, int axis)
{
    int64_t stride = 1;
    for (int i = axis + 1; i < e->shape.ndim; i++)
        stride *= e->shape.size[i];
    return stride;
}

/* The squared error and the power of A by index of the axis, the one behind the other. */
static double *sum_along(const struct td_evidence *e, int axis)
{
    int64_t size = e->shape.size[axis], stride = stride_of(e, axis);
    double *error = calloc((size_t)size * 2 + 1, sizeof *error), *power = error + size;
    const double *a = e->a, *b = e->b;
    for (const double *end = error ? a + e->count : a; a < end;)
        for (int64_t k = 0; k < size; k++)
            for (int64_t i = 0; i < stride; i++, a++, b++) {
                error[k] += (*a - *b) * (*a - *b);
                power[k] += *a * *a;
            }
    return error;
}

static void find_touched(struct td_evidence *e, struct places *p, int axis)
{
    int64_t size = e->shape.size[axis];
    if (e->survey) {
        p->touched[axis] = e->survey->touched[axis];
        p->count[axis] = e->survey->count[axis];
        return;
    }
    p->error[axis] = sum_along(e, axis);
    p->own[axis] = calloc((size_t)size + 1, sizeof *p->own[axis]);
    if (!p->error[axis] || !p->own[axis]) {
        e->starved = true;
        return;
    }
    const double *error = p->error[axis], *power = error + size;
    for (int64_t k = 0; k < size; k++) {
        p->own[axis][k] = td_is_touched(e, size, error[k], power[k]);
        p->count[axis] += p->own[axis][k];
    }
    p->touched[axis] = p->own[axis];
}

static void places_release(struct places *p)
{
    for (int axis = 0; axis < TD_MAX_DIMS; axis++) {
        free(p->error[axis]);
        free(p->own[axis]);
    }
}

/* "token 3-5 of axis 0 (3 of 17)" */
static void print_place(const struct td_evidence *e, const struct places *p, int axis, char *out, size_t size)
{
    char list[80];
    td_print_indices(list, sizeof list, p->touched[axis], e->whole.size[axis]);
    snprintf(out, size, "%s %s of axis %d (%lld of %lld)", td_axis_word(e, axis), list, axis,
             (long long)p->count[axis], (long long)e->whole.size[axis]);
}

/* --- NaN and infinities --------------------------------------------------------------------------------- */

struct symptom {
    enum td_kind_of_mistake kind;
    const char *word;
    uint64_t here, there; /* in B only, in A only */
    bool (*is)(double);
};

static bool is_nan(double x)
{
    return isnan(x);
}

static bool is_inf(double x)
{
    return isinf(x);
}

/* Which indices of each axis hold the symptom. */
struct sightings {
    bool *flags[TD_MAX_DIMS]; /* NULL: an axis too long */
    int64_t hit[TD_MAX_DIMS];
};

static void note_sighting(const struct td_evidence *e, struct sightings *out, int64_t at)
{
    for (int axis = e->whole.ndim - 1; axis >= 0; axis--) {
        int64_t k = at % e->whole.size[axis];
        at /= e->whole.size[axis];
        if (out->flags[axis] && !out->flags[axis][k]) {
            out->flags[axis][k] = true;
            out->hit[axis]++;
        }
    }
}

/* Goes over the whole pair, until all that there are were seen; what both sides have at a place is none. */
static void look_for(const struct td_evidence *e, const struct symptom *s, const struct td_operand *holder,
                     const struct td_operand *other, struct sightings *out)
{
    enum { PIECE = 1024 };
    const int64_t most = 64 * TD_EVIDENCE_LIMIT; /* about a second; places are no more than a help */
    double x[PIECE], y[PIECE];
    uint64_t left = s->here ? s->here : s->there;
    for (int64_t at = 0; at < holder->count && at < most && left > 0; at += PIECE) {
        int64_t count = holder->count - at < PIECE ? holder->count - at : PIECE;
        if (td_operand_load(holder, at, count, x, NULL) != TDBG_OK ||
            td_operand_load(other, at, count, y, NULL) != TDBG_OK)
            return;
        for (int64_t i = 0; i < count && left > 0; i++)
            if (s->is(x[i]) && x[i] != y[i] && !(isnan(x[i]) && isnan(y[i]))) {
                note_sighting(e, out, at + i);
                left--;
            }
    }
}

/* The axis on which the indices are fewest says most. */
static void describe_sightings(const struct td_evidence *e, const struct sightings *seen, char *out,
                               size_t size)
{
    double fewest = 1;
    for (int axis = 0; axis < e->whole.ndim; axis++) {
        double share = (double)seen->hit[axis] / (double)e->whole.size[axis];
        if (!seen->flags[axis] || seen->hit[axis] == 0 || !(share < fewest))
            continue;
        char list[96];
        td_print_indices(list, sizeof list, seen->flags[axis], e->whole.size[axis]);
        snprintf(out, size, ", at %s %s of axis %d", td_axis_word(e, axis), list, axis);
        fewest = share;
    }
}

static void locate_symptom(const struct td_evidence *e, const struct symptom *s, char *out, size_t size)
{
    struct sightings seen = {0};
    struct td_arena arena;
    struct td_operand a, b;
    td_arena_init(&arena, TD_MAX_METADATA);
    out[0] = 0;
    for (int axis = 0; axis < e->whole.ndim; axis++)
        if (e->whole.size[axis] <= TD_EVIDENCE_LIMIT)
            seen.flags[axis] = calloc((size_t)e->whole.size[axis] + 1, sizeof *seen.flags[axis]);
    if (td_operand_make(&a, e->c->item_a, &e->c->layout->a, &arena, NULL) == TDBG_OK &&
        td_operand_make(&b, e->c->item_b, &e->c->layout->b, &arena, NULL) == TDBG_OK) {
        look_for(e, s, s->here ? &b : &a, s->here ? &a : &b, &seen);
        describe_sightings(e, &seen, out, size);
    }
    for (int axis = 0; axis < e->whole.ndim; axis++)
        free(seen.flags[axis]);
    td_arena_release(&arena);
}

/* What the other side has there. */
static const char *counterpart(const struct td_metrics *m, enum td_kind_of_mistake kind, uint64_t count)
{
    uint64_t mixed = td_metrics_mixed(m);
    bool nan_on_one_side = m->nan_a + m->nan_b > 2 * m->nan_both;
    if (mixed == 0)
        return "finite";
    if (mixed < count)
        return "not";
    return kind == TD_IS_NAN ? "infinite" : nan_on_one_side ? "not" : "infinite with the other sign";
}

static void suspect_nonfinite(struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_metrics *m = e->c->metrics;
    const struct symptom symptoms[] = {
        {TD_IS_NAN, "NaN", m->nan_b - m->nan_both, m->nan_a - m->nan_both, is_nan},
        {TD_IS_INF, "infinite", m->inf_b - m->inf_same, m->inf_a - m->inf_same, is_inf},
    };
    for (size_t i = 0; i < sizeof symptoms / sizeof *symptoms; i++) {
        const struct symptom *s = &symptoms[i];
        if (s->here + s->there == 0)
            continue;
        char where[160];
        locate_symptom(e, s, where, sizeof where);
        struct td_finding f = {.kind = s->kind, .explained = 1, .complete = true, .confidence = 0.99};
        unsigned long long count = s->here ? s->here : s->there;
        snprintf(f.detail, sizeof f.detail, "%llu %s %s in %s and %s in %s%s", count,
                 count == 1 ? "value is" : "values are", s->word, s->here ? "B" : "A",
                 counterpart(m, s->kind, count), s->here ? "A" : "B", where);
        d->list[d->count++] = f;
    }
}

/* --- zeros, some indices only, masks -------------------------------------------------------------------- */

static void suspect_zeroed(struct td_evidence *e, struct td_diagnosis *d, const struct places *p)
{
    double rest = 0;
    int64_t zeros = 0;
    for (int64_t i = 0; i < e->count; i++) {
        double error = e->a[i] - e->b[i];
        if (e->b[i] == 0 && e->a[i] != 0)
            zeros++;
        else
            rest += error * error;
    }
    if (zeros == 0)
        return;
    char where[160] = "";
    for (int axis = 0; axis < e->shape.ndim && !where[0]; axis++)
        if (p->touched[axis] && p->count[axis] > 0 && p->count[axis] < e->whole.size[axis]) {
            char list[96];
            td_print_indices(list, sizeof list, p->touched[axis], e->whole.size[axis]);
            snprintf(where, sizeof where, ": %s %s of axis %d", td_axis_word(e, axis), list, axis);
        }
    td_enter(e, d, TD_IS_ZEROED, rest, 1, "%s%lld %s zero in B and not in A%s", e->survey ? "at least " : "",
             (long long)zeros, zeros == 1 ? "value is" : "values are", where);
}

/* A mask touches a run of the sequence: all but the last tokens (the future leaks in) or all from some token
 * on (the past is cut off). Token 0 sees only itself, so "all but token 0" tells nothing. */
static bool looks_like_mask(const struct td_evidence *e, int axis, const bool *flags, int64_t size, char *out,
                            size_t room)
{
    const struct td_item *item = e->c->item_a;
    if (axis != e->token_axis || size < 4 || item->parameter || !strstr(item->stage, "attn"))
        return false;
    int64_t first = 0, last = size - 1;
    while (first < size && !flags[first])
        first++;
    while (last >= 0 && !flags[last])
        last--;
    for (int64_t i = first; i <= last; i++)
        if (!flags[i])
            return false;
    if (first == 0 && last < size - 1)
        snprintf(out, room, "tokens 0-%lld differ, the last %lld agree: each token may see later ones",
                 (long long)last, (long long)(size - 1 - last));
    else if (first >= 2 && last == size - 1)
        snprintf(out, room,
                 "tokens agree up to %lld and differ from %lld on: the reach into the past differs",
                 (long long)first - 1, (long long)first);
    else
        return false;
    return true;
}

/* Where is not what: a place explains nothing by itself, so it ranks behind any rule that explains more than
 * this leaves. A mask is more of a rule than a list of indices is. */
static const double PLACE_LEAVES = 0.15, MASK_LEAVES = 0.1;

static void suspect_mask(struct td_evidence *e, struct td_diagnosis *d, struct places *p, int axis)
{
    char text[160];
    if (!p->touched[axis] || p->count[axis] == 0 || p->count[axis] == e->whole.size[axis] ||
        !looks_like_mask(e, axis, p->touched[axis], e->whole.size[axis], text, sizeof text))
        return;
    if (!p->error[axis])
        p->error[axis] = sum_along(e, axis);
    if (!p->error[axis]) {
        e->starved = true;
        return;
    }
    double rest = 0;
    for (int64_t k = 0; k < e->shape.size[axis]; k++)
        rest += p->touched[axis][e->origin[axis] + k] ? 0 : p->error[axis][k];
    td_enter(e, d, TD_IS_MASK, rest + MASK_LEAVES * e->to_explain, (double)e->whole.size[axis], "%s",
             text); /* a yes or no for each token */
}

/* Sums over the elements at touched indices of all axes that tell, and the error beside them. */
struct box {
    double n, d, aa, ab, bb, dd, outside;
};

static struct box sum_box(const struct td_evidence *e, const struct places *p, const int *axes, int count)
{
    struct box box = {0};
    int64_t stride[TD_MAX_DIMS];
    for (int i = 0; i < count; i++)
        stride[i] = stride_of(e, axes[i]);
    for (int64_t i = 0; i < e->count; i++) {
        double a = e->a[i], b = e->b[i], error = (b - a) * (b - a);
        bool inside = true;
        for (int k = 0; k < count && inside; k++)
            inside = p->touched[axes[k]][e->origin[axes[k]] + i / stride[k] % e->shape.size[axes[k]]];
        if (!inside) {
            box.outside += error;
            continue;
        }
        box.n++;
        box.d += b - a;
        box.aa += a * a;
        box.ab += a * b;
        box.bb += b * b;
        box.dd += error;
    }
    return box;
}

/* One number that makes A into B there, to within the noise: what it leaves, or a negative number. A number
 * fitted to a few elements would say nothing. */
static double rule_inside(const struct td_evidence *e, const struct box *box, char *out, size_t size)
{
    enum { FEW = 32 };
    double within = 4 * e->c->floor * e->c->floor * fmax(box->aa, box->bb); /* two floors, as in diagnose.c */
    double offset = box->n > 0 ? box->d / box->n : 0, factor = box->aa > 0 ? box->ab / box->aa : 0;
    double after_offset = box->dd - box->d * offset, after_factor = box->bb - factor * box->ab;
    out[0] = 0;
    if (box->n < FEW)
        return -1;
    if (after_factor <= within) {
        snprintf(out, size, ", there by a factor of %.6g", factor);
        return fmax(after_factor, 0);
    }
    if (after_offset <= within) {
        snprintf(out, size, ", there by an offset of %.6g", offset);
        return fmax(after_offset, 0);
    }
    return -1;
}

/* "Some of them" is news only when the others, at least half, are right. */
static void suspect_partial(struct td_evidence *e, struct td_diagnosis *d, const struct places *p)
{
    enum { MOST = 3 }; /* places beyond make no sentence */
    int axes[TD_MAX_DIMS], count = 0;
    char text[MOST * 128] = "", rule[64];
    for (int axis = 0; axis < e->shape.ndim && count < MOST; axis++) {
        if (!p->touched[axis] || p->count[axis] == 0 || 2 * p->count[axis] > e->whole.size[axis])
            continue;
        size_t at = strlen(text);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", count ? " and " : "");
        print_place(e, p, axis, text + at, sizeof text - at);
        axes[count++] = axis;
    }
    if (count == 0)
        return;
    struct box box = sum_box(e, p, axes, count);
    double inside = rule_inside(e, &box, rule, sizeof rule);
    double rest = box.outside + (inside >= 0 ? inside : PLACE_LEAVES * e->to_explain);
    td_enter(e, d, TD_IS_PARTIAL, rest, 1, "only %s differ%s", text, rule);
}

static void suspect_missing(struct td_evidence *e, struct td_diagnosis *d)
{
    struct td_finding f = {.kind = TD_IS_PARTIAL, .explained = 1, .complete = true, .confidence = 0.99};
    snprintf(f.detail, sizeof f.detail, "%s", e->c->missing);
    d->list[d->count++] = f;
}

void td_suspect_places(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    suspect_nonfinite(e, d);
    if (e->c->missing)
        suspect_missing(e, d);
    if (e->power_d == 0)
        return;
    struct places places = {0};
    for (axis = 0; axis < e->shape.ndim; axis++)
        find_touched(e, &places, axis);
    suspect_zeroed(e, d, &places);
    for (axis = 0; axis < e->shape.ndim; axis++)
        suspect_mask(e, d, &places, axis);
    suspect_partial(e, d, &places);
    places_release(&places);
}
