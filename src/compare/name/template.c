/* template.c: see template.h.
 *
 * Every run of digits in a name without a known layer is a guess: the name with that run left open is a
 * group, and the group's numbers are what the names hold there. Groups vote for the number of layers; where
 * words tell some layers already, those decide. Then a name takes its first run whose group has most of the
 * layers: in "3.experts.0" and "blocks-3-w2" the first number that counts far enough.
 */
#include "compare/name/template.h"

#include "compare/name/name.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_RUNS = 6,   /* of digits in one name that are tried */
    MAX_DIGITS = 5, /* of a layer's number */
    MAX_LAYERS = 4096
};

/* Of the layers, a template has at least so many: some stages are in a few layers only, but those that tell
 * the number are in all. */
static const double MOST_LAYERS = 0.6;

/* One run of digits of one name. */
struct guess {
    uint64_t group; /* hash of the name without it */
    int64_t number;
    size_t item;
    size_t begin, end;
    bool fits; /* its group has enough numbers to be of layers */
};

struct guesses {
    struct guess *list;
    size_t count;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint64_t hash_text(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where the name without the file's extension ends. */
static size_t useful_length(const struct td_name *name, const char *text)
{
    return name->key ? strlen(text) : name->stem;
}

/* "output.0", "linear.1.forward": behind a dot such words are followed by which of several it is, or by the
 * number of a call. */
static bool numbers_parts(const char *name, size_t at)
{
    static const char *const words[] = {"output",    "outputs", "input",     "inputs",  "forward",
                                        "backward",  "linear",  "conv",      "gelu",    "relu",
                                        "silu",      "norm",    "layernorm", "dropout", "softmax",
                                        "embedding", "matmul",  "expert",    "experts"};
    if (at < 2 || name[at - 1] != '.')
        return false;
    size_t begin = at - 1;
    while (begin > 0 && !strchr("./:", name[begin - 1]))
        begin--;
    struct td_word word = {.text = name + begin, .length = at - 1 - begin};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (td_word_is(&word, words[i]))
            return true;
    return false;
}

static void guess_runs(struct guesses *out, const char *name, size_t item)
{
    struct td_name parts = td_name_split(name);
    size_t length = useful_length(&parts, name);
    int runs = 0;
    for (size_t at = 0; at < length && runs < MAX_RUNS; at++) {
        if (!is_digit(name[at]))
            continue;
        size_t end = at;
        int64_t number = 0;
        for (; end < length && is_digit(name[end]); end++)
            number = end - at < MAX_DIGITS ? number * 10 + (name[end] - '0') : MAX_LAYERS;
        if (number < MAX_LAYERS && !numbers_parts(name, at)) {
            uint64_t group = hash_text(UINT64_C(0xcbf29ce484222325), name, at);
            group = hash_text(hash_text(group, "{", 1), name + end, length - end);
            out->list[out->count++] = (struct guess){group, number, item, at, end, false};
            runs++;
        }
        at = end;
    }
}

static int by_group(const void *x, const void *y)
{
    const struct guess *a = x, *b = y;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_item(const void *x, const void *y)
{
    const struct guess *a = x, *b = y;
    if (a->item != b->item)
        return a->item < b->item ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Different numbers of the group list[from, from + n), sorted. */
static size_t distinct(const struct guess *list, size_t n)
{
    size_t count = n > 0;
    for (size_t i = 1; i < n; i++)
        count += list[i].number != list[i - 1].number;
    return count;
}

static size_t group_length(const struct guesses *g, size_t from)
{
    size_t n = 1;
    while (from + n < g->count && g->list[from + n].group == g->list[from].group)
        n++;
    return n;
}

/* Numbers of layers follow each other from 0 or 1, or from where a part of a model begins: no gaps to speak
 * of.
 */
static bool counts_on(const struct guess *list, size_t n, size_t numbers)
{
    return numbers >= 2 && list[n - 1].number - list[0].number < (int64_t)(2 * numbers);
}

/* How many layers most groups speak for; 0: no two groups agree. `known` is what words tell, or 0. */
static size_t vote(const struct guesses *g, size_t known)
{
    size_t *votes = calloc(MAX_LAYERS + 1, sizeof *votes), best = 0;
    for (size_t i = 0, n; votes && i < g->count; i += n) {
        n = group_length(g, i);
        size_t numbers = distinct(g->list + i, n);
        if (counts_on(g->list + i, n, numbers))
            votes[numbers]++;
    }
    for (size_t k = 2; votes && k <= MAX_LAYERS; k++)
        if (votes[k] > 1 && votes[k] >= votes[best])
            best = k;
    free(votes);
    return known ? known : best;
}

static void mark_fitting(struct guesses *g, size_t layers)
{
    for (size_t i = 0, n; i < g->count; i += n) {
        n = group_length(g, i);
        size_t numbers = distinct(g->list + i, n);
        bool fits = counts_on(g->list + i, n, numbers) && (double)numbers >= MOST_LAYERS * (double)layers;
        for (size_t k = i; k < i + n; k++)
            g->list[k].fits = fits;
    }
}

/* "Qcur-3" is stage "Qcur", "L3.k_rope" is "L.k_rope": the name without the number and without the separators
 * that only it needs. */
static char *stage_of(struct td_arena *arena, const char *name, size_t begin, size_t end, size_t length)
{
    static const char separators[] = ".-_/: ";
    struct td_name parts = td_name_split(name);
    size_t from = begin > parts.folder && !parts.key ? parts.folder : 0;
    if (parts.key && begin > parts.length)
        from = parts.length + 1;
    while (begin > from && strchr(separators, name[begin - 1]))
        begin--;
    if (begin == from)
        while (end < length && strchr(separators, name[end]))
            end++;
    return td_arena_printf(arena, "%.*s%.*s", (int)(begin - from), name + from, (int)(length - end),
                           name + end);
}

static bool take(struct td_side *side, struct td_place *place, const struct guess *guess)
{
    const char *name = side->items[guess->item].name;
    struct td_name parts = td_name_split(name);
    char *stage = stage_of(&side->arena, name, guess->begin, guess->end, useful_length(&parts, name));
    if (!stage)
        return false;
    *place = (struct td_place){.layer = guess->number,
                               .stage_rank = td_stage_places,
                               .stage = stage,
                               .stage_length = strlen(stage),
                               .number = guess->begin,
                               .number_length = guess->end - guess->begin,
                               .learned = true};
    return true;
}

static bool learn(struct td_side *side, struct td_place *places, struct guesses *g, size_t known)
{
    qsort(g->list, g->count, sizeof *g->list, by_group);
    size_t layers = vote(g, known);
    if (layers < 2)
        return true;
    mark_fitting(g, layers);
    qsort(g->list, g->count, sizeof *g->list, by_item);
    for (size_t i = 0; i < g->count; i++) {
        const struct guess *guess = &g->list[i];
        if (guess->fits && places[guess->item].layer < 0 && !take(side, &places[guess->item], guess))
            return false;
    }
    return true;
}

/* Layers that words tell. */
static size_t known_layers(const struct td_side *side, const struct td_place *places)
{
    bool seen[MAX_LAYERS] = {false};
    size_t count = 0;
    for (size_t i = 0; i < side->count; i++) {
        int64_t layer = places[i].layer;
        if (layer >= 0 && layer < MAX_LAYERS && !seen[layer]) {
            seen[layer] = true;
            count++;
        }
    }
    return count;
}

bool td_template_places(struct td_side *side, struct td_place *places)
{
    struct guesses guesses = {.list = calloc(side->count * MAX_RUNS + 1, sizeof *guesses.list)};
    if (!guesses.list)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        places[i] = td_place_find(side->items[i].name);
        if (places[i].layer < 0)
            guess_runs(&guesses, side->items[i].name, i);
    }
    bool ok = guesses.count == 0 || learn(side, places, &guesses, known_layers(side, places));
    free(guesses.list);
    return ok;
}

bool td_template_name(struct td_side *side, const struct td_place *places)
{
    for (size_t i = 0; i < side->count; i++) {
        struct td_item *item = &side->items[i];
        struct td_name parts = td_name_split(item->name);
        const struct td_place *p = &places[i];
        size_t length = useful_length(&parts, item->name), after = p->number + p->number_length;
        if (p->layer < 0)
            item->scheme = item->name;
        else
            item->scheme = td_arena_printf(&side->arena, "%.*s{L}%.*s", (int)p->number, item->name,
                                           (int)(length > after ? length - after : 0), item->name + after);
        if (!item->scheme)
            return false;
    }
    return true;
}
