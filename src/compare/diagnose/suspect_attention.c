/* suspect_attention.c: recomputes attention from A's own query, key and value and asks which change of scale,
 * mask or head grouping turns A's output into B's.
 *
 * Only where the dumps hold all three, and only after the plain formula reproduced A: then a variant that
 * reproduces B is an explanation and not a guess. All in double precision; sizes beyond a second of work are
 * left alone.
 */
#include "compare/diagnose/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds of one replay; a dozen replays stay within about a second. */
#define MAX_WORK (INT64_C(1) << 26)

struct heads3 { /* [tokens][heads][size] */
    int64_t tokens, heads, size;
    double *data;
};

struct attention {
    struct heads3 q, k, v;
    double scale;
    int64_t window;                /* 0: none */
    int64_t ahead;                 /* how many later tokens are seen; -1: not even itself */
    bool tiled_keys, tiled_values; /* query head h uses head h % kv instead of h / group */
};

/* The item as tokens x heads x size, whatever order its axes have. */
static bool load_heads(const struct td_item *item, int64_t tokens, struct heads3 *out)
{
    struct td_arena arena;
    struct td_operand o;
    const struct td_shape *shape = &item->parts[0]->shape;
    bool batch = shape->ndim == 4 && shape->size[0] == 1;
    struct td_steps steps = {.count = batch, .step = {{.kind = TD_STEP_TAKE, .to = 1}}};
    bool ok = false;
    td_arena_init(&arena, TD_MAX_METADATA);
    if (item->part_count == 1 && td_operand_make(&o, item, &steps, &arena, NULL) == TDBG_OK &&
        o.shape.ndim == 3 && (o.shape.size[0] == tokens || o.shape.size[1] == tokens)) {
        if (o.shape.size[0] != tokens)
            steps.step[steps.count++] = (struct td_step){.kind = TD_STEP_PERMUTE, .list = {3, {1, 0, 2}}};
        ok = td_operand_make(&o, item, &steps, &arena, NULL) == TDBG_OK && o.count <= TD_EVIDENCE_LIMIT;
    }
    if (ok) {
        *out = (struct heads3){o.shape.size[0], o.shape.size[1], o.shape.size[2], NULL};
        out->data = malloc((size_t)o.count * sizeof *out->data + 1);
        ok = out->data && td_operand_load(&o, 0, o.count, out->data, NULL) == TDBG_OK;
    }
    td_arena_release(&arena);
    return ok;
}

static const struct td_item *find(const struct td_evidence *e, const char *stage)
{
    for (size_t i = 0; i < e->c->a->count; i++) {
        const struct td_item *item = &e->c->a->items[i];
        if (item->layer == e->c->item_a->layer && strcmp(item->stage, stage) == 0)
            return item;
    }
    return NULL;
}

static bool scalar_of(const struct td_item *item, double *out)
{
    struct td_arena arena;
    struct td_operand o;
    struct td_steps none = {0};
    if (!item)
        return false;
    td_arena_init(&arena, TD_MAX_METADATA);
    bool ok = td_operand_make(&o, item, &none, &arena, NULL) == TDBG_OK && o.count == 1 &&
              td_operand_load(&o, 0, 1, out, NULL) == TDBG_OK;
    td_arena_release(&arena);
    return ok;
}

/* out[tokens][heads][size of v] */
static void replay(const struct attention *at, double *weights, double *out)
{
    int64_t n = at->q.tokens, group = at->q.heads / at->k.heads, spread = at->q.heads / at->v.heads;
    for (int64_t t = 0; t < n; t++)
        for (int64_t h = 0; h < at->q.heads; h++) {
            int64_t kh = at->tiled_keys ? h % at->k.heads : h / group,
                    vh = at->tiled_values ? h % at->v.heads : h / spread;
            double largest = -INFINITY, total = 0;
            for (int64_t s = 0; s < n; s++) {
                bool seen = s <= t + at->ahead && (at->window == 0 || t - s < at->window);
                weights[s] =
                    seen ? at->scale * td_dot(at->q.data + (t * at->q.heads + h) * at->q.size,
                                              at->k.data + (s * at->k.heads + kh) * at->k.size, at->q.size)
                         : -INFINITY;
                largest = fmax(largest, weights[s]);
            }
            for (int64_t s = 0; s < n; s++) {
                weights[s] = largest > -INFINITY ? exp(weights[s] - largest) : 0;
                total += weights[s];
            }
            double *to = out + (t * at->q.heads + h) * at->v.size;
            memset(to, 0, (size_t)at->v.size * sizeof *to);
            for (int64_t s = 0; s < n; s++)
                if (weights[s] > 0)
                    for (int64_t i = 0; i < at->v.size; i++)
                        to[i] += weights[s] / total * at->v.data[(s * at->v.heads + vh) * at->v.size + i];
        }
}

