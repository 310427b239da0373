/* scheme.c: see scheme.h. */
#include "compare/match/scheme.h"

#include "compare/judge/grid.h"
#include "compare/judge/verdict.h"
#include "compare/match/crowds.h"
#include "compare/name/name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Layers that are looked at: the first two, one in the middle, the last. A mistake of the model mostly shows
 * in none of the first, or in all. */
enum { LOOKED_AT = 4 };

/* More templates than that on a side are no model but a list of names; names pair them. */
enum { MOST_SCHEMES = 4096 };

/* --- templates ------------------------------------------------------------------------------------------ */

struct entry {
    const struct td_item *item;
    size_t index;
};

static int by_scheme(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = strcmp(a->item->scheme, b->item->scheme);
    if (order == 0)
        order = td_compare_numbers(a->item->layer, b->item->layer);
    return order ? order : td_compare_numbers((int64_t)a->item->order, (int64_t)b->item->order);
}

/* Computed values with something to recognise them by. */
static bool is_run_value(const struct td_matching *m, enum td_which which, size_t i)
{
    const struct td_item *item = &m->side[which]->items[i];
    return !m->paired[which][i] && !item->parameter && item->part_count == 1 && item->parts[0]->count >= 2;
}

/* What goes into a module is what came out of the one before it. */
static enum td_role feeds(enum td_role role)
{
    switch (role) {
    case TD_ROLE_NORM_ATTN:
        return TD_ROLE_STREAM;
    case TD_ROLE_ATTN_Q:
    case TD_ROLE_ATTN_K:
    case TD_ROLE_ATTN_V:
    case TD_ROLE_ATTN_QKV:
    case TD_ROLE_ATTN:
        return TD_ROLE_NORM_ATTN;
    case TD_ROLE_ATTN_Q_NORM:
        return TD_ROLE_ATTN_Q;
    case TD_ROLE_ATTN_K_NORM:
        return TD_ROLE_ATTN_K;
    case TD_ROLE_ATTN_O:
        return TD_ROLE_CONTEXT;
    case TD_ROLE_NORM_ATTN_POST:
        return TD_ROLE_ATTN_O;
    case TD_ROLE_NORM_MLP:
        return TD_ROLE_STREAM_MID;
    case TD_ROLE_MLP_GATE:
    case TD_ROLE_MLP_UP:
    case TD_ROLE_MLP_GATE_UP:
    case TD_ROLE_MLP:
    case TD_ROLE_ROUTER:
        return TD_ROLE_NORM_MLP;
    case TD_ROLE_MLP_DOWN:
        return TD_ROLE_MLP_PRODUCT;
    case TD_ROLE_NORM_MLP_POST:
        return TD_ROLE_MLP_DOWN;
    case TD_ROLE_HEAD:
        return TD_ROLE_NORM_FINAL;
    default:
        return TD_ROLE_NONE;
    }
}

