/* manual.c: pairs a person said: a pairs file, the user's program.
 *
 * A name nobody has is a mistake to report: passing over it would compare less than was asked for. A sharded
 * tensor may be called by its own name or by its first shard's, which is what a listing of the files shows;
 * the experts of a layer, all in one, by the name with a '*' that --save-pairs writes.
 *
 * A pair with {L} in both names stands for all layers that both sides have. It is the rule, and pairs that
 * are said one by one are its exceptions: these go first, and what they took is passed over. One that fits
 * nothing is a mistake like a name nobody has.
 */
#include "base/buffer.h"
#include "compare/match/manual_layers.h"
#include "compare/match/strategy.h"

#include <stdlib.h>
#include <string.h>

/* Templates of one list: each is held against the names. And the pairs that they may become. */
enum { MOST_TEMPLATES = 4096, MOST_EXPANDED = 1 << 20 };

static const char *const letters[] = {"A", "B"};

struct names {
    struct td_keys items, first_parts;
};

static const char *item_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].name;
}

static const char *first_part_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].parts[0]->name;
}

static const char *who(const struct td_name_pair *pair)
{
    return pair->by_program ? "the matching program" : "the list of pairs";
}

/* --- one tensor ----------------------------------------------------------------------------------------- */

enum found { FOUND, TAKEN, ABSENT };

/* A whole tensor is in one pair, a fused one in one for each of its parts. */
static enum found look(const struct td_matching *m, const struct names *names, enum td_which which,
                       const char *name, bool part, size_t *out)
{
    const struct td_keys *keys = &names->items;
    size_t first, n = td_keys_find(keys, name, &first);
    if (n == 0) {
        keys = &names->first_parts;
        n = td_keys_find(keys, name, &first);
    }
    for (size_t i = 0; n == 0 && i < m->set_count[which]; i++) {
        *out = m->side[which]->count + i;
        if (strcmp(m->sets[which][i].item->name, name) == 0 && (part || td_is_free(m, which, *out)))
            return FOUND;
    }
    for (size_t i = first; i < first + n; i++) {
        if (m->paired[which][keys->list[i].index] && !part)
            continue;
        *out = keys->list[i].index;
        return FOUND;
    }
    return n ? TAKEN : ABSENT;
}

static tdbg_status find(const struct td_matching *m, const struct names *names, enum td_which which,
                        const struct td_name_pair *pair, size_t *out, struct tdbg_error *error)
{
    const char *name = which == TD_SIDE_A ? pair->a : pair->b;
    bool part = (which == TD_SIDE_A ? pair->fused_a : pair->fused_b).of > 0;
    switch (look(m, names, which, name, part, out)) {
    case TAKEN:
        return td_fail(error, TDBG_MISUSE, "%s has '%s' of %s in more than one pair", who(pair), name,
                       letters[which]);
    case ABSENT:
        return td_fail(error, TDBG_NOTFOUND, "%s names '%s', which is not in %s", who(pair), name,
                       letters[which]);
    case FOUND:
        break;
    }
    return TDBG_OK;
}

static void join(struct td_matching *m, size_t a, size_t b, const struct td_name_pair *pair)
{
    td_pair(m, a, b, pair->by_program ? TD_MATCH_PROGRAM : TD_MATCH_MANUAL);
    m->pairs[m->count - 1].fused_a = pair->fused_a;
    m->pairs[m->count - 1].fused_b = pair->fused_b;
}

/* --- all layers ----------------------------------------------------------------------------------------- */

/* What a template fits on one side. */
struct layered {
    int64_t layer;
    const char *name;
};

static int compare_layered(const void *x, const void *y)
{
    const struct layered *a = x, *b = y;
    return a->layer != b->layer ? td_compare_numbers(a->layer, b->layer) : strcmp(a->name, b->name);
}

static void add_fitting(struct td_buffer *out, const struct td_layer_template *t, const char *name)
{
    struct layered entry = {.name = name};
    if (td_layer_template_fits(t, name, &entry.layer))
        td_buffer_append(out, &entry, sizeof entry);
}

/* The keys are sorted: those that begin as the template does lie together. */
static void add_keys(struct td_buffer *out, const struct td_layer_template *t, const struct td_keys *keys)
{
    size_t low = 0, high = keys->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strncmp(keys->list[middle].key, t->head, t->head_length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < keys->count && strncmp(keys->list[low].key, t->head, t->head_length) == 0; low++)
        add_fitting(out, t, keys->list[low].key);
}

static tdbg_status list_layers(struct td_buffer *out, const struct td_matching *m, const struct names *names,
                               enum td_which which, const struct td_name_pair *pair,
                               const struct td_layer_template *t, struct tdbg_error *error)
{
    td_buffer_clear(out);
    add_keys(out, t, &names->items);
    if (out->size == 0)
        add_keys(out, t, &names->first_parts);
    for (size_t i = 0; i < m->set_count[which]; i++)
        add_fitting(out, t, m->sets[which][i].item->name);
    if (out->failed)
        return td_fail_nomem(error);
    if (out->size == 0)
        return td_fail(error, TDBG_NOTFOUND, "%s has '%s', which fits no tensor of %s", who(pair),
                       which == TD_SIDE_A ? pair->a : pair->b, letters[which]);
    qsort(out->data, out->size / sizeof(struct layered), sizeof(struct layered), compare_layered);
    return TDBG_OK;
}

