/* diagnose.c: gathers the evidence, hears the hypotheses, ranks what they found. See diagnose.h. */
#include "compare/diagnose/evidence.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this share of the error a hypothesis explains less than it leaves open; and one that leaves more than
 * noise must explain most of it to be worth saying. */
static const double WORTH_SAYING = 0.5, WORTH_SAYING_INCOMPLETE = 0.75;

/* A remainder of up to two floors counts as noise: the floor is for the tensor as it should be, and a
 * fitted or exchanged tensor adds the rounding of its own. */
static const double COMPLETE = 2;

static const char *const names[TD_KINDS_OF_MISTAKE] = {
    [TD_IS_NAN] = "nan",         [TD_IS_INF] = "inf",
    [TD_IS_SIGN] = "sign",       [TD_IS_SCALE] = "scale",
    [TD_IS_STALE] = "stale",     [TD_IS_SWAP] = "swap",
    [TD_IS_SHIFT] = "shift",     [TD_IS_TRANSPOSE] = "transpose",
    [TD_IS_ROPE] = "rope",       [TD_IS_PERMUTATION] = "permutation",
    [TD_IS_MASK] = "mask",       [TD_IS_ZEROED] = "zeroed",
    [TD_IS_CLAMP] = "clamp",     [TD_IS_PRECISION] = "precision",
    [TD_IS_BIAS] = "bias",       [TD_IS_CHANNEL_SCALE] = "channel_scale",
    [TD_IS_PARTIAL] = "partial", [TD_IS_UNKNOWN] = "unknown",
};

const char *td_mistake_name(enum td_kind_of_mistake kind)
{
    return names[kind];
}

/* --- evidence ------------------------------------------------------------------------------------------ */

static int find_token_axis(const struct td_evidence *e)
{
    if (e->c->item_a->parameter) /* a weight as wide as the sequence is long */
        return -1;
    for (int i = 0; i < e->shape.ndim; i++)
        if (e->shape.size[i] == e->c->tokens)
            return i;
    return -1;
}

/* Rows that fit the limit, as the survey chooses them: leading axes are cut, the rest stays whole. */
static void cut_to_limit(struct td_evidence *e)
{
    int64_t start = 0;
    for (int i = 0; i < e->shape.ndim && e->count > TD_EVIDENCE_LIMIT; i++) {
        int64_t size = e->shape.size[i], row = e->count / size;
        int64_t keep = row < TD_EVIDENCE_LIMIT ? TD_EVIDENCE_LIMIT / row : 1;
        e->origin[i] = td_survey_window(e->survey, i, keep);
        e->shape.size[i] = keep;
        e->count = row * keep;
        start += e->origin[i] * row;
        size_t at = strlen(e->where);
        if (keep == 1 && e->survey->count[i] < size)
            snprintf(e->where + at, sizeof e->where - at, ", in %s %lld of axis %d", td_axis_word(e, i),
                     (long long)e->origin[i], i);
    }
    e->start = start;
}

struct loading {
    const struct td_operand *sides[2];
    double *to[2];
    int64_t start, count;
    tdbg_status status[2];
    struct tdbg_error error[2];
};

static void load_side(void *context, uint64_t i)
{
    struct loading *l = context;
    l->status[i] = td_operand_load(l->sides[i], l->start, l->count, l->to[i], &l->error[i]);
}

static tdbg_status load_sides(struct td_evidence *e, struct td_survey *survey, struct td_pool *pool,
                              struct td_arena *arena, struct tdbg_error *error)
{
    struct td_operand a, b;
    TD_TRY(td_operand_make(&a, e->c->item_a, &e->c->layout->a, arena, error));
    TD_TRY(td_operand_make(&b, e->c->item_b, &e->c->layout->b, arena, error));
    e->whole = e->shape = a.shape;
    e->count = a.count;
    e->token_axis = find_token_axis(e);
    if (e->count > TD_EVIDENCE_LIMIT) {
        TD_TRY(td_survey_make(survey, &a, &b, e->c->profile, e->c->floor, pool, e->c->job, arena, error));
        e->survey = survey;
        cut_to_limit(e);
    }
    size_t n = (size_t)e->count + 1;
    e->a = malloc(n * sizeof *e->a);
    e->b = malloc(n * sizeof *e->b);
    if (!e->a || !e->b)
        return td_fail_nomem(error);
    struct loading l = {.sides = {&a, &b}, .to = {e->a, e->b}, .start = e->start, .count = e->count};
    td_pool_run(pool, 2, load_side, &l);
    int failed = l.status[0] == TDBG_OK;
    if (l.status[failed] != TDBG_OK && error)
        *error = l.error[failed];
    return l.status[failed];
}