/* A name that ends in a number, or in a word for a whole part of the model. */
bool td_names_container(const struct td_item *item)
{
    static const char *const words[] = {"mlp",    "attn",  "self_attn", "attention", "self_attention",
                                        "ffn",    "moe",   "encoder",   "decoder",   "model",
                                        "output", "input", "layer",     "block",     "feed_forward"};
    struct td_word word, last = {0};
    const char *stage = item->layer >= 0 ? item->stage : item->name;
    size_t length = strlen(stage);
    for (size_t at = 0; td_word_next(stage, length, &at, false, &word);) {
        bool direction = td_word_is(&word, "output") || td_word_is(&word, "input");
        if (!word.number && (!direction || last.length == 0))
            last = word;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (last.length && td_word_is(&last, words[i]))
            return true;
    return last.length == 0;
}

/* The layer itself: "output", or what a call of it returned. */
static bool names_layer(const char *stage)
{
    struct td_word word;
    for (size_t at = 0, length = strlen(stage); td_word_next(stage, length, &at, false, &word);)
        if (!td_word_is(&word, "output") && !td_word_is(&word, "call") && !td_word_is(&word, "0") &&
            !(td_word_is(&word, "h") && strchr(stage, '/')))
            return false;
    return !strstr(stage, ".") && strcmp(stage, "0") != 0;
}

static void describe(struct td_scheme *s, const struct td_matching *m, enum td_which which)
{
    const struct td_item *item = &m->side[which]->items[s->items[0]];
    const struct td_identity *id = &m->identity[which][s->items[0]];
    s->layered = item->layer >= 0;
    s->container = td_names_container(item);
    s->role = id->role;
    s->other = id->other;
    s->guessed = id->guessed;
    s->kind = id->kind;
    s->stack = id->stack;
    s->order = (int64_t)item->order;
    if (id->kind == TD_PART_INPUT) {
        s->other = s->other ? feeds(s->other) : TD_ROLE_NONE;
        s->role = feeds(s->role);
    } else if (s->layered && names_layer(item->stage)) {
        s->role = TD_ROLE_LAYER;
    }
    s->partner = TD_NO_SCHEME;
}

size_t td_scheme_at(const struct td_schemes *s, const struct td_scheme *scheme, int64_t layer)
{
    if (!scheme->layered)
        return scheme->items[0];
    size_t low = 0, high = scheme->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->side->items[scheme->items[middle]].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < scheme->count && s->side->items[scheme->items[low]].layer == layer ? scheme->items[low]
                                                                                    : SIZE_MAX;
}

static bool has_role(const struct td_schemes *s, enum td_role role)
{
    for (size_t k = 0; k < s->count; k++)
        if (s->list[k].role == role)
            return true;
    return false;
}

/* "Qcur-0#2", a name that came up again; or what a module takes in, which is named after what puts it out. */
static bool is_repeated(const struct td_scheme *s)
{
    return s->kind == TD_PART_INPUT || strchr(s->name, '#') != NULL;
}

/* No other template of the role has the same layers. */
static bool is_only_one(const struct td_schemes *s, const struct td_scheme *x)
{
    for (size_t k = 0; k < s->count; k++) {
        const struct td_scheme *y = &s->list[k];
        bool fewer = y->count < x->count;
        const struct td_scheme *small = fewer ? y : x, *large = fewer ? x : y;
        if (y != x && y->role == x->role && !is_repeated(y) &&
            td_scheme_at(s, large, s->side->items[small->items[0]].layer) != SIZE_MAX)
            return false;
    }
    return true;
}

/* An "activation" behind a fused gate and up is what both were multiplied to; beside a gate of its own it is
 * what its name says. */
static void settle_roles(struct td_schemes *s)
{
    bool gate = has_role(s, TD_ROLE_MLP_GATE), fused = has_role(s, TD_ROLE_MLP_GATE_UP);
    size_t counts[TD_ROLES] = {0};
    for (size_t k = 0; k < s->count; k++) {
        struct td_scheme *x = &s->list[k];
        bool either = x->role == TD_ROLE_MLP_ACT && x->other == TD_ROLE_MLP_PRODUCT;
        if (either && (gate || fused)) {
            x->role = gate ? TD_ROLE_MLP_ACT : TD_ROLE_MLP_PRODUCT;
            x->other = TD_ROLE_NONE;
        }
        if (x->role == TD_ROLE_NORM_MLP && x->other == TD_ROLE_NORM_MLP)
            x->other = TD_ROLE_NONE; /* the whole side tells which of the two it is: match.c */
        counts[x->role] += !is_repeated(x);
    }
    for (size_t k = 0; k < s->count; k++) {
        struct td_scheme *x = &s->list[k];
        if (x->other != TD_ROLE_NONE && counts[x->other] > 0)
            x->other = TD_ROLE_NONE; /* what it might mean has a name of its own */
        x->only_one = counts[x->role] == 1 || is_only_one(s, x);
    }
}

static tdbg_status collect(struct td_schemes *out, struct td_matching *m, enum td_which which,
                           struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    struct entry *list = td_arena_array(&m->scratch, side->count + 1, sizeof *list);
    size_t *items = td_arena_array(&m->scratch, side->count + 1, sizeof *items), count = 0;
    out->side = side;
    out->list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list);
    out->readings = td_arena_array(&m->scratch, side->count + 1, sizeof(*out->readings));
    if (!list || !items || !out->list || !out->readings)
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++)
        if (is_run_value(m, which, i))
            list[count++] = (struct entry){&side->items[i], i};
    qsort(list, count, sizeof *list, by_scheme);
    for (size_t i = 0; i < count; i++) {
        items[i] = list[i].index;
        bool next = i == 0 || strcmp(list[i].item->scheme, list[i - 1].item->scheme) != 0;
        if (next)
            out->list[out->count++] = (struct td_scheme){.name = list[i].item->scheme, .items = items + i};
        out->list[out->count - 1].count++;
    }
    for (size_t k = 0; k < out->count; k++)
        describe(&out->list[k], m, which);
    settle_roles(out);
    out->first_layered = INT64_MAX;
    for (size_t k = 0; k < out->count; k++) {
        const struct td_scheme *x = &out->list[k];
        if (x->layered && x->order < out->first_layered)
            out->first_layered = x->order;
        if (x->layered && x->order > out->last_layered)
            out->last_layered = x->order;
    }
    return TDBG_OK;
}

