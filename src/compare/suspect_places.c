/* suspect_places.c: mistakes that show by where they are: NaN, infinities, zeros, some tokens or heads only,
 * the shadow of an attention mask.
 */
#include "compare/evidence.h"

#include "kernel/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- where along the axes ------------------------------------------------------------------------------- */

/* For each index of an axis: the squared error and the power of A there. */
struct marginal {
    int64_t size, stride;
    double *error, *power;
};

static bool marginal_init(struct marginal *m, const struct td_evidence *e, int axis)
{
    *m = (struct marginal){.size = e->shape.size[axis], .stride = 1};
    for (int i = axis + 1; i < e->shape.ndim; i++)
        m->stride *= e->shape.size[i];
    m->error = calloc((size_t)m->size * 2 + 1, sizeof *m->error);
    if (!m->error)
        return false;
    m->power = m->error + m->size;
    for (int64_t i = 0; i < e->count; i++) {
        int64_t k = i / m->stride % m->size;
        double d = e->a[i] - e->b[i];
        m->error[k] += d * d;
        m->power[k] += e->a[i] * e->a[i];
    }
    return true;
}

static int64_t touched(const struct td_evidence *e, const struct marginal *m, bool *flags)
{
    int64_t count = 0;
    for (int64_t k = 0; k < m->size; k++) {
        flags[k] = td_is_touched(e, m->size, m->error[k], m->power[k]);
        count += flags[k];
    }
    return count;
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

/* The values of one side into e->work, without what the other has at the same place too. */
static bool load_alone(const struct td_evidence *e, bool in_b)
{
    enum { PIECE = 1024 };
    double piece[PIECE];
    struct td_arena arena;
    struct td_operand a, b;
    td_arena_init(&arena, TD_MAX_METADATA);
    bool fine = td_operand_make(&a, e->c->item_a, &e->c->layout->a, &arena, NULL) == TDBG_OK &&
                td_operand_make(&b, e->c->item_b, &e->c->layout->b, &arena, NULL) == TDBG_OK &&
                td_operand_load(in_b ? &b : &a, 0, e->count, e->work, NULL) == TDBG_OK;
    for (int64_t at = 0; fine && at < e->count; at += PIECE) {
        int64_t count = e->count - at < PIECE ? e->count - at : PIECE;
        fine = td_operand_load(in_b ? &a : &b, at, count, piece, NULL) == TDBG_OK;
        for (int64_t i = 0; fine && i < count; i++)
            if (piece[i] == e->work[at + i] || (isnan(piece[i]) && isnan(e->work[at + i])))
                e->work[at + i] = 0;
    }
    td_arena_release(&arena);
    return fine;
}

/* Which indices of each axis hold the symptom; the axis on which they are fewest says most. */
static void locate_symptom(const struct td_evidence *e, const struct symptom *s, char *out, size_t size)
{
    int64_t fewest = INT64_MAX, stride = e->count;
    out[0] = 0;
    if (!load_alone(e, s->here > 0))
        return;
    for (int axis = 0; axis < e->shape.ndim; axis++) {
        int64_t n = e->shape.size[axis], hit = 0;
        bool *flags = calloc((size_t)n + 1, sizeof *flags);
        stride /= n ? n : 1;
        for (int64_t i = 0; flags && i < e->count; i++)
            if (s->is(e->work[i]) && !flags[i / stride % n]) {
                flags[i / stride % n] = true;
                hit++;
            }
        if (flags && hit > 0 && hit < n && (double)hit / (double)n < (double)fewest / 1e6) {
            char list[96];
            td_print_indices(list, sizeof list, flags, n);
            snprintf(out, size, ", at %s %s of axis %d", td_axis_word(e, axis), list, axis);
            fewest = (int64_t)(1e6 * (double)hit / (double)n);
        }
        free(flags);
    }
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

static void suspect_zeroed(struct td_evidence *e, struct td_diagnosis *d)
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
    for (int axis = 0; axis < e->shape.ndim && zeros < e->count; axis++) {
        struct marginal m;
        bool *flags = calloc((size_t)e->shape.size[axis] + 1, sizeof *flags);
        if (flags && marginal_init(&m, e, axis)) {
            int64_t n = touched(e, &m, flags);
            if (n > 0 && n < m.size && !where[0]) {
                char list[96];
                td_print_indices(list, sizeof list, flags, m.size);
                snprintf(where, sizeof where, ": %s %s of axis %d", td_axis_word(e, axis), list, axis);
            }
            free(m.error);
        }
        free(flags);
    }
    td_enter(e, d, TD_IS_ZEROED, rest, 1, "%lld values are zero in B and not in A%s", (long long)zeros,
             where);
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

static void suspect_part(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    struct marginal m;
    bool *flags = calloc((size_t)e->shape.size[axis] + 1, sizeof *flags);
    if (!flags || !marginal_init(&m, e, axis)) {
        free(flags);
        return;
    }
    int64_t n = touched(e, &m, flags);
    double rest = 0;
    for (int64_t k = 0; k < m.size; k++)
        rest += flags[k] ? 0 : m.error[k];
    char text[160];
    if (n > 0 && n < m.size) {
        if (looks_like_mask(e, axis, flags, m.size, text, sizeof text))
            td_enter(e, d, TD_IS_MASK, rest + MASK_LEAVES * e->to_explain, (double)m.size, "%s",
                     text); /* a yes or no for each token */
        /* "Some of them" is news only when the others, at least half, are right. */
        td_print_indices(text, sizeof text, flags, m.size);
        if (2 * n <= m.size)
            td_enter(e, d, TD_IS_PARTIAL, rest + PLACE_LEAVES * e->to_explain, 1,
                     "only %s %s of axis %d (%lld of %lld) differ", td_axis_word(e, axis), text, axis,
                     (long long)n, (long long)m.size);
    }
    free(m.error);
    free(flags);
}

static void suspect_missing(struct td_evidence *e, struct td_diagnosis *d)
{
    struct td_finding f = {.kind = TD_IS_PARTIAL, .explained = 1, .complete = true, .confidence = 0.99};
    snprintf(f.detail, sizeof f.detail, "%s", e->c->missing);
    d->list[d->count++] = f;
}

void td_suspect_places(struct td_evidence *e, struct td_diagnosis *d)
{
    suspect_nonfinite(e, d);
    if (e->c->missing)
        suspect_missing(e, d);
    if (e->power_d == 0)
        return;
    suspect_zeroed(e, d);
    for (int axis = 0; axis < e->shape.ndim; axis++)
        suspect_part(e, d, axis);
}
