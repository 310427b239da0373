/* suspect_run.c: mistakes that show against other tensors of the same run: B's key is A's value, B's layer 4
 * is A's layer 3, the rotary embedding of `query` was left out or done in another way.
 */
#include "compare/diagnose/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- another tensor in its place ------------------------------------------------------------------------ */

static bool same_shape(const struct td_item *x, const struct td_item *y)
{
    const struct td_shape *p = &x->parts[0]->shape, *q = &y->parts[0]->shape;
    return x->part_count == y->part_count && p->ndim == q->ndim &&
           memcmp(p->size, q->size, (size_t)p->ndim * sizeof p->size[0]) == 0;
}

/* Stages of one layer resemble each other (a norm of the residual stream, a value and its copy): to be the
 * other tensor, B must be it to within a tenth of the error. */
static const double MISTAKEN_FOR = 0.9;

/* Cheap refusal: the first few thousand values already differ too much. */
static bool could_be(struct td_evidence *e, const struct td_item *item)
{
    struct td_evidence head = *e;
    if (head.count > 4096)
        head.count = 4096;
    if (!td_evidence_work(e))
        return false;
    head.work = e->work;
    if (!td_evidence_load(&head, item))
        return false;
    double power = 0, rest = 0;
    for (int64_t i = 0; i < head.count; i++) {
        power += e->b[i] * e->b[i];
        rest += (e->b[i] - e->work[i]) * (e->b[i] - e->work[i]);
    }
    return rest < 0.25 * power;
}

/* `query` for `query_final`, or NULL. */
static const struct td_item *stage_before_embedding(const struct td_evidence *e)
{
    static const char suffix[] = "_final";
    const struct td_item *mine = e->c->item_a;
    size_t n = strlen(mine->stage), m = sizeof suffix - 1;
    if (n <= m || strcmp(mine->stage + n - m, suffix) != 0)
        return NULL;
    for (size_t i = 0; i < e->c->a->count; i++) {
        const struct td_item *item = &e->c->a->items[i];
        if (item->layer == mine->layer && strlen(item->stage) == n - m &&
            strncmp(item->stage, mine->stage, n - m) == 0)
            return item;
    }
    return NULL;
}

void td_suspect_exchanged(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    const struct td_item *mine = e->c->item_a;
    for (size_t i = 0; i < e->c->a->count; i++) {
        const struct td_item *item = &e->c->a->items[i];
        bool same_layer = item->layer == mine->layer, same_stage = strcmp(item->stage, mine->stage) == 0;
        if (item == mine || item == stage_before_embedding(e) || same_layer == same_stage ||
            !same_shape(item, mine) || !could_be(e, item) || !td_evidence_load(e, item))
            continue;
        double rest = td_rest(e, e->work);
        if (td_explained(e, rest) < MISTAKEN_FOR)
            continue;
        if (same_layer)
            td_enter(e, d, TD_IS_SWAP, rest, 1, "B's %s is A's %s", mine->stage, item->stage);
        else
            td_enter(e, d, TD_IS_STALE, rest, 1, "B's %s of layer %lld is A's of layer %lld", mine->stage,
                     (long long)mine->layer, (long long)item->layer);
    }
}

/* --- rotary embedding ----------------------------------------------------------------------------------- */

/* One angle for every token and pair of channels, shared by the heads. */
struct rotation {
    int64_t tokens, pairs, token_stride, width;
    double *angle;
};

enum pairing { HALVES, NEIGHBOURS };

static int64_t partner(enum pairing p, int64_t width, int64_t pair, int second)
{
    return p == HALVES ? pair + second * (width / 2) : 2 * pair + second;
}

/* The angles that turn x into y best, and what they leave: |y - R x|^2. Each token leaves its own share, so
 * beyond `most` the others, and their angles, do not matter. */
static double fit_rotation(struct td_evidence *e, struct rotation *r, enum pairing p, const double *x,
                           const double *y, double most)
{
    double *dot = malloc(((size_t)r->pairs * 2 + 1) * sizeof *dot), *cross = dot + r->pairs, rest = 0;
    e->starved |= !dot;
    for (int64_t t = 0; dot && t < r->tokens && rest <= most; t++) {
        memset(dot, 0, (size_t)r->pairs * 2 * sizeof *dot);
        for (int64_t first = t * r->token_stride; first < e->count; first += r->tokens * r->token_stride)
            for (int64_t at = first; at < first + r->token_stride; at += r->width)
                for (int64_t k = 0; k < r->pairs; k++) {
                    int64_t u = at + partner(p, r->width, k, 0), v = at + partner(p, r->width, k, 1);
                    dot[k] += x[u] * y[u] + x[v] * y[v];
                    cross[k] += x[u] * y[v] - x[v] * y[u];
                    rest += x[u] * x[u] + x[v] * x[v] + y[u] * y[u] + y[v] * y[v];
                }
        for (int64_t k = 0; k < r->pairs; k++) {
            r->angle[t * r->pairs + k] = atan2(cross[k], dot[k]);
            rest -= 2 * hypot(dot[k], cross[k]);
        }
    }
    free(dot);
    return dot ? rest : INFINITY;
}