static void try_variant(struct td_evidence *e, struct td_diagnosis *d, const struct attention *variant,
                        double *weights, enum td_kind_of_mistake kind, const char *what)
{
    replay(variant, weights, e->work);
    double rest = td_rest(e, e->work);
    td_enter(e, d, kind, rest, 1, "%.1f %% explained by attention with %s (replayed from A's q, k, v)",
             100 * td_explained(e, rest), what);
}

static void try_scales(struct td_evidence *e, struct td_diagnosis *d, struct attention at, double *weights)
{
    double n = (double)at.q.size, right = at.scale;
    const struct {
        double value;
        const char *text;
    } scales[] = {{1, "a scale of 1"},
                  {1 / n, "a scale of 1/size"},
                  {1 / sqrt(n), "a scale of 1/sqrt(size)"},
                  {right * right, "the scale applied twice"},
                  {right * 1.4426950408889634, "the scale times log2(e)"},
                  {right / sqrt((double)at.q.heads), "the scale of the whole width instead of one head"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        at.scale = scales[i].value;
        if (fabs(at.scale / right - 1) > 1e-3)
            try_variant(e, d, &at, weights, TD_IS_SCALE, scales[i].text);
    }
}

static void try_masks(struct td_evidence *e, struct td_diagnosis *d, const struct attention *right,
                      double *weights)
{
    int64_t n = right->q.tokens;
    struct attention at = *right;
    at.ahead = 1;
    try_variant(e, d, &at, weights, TD_IS_MASK, "each token seeing one later token");
    at.ahead = -1;
    try_variant(e, d, &at, weights, TD_IS_MASK, "no token seeing itself");
    at.ahead = n;
    try_variant(e, d, &at, weights, TD_IS_MASK, "no causal mask");
    at = *right;
    if (right->window) {
        at.ahead = n;
        at.window = 0;
        try_variant(e, d, &at, weights, TD_IS_MASK, "no mask at all");
        at.ahead = 0;
        try_variant(e, d, &at, weights, TD_IS_MASK, "no sliding window");
    }
    for (int64_t w = 1; w <= n && w <= 32; w++) {
        char text[64];
        snprintf(text, sizeof text, "a sliding window of %lld", (long long)w);
        at.window = w;
        if (w != right->window)
            try_variant(e, d, &at, weights, TD_IS_MASK, text);
    }
}

static void try_groupings(struct td_evidence *e, struct td_diagnosis *d, const struct attention *right,
                          double *weights)
{
    static const char *const what[] = {NULL, "key heads tiled instead of repeated",
                                       "value heads tiled instead of repeated",
                                       "key and value heads tiled instead of repeated"};
    bool keys = right->k.heads > 1 && right->k.heads < right->q.heads;
    bool values = right->v.heads > 1 && right->v.heads < right->q.heads;
    for (int which = 1; which < 4; which++) {
        struct attention at = *right;
        if ((which & 1 && !keys) || (which & 2 && !values))
            continue;
        at.tiled_keys = which & 1;
        at.tiled_values = which & 2;
        try_variant(e, d, &at, weights, TD_IS_PERMUTATION, what[which]);
    }
}

static void hear(struct td_evidence *e, struct td_diagnosis *d, struct attention *at, double *weights)
{
    double number;
    at->scale = scalar_of(find(e, "scaling"), &number) && number > 0 ? number : 1 / sqrt((double)at->q.size);
    at->window = scalar_of(find(e, "sliding"), &number) && number >= 1 ? (int64_t)number : 0;
    replay(at, weights, e->work);
    double miss = 0;
    for (int64_t i = 0; i < e->count; i++)
        miss += (e->work[i] - e->a[i]) * (e->work[i] - e->a[i]);
    /* A's own rounding, and that of its inputs, may show; a tenth of the bug's size may not. */
    if (miss > 0.01 * e->power_d)
        return;
    try_scales(e, d, *at, weights);
    try_masks(e, d, at, weights);
    try_groupings(e, d, at, weights);
}

void td_suspect_attention(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    const struct td_item *q = find(e, "query_final"), *k = find(e, "key_final"), *v = find(e, "value_final");
    struct attention at = {0};
    if (strcmp(e->c->item_a->stage, "post_attn") != 0 || !q || !k || !v || e->token_axis != 0 || e->survey)
        return;
    int64_t n = e->shape.size[0];
    if (load_heads(q, n, &at.q) && load_heads(k, n, &at.k) && load_heads(v, n, &at.v) &&
        at.q.size == at.k.size && at.q.heads % at.k.heads == 0 && at.q.heads % at.v.heads == 0 &&
        n * at.q.heads * at.v.size == e->count && n * n * at.q.heads * (at.q.size + at.v.size) <= MAX_WORK &&
        td_evidence_work(e)) {
        double *weights = calloc((size_t)n + 1, sizeof *weights);
        if (weights)
            hear(e, d, &at, weights);
        free(weights);
    }
    free(at.q.data);
    free(at.k.data);
    free(at.v.data);
}
