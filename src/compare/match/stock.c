/* stock.c: see stock.h. */
#include "compare/match/stock.h"

#include "compare/judge/verdict.h"
#include "compare/name/name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More templates than that on a side are no model but a list of names; names pair them. */
enum { MOST_STOCKS = 1024 };

/* Values agree within this share of their size: both of float32, one of 16 bits, one quantised. */
static const double FINE = 1e-3, HALF = 0.015, COARSE = 0.1, FINE_UNIT = 0x1p-20, HALF_UNIT = 0x1p-8;

/* Two layers together that correlate by less have nothing in common in this reading. */
static const double NOTHING = 0.2;

static const double AGREES = 4, A_DECADE = 1, DECADES = 3, LIKENESS = 3, BAG = 1;

/* A norm's name says little (norm1 is behind attention in one model and before it in another); any other role
 * that both names plainly have is believed before values. */
static const double PLAINLY_SAME = 8, PLAINLY_OTHER = -6, MEANS_SAME = 1.5, MEANS_OTHER = -1, NORM_SAME = 0.5,
                    NORM_OTHER = -0.2;

/* --- templates ------------------------------------------------------------------------------------------ */

struct entry {
    const char *key; /* the template, or the name where the layers of the sides do not fit */
    const struct td_item *item;
    size_t index;
};

static int by_key(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    if (order == 0)
        order = td_compare_numbers(a->item->layer, b->item->layer);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Most of a side's tensors are stored, by their names. */
static bool is_of_weights(const struct td_side *side)
{
    size_t stored = 0;
    for (size_t i = 0; i < side->count; i++)
        stored += side->items[i].parameter;
    return 2 * stored > side->count;
}

/* An item of the other side has the very name; exact.c pairs the two. */
static tdbg_status find_namesakes(bool *held[2], struct td_matching *m, struct tdbg_error *error)
{
    struct td_keys keys[2];
    for (enum td_which s = TD_SIDE_A; s <= TD_SIDE_B; s++) {
        held[s] = td_arena_array(&m->scratch, m->side[s]->count + 1, sizeof *held[s]);
        if (!held[s])
            return td_fail_nomem(error);
        TD_TRY(td_keys_init(&keys[s], m, s, td_bare_name, error));
    }
    for (size_t i = 0; i < keys[0].count; i++) {
        size_t first, n = td_keys_find(&keys[1], keys[0].list[i].key, &first);
        held[0][keys[0].list[i].index] = n > 0;
        for (size_t k = 0; k < n; k++)
            held[1][keys[1].list[first + k].index] = true;
    }
    return TDBG_OK;
}

/* The layers of both sides are the same but for a few: what counts them means the same. */
static bool layers_fit(const struct td_matching *m)
{
    int64_t last[2] = {-1, -1};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < m->side[s]->count; i++)
            if (m->side[s]->items[i].layer > last[s])
                last[s] = m->side[s]->items[i].layer;
    return last[0] >= 0 && last[1] >= 0 && last[1] - m->layer_offset <= 2 * last[0] + 1 &&
           last[0] <= 2 * (last[1] - m->layer_offset) + 1;
}

static uint64_t module_of(const char *name)
{
    size_t end = strlen(name);
    while (end > 0 && !strchr("./:", name[end - 1]))
        end--;
    return td_hash_more(TD_HASH_START, name, end > 0 ? end : strlen(name)); /* of one part: alone */
}

static void describe(struct td_stock *s, const struct td_matching *m, enum td_which which, bool layered)
{
    const struct td_item *item = &m->side[which]->items[s->items[0]];
    const char *text = item->layer >= 0 ? item->stage : item->name;
    struct td_name name = td_name_split(item->name);
    if (item->layer < 0 && name.key)
        text = name.key;
    s->elements = item->parts[0]->count;
    s->layered = layered && item->layer >= 0;
    s->named = item->parameter;
    s->id = &m->identity[which][s->items[0]];
    s->module = module_of(s->name);
    s->partner = TD_NO_STOCK;
    td_word_bag_read(&s->words, text, strlen(text));
}