static void evidence_release(struct td_evidence *e)
{
    free(e->a);
    free(e->b);
    e->a = e->b = NULL;
}

/* What the evidence points to lives in the arena. */
static tdbg_status evidence_init(struct td_evidence *e, const struct td_case *c, struct td_survey *survey,
                                 struct td_pool *pool, struct td_arena *arena, struct tdbg_error *error)
{
    *e = (struct td_evidence){.c = c};
    tdbg_status status = load_sides(e, survey, pool, arena, error);
    if (status != TDBG_OK) {
        evidence_release(e);
        return status;
    }
    for (int64_t i = 0; i < e->count; i++) {
        if (!isfinite(e->a[i]) || !isfinite(e->b[i])) {
            e->a[i] = e->b[i] = 0;
            continue;
        }
        double d = e->a[i] - e->b[i];
        e->usable++;
        e->power_a += e->a[i] * e->a[i];
        e->power_b += e->b[i] * e->b[i];
        e->power_d += d * d;
    }
    e->to_explain = e->power_b > 0 && e->power_b < e->power_d ? e->power_b : e->power_d;
    return TDBG_OK;
}

double *td_evidence_work(struct td_evidence *e)
{
    if (!e->work)
        e->work = malloc(((size_t)e->count + 1) * sizeof *e->work);
    e->starved |= !e->work;
    return e->work;
}

bool td_evidence_load(struct td_evidence *e, const struct td_item *item)
{
    struct td_arena arena;
    struct td_operand o;
    td_arena_init(&arena, TD_MAX_METADATA);
    bool ok =
        td_evidence_work(e) && td_operand_make(&o, item, &e->c->layout->a, &arena, NULL) == TDBG_OK &&
        o.shape.ndim == e->c->layout->shape.ndim &&
        memcmp(o.shape.size, e->c->layout->shape.size, (size_t)o.shape.ndim * sizeof o.shape.size[0]) == 0 &&
        td_operand_load(&o, e->start, e->count, e->work, NULL) == TDBG_OK;
    td_arena_release(&arena);
    for (int64_t i = 0; ok && i < e->count; i++)
        if (!isfinite(e->work[i]))
            e->work[i] = 0;
    return ok;
}

double td_explained(const struct td_evidence *e, double rest)
{
    return 1 - rest / e->to_explain;
}

/* A remainder that counts as noise. */
static double noise_left(const struct td_evidence *e)
{
    return COMPLETE * COMPLETE * e->c->floor * e->c->floor * fmax(e->power_a, e->power_b);
}

/* A little more than td_enter lets pass, which rounds in another way. */
double td_most_left(const struct td_evidence *e)
{
    double complete = fmin((1 - WORTH_SAYING) * e->to_explain, noise_left(e));
    return (1 + 1e-9) * fmax((1 - WORTH_SAYING_INCOMPLETE) * e->to_explain, complete);
}

double td_rest(const struct td_evidence *e, const double *x)
{
    enum { PIECE = 4096 };
    const double most = td_most_left(e);
    double sum = 0;
    for (int64_t at = 0; at < e->count && sum <= most; at += PIECE) {
        int64_t end = at + PIECE < e->count ? at + PIECE : e->count;
        for (int64_t i = at; i < end; i++)
            sum += (e->b[i] - x[i]) * (e->b[i] - x[i]);
    }
    return sum;
}