/* --- prints --------------------------------------------------------------------------------------------- */

/* The length of the sequence: the size that most values have an axis of. The first of four axes counts
 * sequences, the last of two or more holds channels. */
static int64_t find_length(const struct td_schemes *s)
{
    enum { SIZES = 64 };
    int64_t sizes[SIZES];
    size_t counts[SIZES] = {0}, known = 0, best = 0;
    for (size_t k = 0; k < s->count; k++) {
        const struct td_tensor *tensor = s->side->items[s->list[k].items[0]].parts[0];
        const struct td_shape *shape = &tensor->shape;
        if (td_unit_roundoff(tensor->dtype) == 0) /* ids and masks: a batch of rows of tokens */
            continue;
        for (int d = shape->ndim == 4; d < shape->ndim - 1; d++) {
            size_t i = 0;
            while (i < known && sizes[i] != shape->size[d])
                i++;
            if (i == SIZES || shape->size[d] < 2)
                continue;
            if (i == known)
                sizes[known++] = shape->size[d];
            counts[i]++;
        }
    }
    for (size_t i = 1; i < known; i++)
        if (counts[i] > counts[best] || (counts[i] == counts[best] && sizes[i] >= 2 * sizes[best]))
            best = i;
    return known ? sizes[best] : 0;
}

/* How many sequences there are: an axis of that many is in front of the tokens, or right behind them, in most
 * values. */
static int64_t find_batch(const struct td_schemes *s, int64_t length)
{
    int64_t best = 1;
    size_t most = 0, all = 0;
    for (size_t k = 0; k < s->count; k++) {
        const struct td_shape *shape = &s->side->items[s->list[k].items[0]].parts[0]->shape;
        int64_t batch = 1;
        if (shape->ndim >= 3 && shape->size[1] == length)
            batch = shape->size[0];
        else if (shape->ndim >= 3 && shape->size[0] == length)
            batch = shape->size[1];
        else if (shape->ndim == 0 || shape->size[0] != length)
            continue;
        all++;
        if (most == 0 || batch == best)
            best = batch, most++;
        else
            most--; /* of a majority something is left at the end */
    }
    size_t count = 0;
    for (size_t k = 0; k < s->count; k++) {
        const struct td_shape *shape = &s->side->items[s->list[k].items[0]].parts[0]->shape;
        count += shape->ndim >= 3 && ((shape->size[1] == length && shape->size[0] == best) ||
                                      (shape->size[0] == length && shape->size[1] == best));
    }
    return best > 1 && 2 * count > all ? best : 1;
}

/* Both sides ran the same tokens. Where one has joined the batch with them, its sequences are longer by a
 * whole factor. */
static void find_tokens(struct td_schemes s[2])
{
    int64_t length[2] = {find_length(&s[0]), find_length(&s[1])}, batch = 1;
    int shorter = length[1] < length[0];
    if (length[0] > 1 && length[1] > 1) {
        batch = find_batch(&s[shorter], length[shorter]);
        if (length[0] == length[1] && batch == 1)
            batch = find_batch(&s[1], length[1]);
        if (batch > 1 && length[!shorter] == batch * length[shorter])
            length[!shorter] = length[shorter];
    }
    td_tokens_choose(&s[0].tokens, &s[1].tokens, length[0], length[1], batch);
}

struct taking {
    struct td_schemes *schemes;
    struct td_matching *m;
    size_t *items, count;
    struct td_arena *arenas; /* one for each item */
    struct td_reading *readings;
};

static void take_print(void *context, uint64_t i)
{
    struct taking *t = context;
    td_arena_init(&t->arenas[i], TD_MAX_METADATA);
    if (td_job_cancelled(t->m->work.job))
        return;
    t->readings[i].count = td_print_take(t->readings[i].prints, &t->schemes->side->items[t->items[i]],
                                         &t->schemes->tokens, &t->arenas[i]);
}

static int by_number(const void *x, const void *y)
{
    return td_compare_numbers(*(const int64_t *)x, *(const int64_t *)y);
}

/* The layers of a side that are looked at, in its own numbers. */
static int choose_layers(const struct td_schemes *s, int64_t layers[LOOKED_AT], struct td_arena *arena)
{
    int64_t *all = td_arena_array(arena, s->side->count + 1, sizeof *all);
    size_t n = 0, distinct = 0;
    for (size_t i = 0; all && i < s->side->count; i++)
        if (s->side->items[i].layer >= 0)
            all[n++] = s->side->items[i].layer;
    if (n)
        qsort(all, n, sizeof *all, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || all[i] != all[i - 1])
            all[distinct++] = all[i];
    const size_t wanted[LOOKED_AT] = {0, 1, distinct / 2, distinct ? distinct - 1 : 0};
    int count = 0;
    for (int i = 0; i < LOOKED_AT; i++)
        if (wanted[i] < distinct && (count == 0 || all[wanted[i]] > layers[count - 1]))
            layers[count++] = all[wanted[i]];
    return count;
}