static tdbg_status collect(struct td_stocks *out, enum td_which which, const bool *held, bool layered,
                           struct tdbg_error *error)
{
    struct td_matching *m = out->m;
    const struct td_side *side = m->side[which];
    struct entry *list = td_arena_array(&m->scratch, side->count + 1, sizeof *list);
    size_t *items = td_arena_array(&m->scratch, side->count + 1, sizeof *items), count = 0;
    out->list[which] = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list[which]);
    out->seen[which] = td_arena_array(&m->scratch, side->count + 1, sizeof(*out->seen[which]));
    if (!list || !items || !out->list[which] || !out->seen[which])
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++) {
        const struct td_item *item = &side->items[i];
        if (held[i] || !td_is_free(m, which, i) || item->part_count != 1 || m->identity[which][i].gradient ||
            item->parts[0]->count < 2)
            continue;
        list[count++] = (struct entry){layered ? item->scheme : item->name, item, i};
    }
    if (count)
        qsort(list, count, sizeof *list, by_key);
    for (size_t i = 0; i < count; i++) {
        items[i] = list[i].index;
        if (i == 0 || strcmp(list[i].key, list[i - 1].key) != 0)
            out->list[which][out->count[which]++] =
                (struct td_stock){.name = list[i].key, .items = items + i};
        out->list[which][out->count[which] - 1].count++;
    }
    for (size_t k = 0; k < out->count[which]; k++)
        describe(&out->list[which][k], m, which, layered);
    return TDBG_OK;
}

tdbg_status td_stocks_init(struct td_stocks *out, struct td_matching *m, struct tdbg_error *error)
{
    bool *held[2], weights[2] = {is_of_weights(m->side[0]), is_of_weights(m->side[1])};
    *out = (struct td_stocks){.m = m};
    if (!weights[0] && !weights[1])
        return TDBG_OK;
    if (weights[0] && weights[1] && m->count == 0 && m->layer_offset == 0)
        TD_TRY(td_match_find_offset(m, error));
    TD_TRY(find_namesakes(held, m, error));
    bool layered = layers_fit(m);
    for (enum td_which s = TD_SIDE_A; s <= TD_SIDE_B; s++)
        TD_TRY(collect(out, s, held[s], layered, error));
    if (out->count[0] > MOST_STOCKS || out->count[1] > MOST_STOCKS)
        out->count[0] = out->count[1] = 0;
    return TDBG_OK;
}

size_t td_stock_at(const struct td_matching *m, enum td_which which, const struct td_stock *s, int64_t layer)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->side[which]->items[s->items[middle]].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && m->side[which]->items[s->items[low]].layer == layer ? s->items[low] : SIZE_MAX;
}

size_t td_stock_mate(const struct td_matching *m, const struct td_stock *a, size_t i,
                     const struct td_stock *b)
{
    if (a->layered != b->layered)
        return SIZE_MAX;
    if (!a->layered)
        return b->items[0];
    return td_stock_at(m, TD_SIDE_B, b, m->side[TD_SIDE_A]->items[a->items[i]].layer + m->layer_offset);
}

int td_stock_looks(const struct td_stock *s, size_t looks[TD_STOCK_LOOKS])
{
    const size_t wanted[TD_STOCK_LOOKS] = {0, 1, s->count / 2, s->count - 1};
    int n = 0;
    for (int i = 0; i < TD_STOCK_LOOKS; i++)
        if (wanted[i] < s->count && (n == 0 || wanted[i] > looks[n - 1]))
            looks[n++] = wanted[i];
    return n;
}

/* --- samples, each taken once ----------------------------------------------------------------------------
 */

struct td_seen {
    struct td_reading_of readings[TD_SAMPLE_READINGS];
    struct td_sample samples[TD_SAMPLE_READINGS];
    bool taken[TD_SAMPLE_READINGS];
    int count;
};

/* NULL: no memory, or it cannot be read. */
static const struct td_sample *see(struct td_stocks *s, enum td_which which, size_t index,
                                   const struct td_reading_of *reading)
{
    struct td_arena *arena = &s->m->scratch;
    struct td_seen **slot = &s->seen[which][index], *seen = *slot;
    if (!seen)
        seen = *slot = td_arena_alloc(arena, sizeof *seen);
    if (!seen)
        return NULL;
    static const struct td_reading_of plain;
    const struct td_reading_of *r = reading ? reading : &plain;
    int i = 0;
    while (i < seen->count && memcmp(&seen->readings[i], r, sizeof *r) != 0)
        i++;
    if (i == TD_SAMPLE_READINGS)
        return NULL;
    if (i == seen->count) {
        seen->readings[seen->count++] = *r;
        seen->taken[i] = td_sample_take(&seen->samples[i], &s->m->side[which]->items[index], reading, arena);
    }
    return seen->taken[i] ? &seen->samples[i] : NULL;
}

/* --- points --------------------------------------------------------------------------------------------- */

static bool is_norm(enum td_role role)
{
    return role == TD_ROLE_NORM_ATTN || role == TD_ROLE_NORM_MLP || role == TD_ROLE_NORM_ATTN_POST ||
           role == TD_ROLE_NORM_MLP_POST || role == TD_ROLE_NORM_FINAL || role == TD_ROLE_NORM_BARE;
}