static tdbg_status expand(struct td_buffer *out, struct td_buffer lists[2], const struct td_name_pair *pair,
                          struct tdbg_error *error)
{
    const struct layered *a = (const void *)lists[0].data, *b = (const void *)lists[1].data;
    const struct layered *end_a = a + lists[0].size / sizeof *a, *end_b = b + lists[1].size / sizeof *b;
    size_t before = out->size;
    while (a < end_a && b < end_b) {
        if (a->layer != b->layer) {
            a->layer < b->layer ? a++ : b++;
            continue;
        }
        struct td_name_pair one = *pair;
        one.a = a->name;
        one.b = b->name;
        td_buffer_append(out, &one, sizeof one);
        int64_t layer = a->layer; /* of "q-1" and "q-01" the first is meant */
        while (a < end_a && a->layer == layer)
            a++;
        while (b < end_b && b->layer == layer)
            b++;
    }
    if (out->failed)
        return td_fail(error, TDBG_LIMIT, "%s stands for more than %d pairs", who(pair), MOST_EXPANDED);
    if (out->size == before)
        return td_fail(error, TDBG_NOTFOUND, "%s has '%s' and '%s', which have no layer in common", who(pair),
                       pair->a, pair->b);
    return TDBG_OK;
}

/* A tensor may be called so in earnest; then its name is no template. */
static bool is_template(const struct names *names, const char *text, struct td_layer_template *out)
{
    size_t first;
    return td_layer_template_parse(text, out) && td_keys_find(&names->items, text, &first) == 0 &&
           td_keys_find(&names->first_parts, text, &first) == 0;
}

/* `out` gets the pairs that the templates of the list stand for. */
static tdbg_status expand_all(struct td_buffer *out, struct td_buffer lists[2], const struct td_matching *m,
                              const struct names names[2], bool *templates, struct tdbg_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < m->options->manual_count; i++) {
        const struct td_name_pair *pair = &m->options->manual[i];
        struct td_layer_template t[2];
        bool of_a = is_template(&names[TD_SIDE_A], pair->a, &t[0]);
        bool of_b = is_template(&names[TD_SIDE_B], pair->b, &t[1]);
        templates[i] = of_a && of_b;
        if (of_a != of_b)
            return td_fail(error, TDBG_MISUSE, "%s has {L} in '%s' and none in '%s'", who(pair),
                           of_a ? pair->a : pair->b, of_a ? pair->b : pair->a);
        if (!templates[i])
            continue;
        if (++count > MOST_TEMPLATES)
            return td_fail(error, TDBG_LIMIT, "%s has more than %d pairs with {L}", who(pair),
                           MOST_TEMPLATES);
        for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++)
            TD_TRY(list_layers(&lists[which], m, &names[which], which, pair, &t[which], error));
        TD_TRY(expand(out, lists, pair, error));
    }
    return TDBG_OK;
}

/* Parts of a fused tensor are in many pairs: room for all that the templates became. */
static tdbg_status make_room(struct td_matching *m, size_t more, struct tdbg_error *error)
{
    size_t most = m->side[0]->count + m->side[1]->count + m->options->manual_count + more;
    struct td_match *pairs = more ? td_arena_array(&m->scratch, most + 1, sizeof *pairs) : m->pairs;
    if (!pairs)
        return td_fail_nomem(error);
    if (more && m->count)
        memcpy(pairs, m->pairs, m->count * sizeof *pairs);
    m->pairs = pairs;
    return TDBG_OK;
}

static tdbg_status pair_all(struct td_matching *m, const struct names names[2], const bool *templates,
                            const struct td_buffer *expanded, struct tdbg_error *error)
{
    size_t a = 0, b = 0, count = expanded->size / sizeof(struct td_name_pair);
    const struct td_name_pair *list = (const void *)expanded->data;
    TD_TRY(make_room(m, count, error));
    for (size_t i = 0; i < m->options->manual_count; i++) {
        const struct td_name_pair *pair = &m->options->manual[i];
        if (templates[i])
            continue;
        TD_TRY(find(m, &names[TD_SIDE_A], TD_SIDE_A, pair, &a, error));
        TD_TRY(find(m, &names[TD_SIDE_B], TD_SIDE_B, pair, &b, error));
        join(m, a, b, pair);
    }
    for (size_t i = 0; i < count; i++) {
        const struct td_name_pair *pair = &list[i];
        if (look(m, &names[TD_SIDE_A], TD_SIDE_A, pair->a, pair->fused_a.of > 0, &a) == FOUND &&
            look(m, &names[TD_SIDE_B], TD_SIDE_B, pair->b, pair->fused_b.of > 0, &b) == FOUND)
            join(m, a, b, pair);
    }
    return TDBG_OK;
}

tdbg_status td_match_manual(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct names names[2];
    struct td_buffer expanded, lists[2];
    if (m->options->manual_count == 0)
        return TDBG_OK;
    bool *templates = td_arena_array(&m->scratch, m->options->manual_count, sizeof *templates);
    if (!templates)
        return td_fail_nomem(error);
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++) {
        TD_TRY(td_keys_init(&names[which].items, m, which, item_name, error));
        TD_TRY(td_keys_init(&names[which].first_parts, m, which, first_part_name, error));
    }
    td_buffer_init(&expanded, MOST_EXPANDED * sizeof(struct td_name_pair));
    td_buffer_init(&lists[0], TD_MAX_METADATA);
    td_buffer_init(&lists[1], TD_MAX_METADATA);
    tdbg_status status = expand_all(&expanded, lists, m, names, templates, error);
    if (status == TDBG_OK)
        status = pair_all(m, names, templates, &expanded, error);
    td_buffer_release(&expanded);
    td_buffer_release(&lists[0]);
    td_buffer_release(&lists[1]);
    return status;
}