double td_dot(const double *x, const double *y, int64_t count)
{
    double sum[4] = {0}; /* each addition waits for the one before it */
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += x[i + k] * y[i + k];
    for (; i < count; i++)
        sum[0] += x[i] * y[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

bool td_is_touched(const struct td_evidence *e, int64_t shares, double error, double power)
{
    return td_is_off(e->c->floor, error, power, e->power_a / (double)shares);
}

const char *td_axis_word(const struct td_evidence *e, int axis)
{
    bool experts = e->c->item_a->experts || e->c->item_b->experts;
    if (experts && axis == 0 && e->shape.ndim > 1)
        return "expert";
    if (axis == e->token_axis)
        return "token";
    if (axis == 0 && e->token_axis > 0 && (e->shape.ndim == 4 || (e->shape.ndim == 3 && e->token_axis == 1)))
        return "sequence"; /* of the batch */
    if (axis == e->shape.ndim - 1)
        return "channel";
    return e->token_axis >= 0 && e->shape.ndim >= 3 ? "head" : "index";
}

const char *td_axis_plural(const struct td_evidence *e, int axis)
{
    const char *word = td_axis_word(e, axis);
    switch (word[0]) {
    case 'e':
        return "experts";
    case 't':
        return "tokens";
    case 'c':
        return "channels";
    case 'h':
        return "heads";
    case 's':
        return "sequences";
    }
    return "indices";
}

void td_print_indices(char *out, size_t size, const bool *flags, int64_t count)
{
    enum { RUNS = 4 };
    int runs = 0;
    int64_t left = 0;
    size_t at = 0;
    out[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!flags[i])
            continue;
        int64_t end = i;
        while (end + 1 < count && flags[end + 1])
            end++;
        if (runs++ < RUNS) {
            const char *comma = at ? ", " : "";
            int n = end == i
                        ? snprintf(out + at, size - at, "%s%lld", comma, (long long)i)
                        : snprintf(out + at, size - at, "%s%lld-%lld", comma, (long long)i, (long long)end);
            at = n > 0 && at + (size_t)n < size ? at + (size_t)n : size - 1;
        } else {
            left += end - i + 1;
        }
        i = end;
    }
    if (left)
        snprintf(out + at, size - at, " and %lld more", (long long)left);
}

/* --- the ledger ---------------------------------------------------------------------------------------- */

static bool better(const struct td_finding *x, const struct td_finding *y)
{
    if (x->complete != y->complete)
        return x->complete;
    if (x->complete)
        return x->kind < y->kind;
    return x->explained > y->explained;
}

/* Two findings of one kind: of the complete the one that needs fewer numbers, else what explains more. */
static bool replaces(const struct td_finding *x, const struct td_finding *y)
{
    if (x->complete != y->complete)
        return x->complete;
    if (x->complete && x->parameters != y->parameters)
        return x->parameters < y->parameters;
    return x->explained > y->explained;
}

static void insert(struct td_diagnosis *d, const struct td_finding *f)
{
    for (int i = 0; i < d->count; i++) /* one finding of a kind */
        if (d->list[i].kind == f->kind) {
            if (!replaces(f, &d->list[i]))
                return;
            memmove(&d->list[i], &d->list[i + 1], (size_t)(d->count - i - 1) * sizeof *f);
            d->count--;
            break;
        }
    int at = d->count;
    while (at > 0 && better(f, &d->list[at - 1]))
        at--;
    if (at == TD_MAX_FINDINGS)
        return;
    int moved = (d->count < TD_MAX_FINDINGS ? d->count : TD_MAX_FINDINGS - 1) - at;
    memmove(&d->list[at + 1], &d->list[at], (size_t)moved * sizeof *f);
    d->list[at] = *f;
    if (d->count < TD_MAX_FINDINGS)
        d->count++;
}

void td_enter(const struct td_evidence *e, struct td_diagnosis *d, enum td_kind_of_mistake kind, double rest,
              double parameters, const char *format, ...)
{
    /* Fitting p numbers to n values explains p/n of pure noise; scale the remainder back up. */
    double n = (double)e->usable, corrected = parameters < n ? rest * n / (n - parameters) : INFINITY;
    struct td_finding f = {.kind = kind, .explained = td_explained(e, corrected), .parameters = parameters};
    f.complete = corrected <= noise_left(e);
    if (!(f.explained >= (f.complete ? WORTH_SAYING : WORTH_SAYING_INCOMPLETE)))
        return;
    f.confidence = f.complete ? fmin(0.99, fmax(0.9, f.explained)) : 0.9 * f.explained;
    va_list args;
    va_start(args, format);
    vsnprintf(f.detail, sizeof f.detail, format, args);
    va_end(args);
    size_t at = strlen(f.detail);
    if (kind != TD_IS_PARTIAL) /* which tells it itself */
        snprintf(f.detail + at, sizeof f.detail - at, "%s", e->where);
    insert(d, &f);
}

/* One value everywhere fits every rule, and so tells none. */
static bool is_constant(const struct tdbg_stats *s)
{
    return s->finite > 1 && s->min == s->max;
}

static void add_unknown(const struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_metrics *m = e->c->metrics;
    struct td_finding f = {.kind = TD_IS_UNKNOWN, .confidence = d->count ? 0.1 : 0.5};
    if (m->paired == 0)
        snprintf(f.detail, sizeof f.detail, "no two values at one place are both finite");
    else if (is_constant(&m->b) && is_constant(&m->a))
        snprintf(f.detail, sizeof f.detail, "A is %.6g everywhere and B is %.6g: one value fits every rule",
                 m->a.min, m->b.min);
    else if (is_constant(&m->b))
        snprintf(f.detail, sizeof f.detail, "B is %.6g everywhere and A is not", m->b.min);
    else
        snprintf(f.detail, sizeof f.detail,
                 "no simple rule relates the two: relative error %.3g, cosine %.4f", m->rel_l2, m->cosine);
    if (d->count < TD_MAX_FINDINGS)
        d->list[d->count++] = f;
}

/* --- the hearing ---------------------------------------------------------------------------------------- */

/* The families of hypotheses in the order of their findings. The first ones are quick; the others try many
 * orders and other tensors, which is idle when the first have settled it. */
static const struct family {
    td_suspicion *suspect;
    bool each_axis; /* heard once for each */
    bool later;     /* not one of the quick ones */
} families[] = {{td_suspect_places, false, false},   {td_suspect_rule, false, false},
                {td_suspect_sharing, true, false},   {td_suspect_limits, false, false},
                {td_suspect_noise, false, false},    {td_suspect_layout, false, true},
                {td_suspect_axis, true, true},       {td_suspect_axes, false, true},
                {td_suspect_exchanged, false, true}, {td_suspect_rotation, false, true},
                {td_suspect_attention, false, true}};

enum { FAMILIES = sizeof families / sizeof *families, MAX_HEARINGS = FAMILIES + 2 * TD_MAX_DIMS };

/* A family, along one axis where it is heard for each. */
struct hearing {
    td_suspicion *suspect;
    int axis;
    bool starved;
    struct td_diagnosis found;
};

struct session {
    const struct td_evidence *evidence;
    struct hearing *list;
};

static void hear(void *context, uint64_t i)
{
    const struct session *session = context;
    struct hearing *h = &session->list[i];
    struct td_evidence e = *session->evidence;
    h->suspect(&e, &h->found, h->axis);
    h->starved = e.starved;
    free(e.work);
}

/* Whether there is anything that a rule could say. Places always have their say. */
static bool has_rule(const struct td_evidence *e)
{
    return e->power_d > 0 && !is_constant(&e->c->metrics->b);
}

/* Hears the quick families or the others, side by side, and joins what they found in their order: the same at
 * any number of threads. False: out of memory. */
static bool hear_some(const struct td_evidence *e, bool later, struct td_pool *pool, struct td_diagnosis *out)
{
    struct hearing *list = calloc(MAX_HEARINGS, sizeof *list);
    uint64_t count = 0;
    bool heard = list != NULL;
    for (int f = 0; list && f < FAMILIES; f++) {
        if (families[f].later != later || (families[f].suspect != td_suspect_places && !has_rule(e)))
            continue;
        for (int axis = 0; axis < (families[f].each_axis ? e->shape.ndim : 1); axis++)
            list[count++] = (struct hearing){.suspect = families[f].suspect, .axis = axis};
    }
    if (list)
        td_pool_run(pool, count, hear, &(struct session){e, list});
    for (uint64_t i = 0; i < count; i++) {
        heard = heard && !list[i].starved;
        for (int k = 0; k < list[i].found.count; k++)
            insert(out, &list[i].found.list[k]);
    }
    free(list);
    return heard;
}

/* One number explains all of it, and of what explains all of it the simplest comes first: whatever else there
 * is comes behind. */
static bool is_settled(const struct td_diagnosis *d)
{
    enum td_kind_of_mistake kind = d->count > 0 && d->list[0].complete ? d->list[0].kind : TD_IS_UNKNOWN;
    return kind == TD_IS_SIGN || kind == TD_IS_SCALE;
}

tdbg_status td_diagnose(const struct td_case *c, struct td_pool *pool, struct td_diagnosis *out,
                        struct tdbg_error *error)
{
    struct td_evidence e;
    struct td_survey survey;
    struct td_arena arena;
    *out = (struct td_diagnosis){0};
    td_arena_init(&arena, TD_MAX_METADATA);
    tdbg_status status = evidence_init(&e, c, &survey, pool, &arena, error);
    if (status != TDBG_OK) {
        td_arena_release(&arena);
        return status;
    }
    bool heard = hear_some(&e, false, pool, out) && (is_settled(out) || hear_some(&e, true, pool, out));
    add_unknown(&e, out);
    evidence_release(&e);
    td_arena_release(&arena);
    return heard ? TDBG_OK : td_fail_nomem(error);
}