/* |b - R x|^2 with given angles, turned by `sense` (1 or -1); beyond td_most_left only that it is more. */
static double rest_of_rotation(const struct td_evidence *e, const struct rotation *r, enum pairing p,
                               const double *x, int sense)
{
    const double most = td_most_left(e);
    double rest = 0;
    for (int64_t row = 0; row < e->count / r->width && rest <= most; row++) {
        int64_t at = row * r->width, t = at / r->token_stride % r->tokens;
        for (int64_t k = 0; k < r->pairs; k++) {
            int64_t u = at + partner(p, r->width, k, 0), v = at + partner(p, r->width, k, 1);
            double c = cos(r->angle[t * r->pairs + k]), s = sense * sin(r->angle[t * r->pairs + k]);
            double du = e->b[u] - (c * x[u] - s * x[v]), dv = e->b[v] - (s * x[u] + c * x[v]);
            rest += du * du + dv * dv;
        }
    }
    return rest;
}

static bool rotation_init(struct rotation *r, const struct td_evidence *e, int64_t width)
{
    int last = e->shape.ndim - 1;
    if (e->token_axis < 0 || e->token_axis == last || width < 4 || width % 2 || e->shape.size[last] % width)
        return false;
    *r = (struct rotation){
        .tokens = e->shape.size[e->token_axis], .pairs = width / 2, .token_stride = 1, .width = width};
    for (int i = e->token_axis + 1; i <= last; i++)
        r->token_stride *= e->shape.size[i];
    r->angle = calloc((size_t)(r->tokens * r->pairs) + 1, sizeof *r->angle);
    return r->angle != NULL;
}

/* The first pair turns fastest, by one radian a position in every usual scheme. */
static void describe_rotation(const struct rotation *r, char *out, size_t size)
{
    double first = r->angle[0], spread = 0;
    for (int64_t t = 0; t < r->tokens; t++)
        spread = fmax(spread, fabs(remainder(r->angle[t * r->pairs] - first, 2 * M_PI)));
    if (spread < 0.1)
        snprintf(out, size, "every token turned on by the same %.3g positions", first);
    else
        snprintf(out, size, "angles that differ from token to token: other frequencies or positions");
}

/* A and B are turned against each other. */
static void suspect_turned(struct td_evidence *e, struct td_diagnosis *d, struct rotation *r)
{
    for (int p = HALVES; p <= NEIGHBOURS; p++) {
        double rest = fit_rotation(e, r, (enum pairing)p, e->a, e->b, td_most_left(e));
        if (!(rest <= td_most_left(e)))
            continue;
        char how[128];
        describe_rotation(r, how, sizeof how);
        td_enter(e, d, TD_IS_ROPE, rest, (double)(r->tokens * r->pairs), "%.1f %% explained by %s",
                 100 * td_explained(e, rest), how);
    }
}

/* From the tensor before the embedding (in e->work): left out, in another pairing, the other way round. */
static void suspect_embedding(struct td_evidence *e, struct td_diagnosis *d, struct rotation *r)
{
    double rest = td_rest(e, e->work);
    td_enter(e, d, TD_IS_ROPE, rest, 1, "%.1f %% explained by no rotary embedding at all",
             100 * td_explained(e, rest));
    double halves = fit_rotation(e, r, HALVES, e->work, e->a, INFINITY);
    double neighbours = fit_rotation(e, r, NEIGHBOURS, e->work, e->a, INFINITY);
    enum pairing in_a = halves <= neighbours ? HALVES : NEIGHBOURS,
                 other = in_a == HALVES ? NEIGHBOURS : HALVES;
    fit_rotation(e, r, in_a, e->work, e->a, INFINITY);
    rest = rest_of_rotation(e, r, other, e->work, 1);
    td_enter(e, d, TD_IS_ROPE, rest, 1, "%.1f %% explained by B pairing %s where A pairs %s",
             100 * td_explained(e, rest), other == HALVES ? "halves" : "neighbours",
             in_a == HALVES ? "halves" : "neighbours");
    rest = rest_of_rotation(e, r, in_a, e->work, -1);
    td_enter(e, d, TD_IS_ROPE, rest, 1, "%.1f %% explained by the opposite sense of rotation",
             100 * td_explained(e, rest));
}

static void suspect_rotary(struct td_evidence *e, struct td_diagnosis *d, int64_t width)
{
    struct rotation r;
    if (!rotation_init(&r, e, width))
        return;
    suspect_turned(e, d, &r);
    const struct td_item *before = stage_before_embedding(e);
    if (before && td_evidence_load(e, before))
        suspect_embedding(e, d, &r);
    free(r.angle);
}

void td_suspect_rotation(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    if (e->shape.ndim < 2)
        return;
    int64_t last = e->shape.size[e->shape.ndim - 1];
    bool has_head_axis = e->shape.ndim >= 3;
    if (has_head_axis)
        suspect_rotary(e, d, last);
    for (int h = 0; h < e->c->heads->count; h++)
        if (last % e->c->heads->size[h] == 0 && !(has_head_axis && last == e->c->heads->size[h]))
            suspect_rotary(e, d, e->c->heads->size[h]);
}