/* Items of the layers that are looked at; of a template that has none of them its first. */
static void choose_items(struct taking *t, const int64_t *layers, int layer_count)
{
    const struct td_schemes *s = t->schemes;
    for (size_t k = 0; k < s->count; k++) {
        size_t before = t->count;
        for (int l = 0; s->list[k].layered && l < layer_count; l++) {
            size_t item = td_scheme_at(s, &s->list[k], layers[l]);
            if (item != SIZE_MAX)
                t->items[t->count++] = item;
        }
        if (t->count == before)
            t->items[t->count++] = s->list[k].items[0];
    }
}

static tdbg_status take_prints(struct td_schemes *s, struct td_matching *m, const int64_t *layers,
                               int layer_count, struct tdbg_error *error)
{
    size_t most = s->count * LOOKED_AT + 1;
    struct taking t = {.schemes = s, .m = m};
    t.items = td_arena_array(&m->scratch, most, sizeof *t.items);
    t.readings = td_arena_array(&m->scratch, most, sizeof *t.readings);
    t.arenas = calloc(most, sizeof *t.arenas);
    tdbg_status status = t.items && t.readings && t.arenas ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        choose_items(&t, layers, layer_count);
        t.count = td_crowds_afford(s, t.items, t.count);
        td_pool_run(m->work.pool, t.count, take_print, &t);
        for (size_t i = 0; i < t.count; i++) {
            s->readings[t.items[i]] = &t.readings[i];
            if (status == TDBG_OK && !td_arena_join(&m->scratch, &t.arenas[i]))
                status = td_fail_nomem(error);
            td_arena_release(&t.arenas[i]);
        }
    }
    if (status == TDBG_OK && td_job_cancelled(m->work.job))
        status = td_fail(error, TDBG_CANCELLED, "stopped");
    free(t.arenas);
    return status;
}

/* Of the type that most values have, or of the grid they lie on. */
static double unit_of(const struct td_schemes *s)
{
    size_t coarse = 0;
    double unit = 0;
    for (size_t k = 0; k < s->count; k++) {
        double u = td_unit_roundoff(s->side->items[s->list[k].items[0]].parts[0]->dtype);
        coarse += u > 0x1p-20;
        unit = fmax(unit, u);
    }
    return fmax(td_side_grid(s->side), 2 * coarse > s->count ? unit : 0);
}

/* As many layers on both sides that begin elsewhere: one counts from 1. Where names or values have told an
 * offset that stands. */
static void count_from_one(struct td_matching *m)
{
    int64_t least[2], most[2];
    for (int s = 0; s < 2; s++) {
        least[s] = INT64_MAX;
        most[s] = -1;
        for (size_t i = 0; i < m->side[s]->count; i++) {
            int64_t layer = m->side[s]->items[i].layer;
            if (layer >= 0 && layer < least[s])
                least[s] = layer;
            most[s] = layer > most[s] ? layer : most[s];
        }
    }
    int64_t offset = least[1] - least[0];
    if (m->layer_offset == 0 && most[0] > least[0] && most[0] - least[0] == most[1] - least[1] &&
        (offset == 1 || offset == -1))
        m->layer_offset = offset;
}

tdbg_status td_schemes_init(struct td_schemes out[2], struct td_matching *m, struct tdbg_error *error)
{
    int64_t layers[2][LOOKED_AT];
    int counts[2];
    count_from_one(m);
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++) {
        out[which] = (struct td_schemes){0};
        TD_TRY(collect(&out[which], m, which, error));
        out[which].unit = unit_of(&out[which]);
    }
    if (out[0].count > MOST_SCHEMES || out[1].count > MOST_SCHEMES)
        out[0].count = out[1].count = 0;
    find_tokens(out);
    counts[0] = choose_layers(&out[0], layers[0], &m->scratch);
    /* The same layers of B, in its numbers. */
    for (counts[1] = 0; counts[1] < counts[0]; counts[1]++)
        layers[1][counts[1]] = layers[0][counts[1]] + m->layer_offset;
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++)
        TD_TRY(take_prints(&out[which], m, layers[which], counts[which], error));
    return td_crowds_silence(out, &m->scratch, error);
}