/* Whether the kind is known to be another: a bias is no weight. */
static bool kinds_clash(const struct td_stock *a, const struct td_stock *b)
{
    return a->named && b->named && a->id->kind != b->id->kind && a->id->kind >= TD_PART_WEIGHT &&
           b->id->kind >= TD_PART_WEIGHT;
}

static double points_of_names(const struct td_stock *a, const struct td_stock *b, bool *same)
{
    const struct td_identity *x = a->id, *y = b->id;
    double points = BAG * td_word_bag_likeness(&a->words, &b->words);
    *same = false;
    if (x->stack != y->stack || x->cross != y->cross || x->expert != y->expert)
        points += MEANS_OTHER;
    if (x->role == TD_ROLE_NONE || y->role == TD_ROLE_NONE)
        return points;
    bool plain = !x->guessed && !y->guessed && x->other == TD_ROLE_NONE && y->other == TD_ROLE_NONE &&
                 !is_norm(x->role) && !is_norm(y->role) && a->layered == b->layered && x->stack == y->stack &&
                 x->cross == y->cross && x->expert == y->expert && x->kind == y->kind;
    *same = x->role == y->role && x->kind == y->kind && x->stack == y->stack && x->cross == y->cross &&
            x->expert == y->expert;
    if (is_norm(x->role) && is_norm(y->role))
        return points + (x->role == y->role ? NORM_SAME : NORM_OTHER);
    if (x->role == y->role)
        return points + (plain ? PLAINLY_SAME : MEANS_SAME);
    return points + (plain ? PLAINLY_OTHER : MEANS_OTHER);
}

static double tolerance_of(const struct td_item *a, const struct td_item *b)
{
    double unit = 0;
    const struct td_item *items[] = {a, b};
    for (int s = 0; s < 2; s++) {
        double own = td_unit_roundoff(items[s]->parts[0]->dtype);
        unit = fmax(unit, own > 0 ? own : 1);
    }
    return unit <= FINE_UNIT ? FINE : unit <= HALF_UNIT ? HALF : COARSE;
}

/* Correlation and the smallest error of one reading, over the layers that are looked at. */
static void try_reading(struct td_stocks *s, const struct td_stock *a, const struct td_stock *b,
                        const struct td_reading_of *reading, struct td_bond *best)
{
    size_t looks[TD_STOCK_LOOKS];
    int n = td_stock_looks(a, looks), seen = 0;
    double sum = 0, equal = 0;
    for (int i = 0; i < n; i++) {
        size_t mine = a->items[looks[i]], other = td_stock_mate(s->m, a, looks[i], b);
        if (other == SIZE_MAX)
            continue;
        const struct td_item *x = &s->m->side[0]->items[mine], *y = &s->m->side[1]->items[other];
        if (x->parts[0]->count != y->parts[0]->count)
            continue;
        const struct td_sample *p = see(s, TD_SIDE_A, mine, NULL), *q = see(s, TD_SIDE_B, other, reading);
        if (!p || !q)
            continue;
        seen++;
        sum += td_sample_correlation(p, q);
        if (seen == 2 && fabs(sum) < NOTHING && equal <= 0)
            break; /* a mistake may be in one of two layers, and the wrong reading is in both */
        double error = td_sample_error(p, q), tolerance = tolerance_of(x, y);
        if (!p->constant && p->count >= 8 && error <= tolerance)
            equal = fmax(equal,
                         AGREES + A_DECADE * fmin(log10(tolerance / fmax(error, tolerance * 1e-9)), DECADES));
    }
    double correlation = seen ? fabs(sum / seen) : 0;
    if (seen && equal + correlation > best->equal + best->correlation) {
        best->equal = equal;
        best->correlation = correlation;
    }
}

struct td_bond td_bond_of(struct td_stocks *s, const struct td_stock *a, const struct td_stock *b)
{
    struct td_bond bond = {.score = -1e9};
    if (a->elements != b->elements || a->layered != b->layered || kinds_clash(a, b))
        return bond;
    struct td_reading_of readings[TD_SAMPLE_READINGS] = {0};
    struct td_shape x = td_axes_of(&s->m->side[0]->items[a->items[0]]),
                    y = td_axes_of(&s->m->side[1]->items[b->items[0]]);
    int count = td_readings_of(readings, &x, &y);
    if (count == 0)
        return bond;
    for (int i = 0; i < count; i++) {
        try_reading(s, a, b, &readings[i], &bond);
        if (bond.correlation > 0.95 && bond.equal > 0)
            break;
    }
    bond.score = points_of_names(a, b, &bond.same_role) + bond.equal + LIKENESS * bond.correlation;
    return bond;
}
