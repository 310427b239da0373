/* match.c: the chain of strategies, and the order of what comes out. See match.h.
 *
 * Each strategy is a unit of its own (stage.c, evidence.c, exact.c, …) that sees what is still unpaired and
 * pairs it. A tensor is in one pair, but for fused tensors, of which every part is in one. `automatic` says
 * what `auto` stands for; values go before names there, as names alone mislead.
 */
#include "compare/match/strategy.h"

#include "compare/name/guess.h"
#include "compare/name/name.h"

#include <stdlib.h>
#include <string.h>

/* Share of words two names must have in common. At 0.6 three words may differ in one. */
static const double default_threshold = 0.6;

static const struct strategy {
    const char *name;
    enum td_strategy id;
    td_strategy_run *run;
    bool takes_argument;
} strategies[] = {
    {"stage", TD_MATCH_STAGE, td_match_by_stage, false},
    {"exact", TD_MATCH_EXACT, td_match_exact, false},
    {"fuzzy", TD_MATCH_FUZZY, td_match_fuzzy, false},
    {"fused", TD_MATCH_FUSED, td_match_fused, false},
    {"shape", TD_MATCH_SHAPE, td_match_by_shape, false},
    {"value", TD_MATCH_VALUE, td_match_by_evidence, false},
    {"weights", TD_MATCH_VALUE, td_match_by_weights, false},
    {"regex", TD_MATCH_REGEX, td_match_regex, true},
    {"manual", TD_MATCH_MANUAL, NULL, false},
    {"program", TD_MATCH_PROGRAM, NULL, true},
    {"self", TD_MATCH_SELF, NULL, false},
};

enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static const char automatic[] = "stage,weights,value,exact,fuzzy,fused,shape";

const char *td_strategy_name(enum td_strategy strategy)
{
    for (int i = 0; i < STRATEGIES; i++)
        if (strategies[i].id == strategy)
            return strategies[i].name;
    return "none";
}

/* --- the chain ----------------------------------------------------------------------------------------- */

static bool begins_entry(const char *text)
{
    size_t length = strcspn(text, ",:");
    if (length == 4 && strncmp(text, "auto", 4) == 0)
        return text[4] != ':';
    for (int i = 0; i < STRATEGIES; i++)
        if (strlen(strategies[i].name) == length && strncmp(strategies[i].name, text, length) == 0)
            return strategies[i].takes_argument == (text[length] == ':');
    return false;
}

bool td_match_chain_next(const char **chain, struct td_match_entry *out)
{
    const char *text = *chain;
    if (!*text)
        return false;
    *out = (struct td_match_entry){.name = text, .name_length = strcspn(text, ",:")};
    const char *end = text + out->name_length;
    if (*end == ':') {
        out->argument = ++end;
        while (*end && !(*end == ',' && begins_entry(end + 1)))
            end++;
        out->argument_length = (size_t)(end - out->argument);
    }
    *chain = *end ? end + 1 : end;
    return true;
}

static tdbg_status find_strategy(const struct td_match_entry *entry, const struct strategy **out,
                                 struct tdbg_error *error)
{
    for (int i = 0; i < STRATEGIES; i++) {
        const struct strategy *s = &strategies[i];
        if (strlen(s->name) != entry->name_length || strncmp(s->name, entry->name, entry->name_length) != 0)
            continue;
        if (s->takes_argument && !entry->argument_length)
            return td_fail(error, TDBG_MISUSE, "matching strategy %s needs an argument: %s:…", s->name,
                           s->name);
        if (!s->takes_argument && entry->argument)
            return td_fail(error, TDBG_MISUSE, "matching strategy %s takes no argument", s->name);
        *out = s;
        return TDBG_OK;
    }
    return td_fail(error, TDBG_MISUSE,
                   "no matching strategy '%.*s' (auto, stage, value, exact, fuzzy, fused, shape, "
                   "weights, regex:FROM=>TO, program:COMMAND, manual)",
                   (int)entry->name_length, entry->name);
}

static tdbg_status run_chain(struct td_matching *m, const char *chain, struct tdbg_error *error)
{
    struct td_match_entry entry;
    while (td_match_chain_next(&chain, &entry)) {
        if (entry.name_length == 4 && strncmp(entry.name, "auto", 4) == 0 && !entry.argument) {
            TD_TRY(run_chain(m, automatic, error)); /* which has no auto in it */
            continue;
        }
        const struct strategy *strategy = NULL;
        TD_TRY(find_strategy(&entry, &strategy, error));
        char *argument = NULL;
        if (entry.argument &&
            !(argument = td_arena_strndup(&m->scratch, entry.argument, entry.argument_length)))
            return td_fail_nomem(error);
        if (strategy->run)
            TD_TRY(strategy->run(m, argument, error));
    }
    return TDBG_OK;
}

/* --- what strategies share ----------------------------------------------------------------------------- */

static const struct td_expert_set *set_at(const struct td_matching *m, enum td_which which, size_t index)
{
    return index < m->side[which]->count ? NULL : &m->sets[which][index - m->side[which]->count];
}

const struct td_item *td_item_at(const struct td_matching *m, enum td_which which, size_t index)
{
    const struct td_expert_set *set = set_at(m, which, index);
    return set ? set->item : &m->side[which]->items[index];
}

bool td_is_free(const struct td_matching *m, enum td_which which, size_t index)
{
    const struct td_expert_set *set = set_at(m, which, index);
    if (!set)
        return !m->paired[which][index] && !m->closed[which][index];
    for (size_t i = 0; i < set->count; i++)
        if (m->paired[which][set->members[i]] || m->closed[which][set->members[i]])
            return false;
    return true;
}

static void take(struct td_matching *m, enum td_which which, size_t index)
{
    const struct td_expert_set *set = set_at(m, which, index);
    for (size_t i = 0; set && i < set->count; i++)
        m->paired[which][set->members[i]] = true;
    if (!set)
        m->paired[which][index] = true;
}

void td_pair(struct td_matching *m, size_t a, size_t b, enum td_strategy strategy)
{
    m->pairs[m->count++] = (struct td_match){
        .a = td_item_at(m, TD_SIDE_A, a), .b = td_item_at(m, TD_SIDE_B, b), .strategy = strategy, .sure = 1};
    take(m, TD_SIDE_A, a);
    take(m, TD_SIDE_B, b);
}

tdbg_status td_pair_alias(struct td_matching *m, enum td_which which, size_t item, size_t twin,
                          struct tdbg_error *error)
{
    (void)error;
    m->aliases[m->alias_count++] = (struct td_alias){which, item, twin};
    m->paired[which][item] = true;
    return TDBG_OK;
}

bool td_layers_clash(const struct td_matching *m, size_t a, size_t b)
{
    int64_t x = m->side[TD_SIDE_A]->items[a].layer, y = m->side[TD_SIDE_B]->items[b].layer;
    return x >= 0 && y >= 0 && y != x + m->layer_offset;
}

static int compare_keyed(const void *x, const void *y)
{
    const struct td_keyed *a = x, *b = y;
    int by_key = strcmp(a->key, b->key);
    return by_key ? by_key : (a->index > b->index) - (a->index < b->index);
}

tdbg_status td_keys_init(struct td_keys *out, struct td_matching *m, enum td_which which, td_key_of *key,
                         struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    *out = (struct td_keys){.list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++) {
        if (!td_is_free(m, which, i))
            continue;
        const char *text = key(m, which, i);
        if (!text)
            return td_fail_nomem(error);
        out->list[out->count++] = (struct td_keyed){text, i};
    }
    qsort(out->list, out->count, sizeof *out->list, compare_keyed);
    return TDBG_OK;
}

size_t td_keys_find(const struct td_keys *keys, const char *key, size_t *first)
{
    size_t low = 0, high = keys->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(keys->list[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    while (low + n < keys->count && strcmp(keys->list[low + n].key, key) == 0)
        n++;
    *first = low;
    return n;
}

const char *td_bare_name(struct td_matching *m, enum td_which which, size_t index)
{
    struct td_name name = td_name_split(m->side[which]->items[index].name);
    return name.key ? name.key
                    : td_arena_strndup(&m->scratch, name.file + name.folder, name.stem - name.folder);
}

/* --- the result ---------------------------------------------------------------------------------------- */

/* Where a pair goes: with its tensor of A. One that is only in B goes after the pair of its predecessor in B,
 * and not before the earlier layers and stages of A. */
struct position {
    size_t anchor; /* 0: before everything in A */
    bool only_b;
    size_t within;
    struct td_match match;
};

static int compare_positions(const void *x, const void *y)
{
    const struct position *a = x, *b = y;
    if (a->anchor != b->anchor)
        return a->anchor < b->anchor ? -1 : 1;
    if (a->only_b != b->only_b)
        return a->only_b ? 1 : -1;
    return (a->within > b->within) - (a->within < b->within);
}

/* Whether item `x` of A runs before item `y` of B. */
static bool runs_before(const struct td_matching *m, const struct td_item *x, const struct td_item *y)
{
    int64_t layer = y->layer - m->layer_offset;
    return x->layer != layer ? x->layer < layer : x->stage_rank < y->stage_rank;
}

/* The layered items of one side in the order of execution; 0 when several stacks count their layers anew. */
static size_t layered_items(const struct td_side *side, const struct td_item **by_order)
{
    size_t count = 0;
    for (size_t i = 0; i < side->count; i++)
        by_order[side->items[i].order] = &side->items[i];
    for (size_t i = 0; i < side->count; i++) {
        if (by_order[i]->layer < 0)
            continue;
        if (count > 0 && by_order[i]->layer < by_order[count - 1]->layer)
            return 0;
        by_order[count++] = by_order[i];
    }
    return count;
}

static size_t place_in_a(const struct td_matching *m, const struct td_item *const *layered, size_t count,
                         const struct td_item *item)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (runs_before(m, layered[middle], item))
            low = middle + 1;
        else
            high = middle;
    }
    return low ? layered[low - 1]->order + 1 : 0;
}

/* anchors[i]: behind how many items of A the item of B with order i goes. */
static tdbg_status find_anchors(struct td_matching *m, size_t *anchors, struct tdbg_error *error)
{
    const struct td_side *a = m->side[TD_SIDE_A], *b = m->side[TD_SIDE_B];
    const struct td_item **layered = td_arena_array(&m->scratch, a->count + 1, sizeof(*layered));
    const struct td_item **in_b = td_arena_array(&m->scratch, b->count + 1, sizeof(*in_b));
    if (!layered || !in_b)
        return td_fail_nomem(error);
    size_t count = layered_items(a, layered), last = m->count ? 0 : a->count;
    for (size_t i = 0; i < b->count; i++)
        in_b[b->items[i].order] = &b->items[i];
    for (size_t i = 0; i < m->count; i++) {
        size_t *anchor = &anchors[m->pairs[i].b->order], place = m->pairs[i].a->order + 1;
        *anchor = place > *anchor ? place : *anchor;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (anchors[i] == 0) {
            size_t place = in_b[i]->layer >= 0 ? place_in_a(m, layered, count, in_b[i]) : 0;
            anchors[i] = place > last ? place : last;
        }
        last = anchors[i];
    }
    return TDBG_OK;
}

/* Aliases by what they are another name of, the best name first: an output before an input, the name of a
 * leaf before that of a container, a short one before a long one. */
struct named {
    const struct td_item *item;
    size_t root;
    enum td_which which;
    bool input, container;
};

static struct named name_of(const struct td_matching *m, enum td_which which, size_t item, size_t root)
{
    const struct td_item *named = &m->side[which]->items[item];
    bool whole = strcmp(named->stage, "input") == 0 || strncmp(named->stage, "input.", 6) == 0;
    return (struct named){named, root, which, whole || m->identity[which][item].kind == TD_PART_INPUT,
                          td_names_container(named)};
}

static int compare_goodness(const struct named *a, const struct named *b)
{
    if (a->input != b->input)
        return a->input ? 1 : -1;
    if (a->container != b->container)
        return a->container ? 1 : -1;
    size_t la = strlen(a->item->name), lb = strlen(b->item->name);
    return la != lb ? (la > lb) - (la < lb) : strcmp(a->item->name, b->item->name);
}

static int compare_named(const void *x, const void *y)
{
    const struct named *a = x, *b = y;
    if (a->which != b->which)
        return a->which < b->which ? -1 : 1;
    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return compare_goodness(a, b);
}

/* All names of an item. */
struct known_as {
    const struct td_item *item;
    struct td_aliases names;
};

static int compare_known(const void *x, const void *y)
{
    uintptr_t a = (uintptr_t)((const struct known_as *)x)->item;
    uintptr_t b = (uintptr_t)((const struct known_as *)y)->item;
    return (a > b) - (a < b);
}

static struct td_aliases aliases_of(const struct known_as *known, size_t count, const struct td_item *item)
{
    struct known_as key = {.item = item};
    const struct known_as *found =
        item && count ? bsearch(&key, known, count, sizeof key, compare_known) : NULL;
    return found ? found->names : (struct td_aliases){0};
}

/* Who was paired under one of its names is told under the best. */
static void go_by_best(const struct td_item **item, const char **template, const struct td_aliases *names)
{
    *item = names->items[0];
    *template = (*item)->layer >= 0 ? (*item)->scheme : NULL;
}

/* Gives every pair the other names of its two tensors, the best first; what was found by evidence goes by it.
 */
static tdbg_status name_aliases(struct td_matching *m, struct tdbg_error *error)
{
    struct named *list = td_arena_array(&m->scratch, m->alias_count + 1, sizeof *list);
    struct known_as *known = td_arena_array(&m->scratch, m->alias_count + 1, sizeof *known);
    size_t count = 0;
    if (!list || !known)
        return td_fail_nomem(error);
    for (size_t i = 0; i < m->alias_count; i++) {
        const struct td_alias *alias = &m->aliases[i];
        list[i] = name_of(m, alias->which, alias->item, alias->twin);
    }
    if (m->alias_count)
        qsort(list, m->alias_count, sizeof *list, compare_named);
    for (size_t i = 0, n; i < m->alias_count; i += n) {
        const struct td_item *root = &m->side[list[i].which]->items[list[i].root];
        for (n = 1; i + n < m->alias_count && list[i + n].which == list[i].which &&
                    list[i + n].root == list[i].root;)
            n++;
        const struct td_item **items = td_arena_array(m->kept, n + 1, sizeof(*items));
        if (!items)
            return td_fail_nomem(error);
        struct named own = name_of(m, list[i].which, list[i].root, list[i].root);
        size_t at = 0, better = 0;
        while (better < n && compare_goodness(&list[i + better], &own) < 0)
            better++;
        for (size_t k = 0; k <= n; k++)
            items[k] = k == better ? root : list[i + at++].item;
        known[count++] = (struct known_as){root, {items, n + 1}};
    }
    if (count)
        qsort(known, count, sizeof *known, compare_known);
    for (size_t p = 0; p < m->count; p++) {
        struct td_match *match = &m->pairs[p];
        match->aliases_a = aliases_of(known, count, match->a);
        match->aliases_b = aliases_of(known, count, match->b);
        bool by_evidence = match->strategy == TD_MATCH_VALUE || match->strategy == TD_MATCH_FUZZY;
        if (by_evidence && match->aliases_a.count)
            go_by_best(&match->a, &match->template_a, &match->aliases_a);
        if (by_evidence && match->aliases_b.count)
            go_by_best(&match->b, &match->template_b, &match->aliases_b);
    }
    return TDBG_OK;
}

static tdbg_status collect(struct td_matching *m, struct td_matches *out, struct tdbg_error *error)
{
    const struct td_side *a = m->side[TD_SIDE_A], *b = m->side[TD_SIDE_B];
    size_t most = m->count + a->count + b->count + 1, count = 0;
    struct position *list = td_arena_array(&m->scratch, most, sizeof *list);
    size_t *anchors = td_arena_array(&m->scratch, b->count + 1, sizeof *anchors);
    if (!list || !anchors)
        return td_fail_nomem(error);
    TD_TRY(name_aliases(m, error));
    TD_TRY(find_anchors(m, anchors, error));
    for (size_t i = 0; i < m->count; i++)
        list[count++] = (struct position){m->pairs[i].a->order + 1, false, (size_t)m->pairs[i].fused_a.index,
                                          m->pairs[i]};
    for (size_t i = 0; i < a->count; i++)
        if (!m->paired[TD_SIDE_A][i])
            list[count++] = (struct position){a->items[i].order + 1, false, 0, {.a = &a->items[i]}};
    for (size_t i = 0; i < b->count; i++)
        if (!m->paired[TD_SIDE_B][i])
            list[count++] =
                (struct position){anchors[b->items[i].order], true, b->items[i].order, {.b = &b->items[i]}};
    qsort(list, count, sizeof *list, compare_positions);

    out->pairs = td_arena_array(&out->arena, count + 1, sizeof *out->pairs);
    if (!out->pairs)
        return td_fail_nomem(error);
    for (size_t i = 0; i < count; i++)
        out->pairs[i] = list[i].match;
    out->count = count;
    out->layer_offset = m->layer_offset;
    return TDBG_OK;
}

/* An "encoder" without a decoder is what the model consists of: old Megatron names GPT's layers so. And the
 * norm behind attention is the one before the MLP in a stack that has no other there: llama's
 * post_attention_layernorm is, gemma's is not. */
static void identify(struct td_matching *m, enum td_which which)
{
    const struct td_side *side = m->side[which];
    bool decoder = false, norm_mlp[TD_STACKS] = {false};
    for (size_t i = 0; i < side->count; i++) {
        struct td_identity *id = &m->identity[which][i];
        *id = td_role_of(side->items[i].name, side->items[i].layer, side->items[i].stage);
        if (id->role == TD_ROLE_NONE && id->kind <= TD_PART_INPUT && !side->items[i].parameter) {
            struct td_name name = td_name_split(side->items[i].name);
            const char *text = side->items[i].layer >= 0 ? side->items[i].stage
                               : name.key                ? name.key
                                                         : name.file + name.folder;
            size_t length = side->items[i].layer >= 0 || name.key ? strlen(text) : name.stem - name.folder;
            id->role = td_role_guess(text, length, side->items[i].layer >= 0, &id->other);
            id->guessed = id->role != TD_ROLE_NONE;
        }
        decoder = decoder || id->decoder;
        norm_mlp[id->stack] = norm_mlp[id->stack] || (id->role == TD_ROLE_NORM_MLP && !id->guessed);
    }
    for (size_t i = 0; i < side->count; i++) {
        struct td_identity *id = &m->identity[which][i];
        bool may_be = id->other == TD_ROLE_NONE || id->other == TD_ROLE_NORM_MLP;
        if (id->role == TD_ROLE_NORM_ATTN_POST && may_be && !norm_mlp[id->stack])
            id->role = TD_ROLE_NORM_MLP;
        if (id->stack == TD_STACK_ENCODER && !decoder)
            id->stack = TD_STACK_MAIN;
    }
}

/* All layers of the side are of one stack. */
static bool has_one_stack(const struct td_matching *m, enum td_which which)
{
    const struct td_side *side = m->side[which];
    const struct td_identity *first = NULL;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_identity *id = &m->identity[which][i];
        if (side->items[i].layer < 0)
            continue;
        if (first && first->stack != id->stack)
            return false;
        first = first ? first : id;
    }
    return first != NULL;
}

/* Two models of one stack each mean the same by it, whether their names say what it sees ("vit.encoder.") or
 * not ("blocks."). */
static void unite_stacks(struct td_matching *m)
{
    if (!has_one_stack(m, TD_SIDE_A) || !has_one_stack(m, TD_SIDE_B))
        return;
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++)
        for (size_t i = 0; i < m->side[which]->count; i++)
            m->identity[which][i].stack = TD_STACK_MAIN;
}

static tdbg_status prepare(struct td_matching *m, struct tdbg_error *error)
{
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++) {
        size_t count = m->side[which]->count + 1;
        m->paired[which] = td_arena_array(&m->scratch, count, sizeof *m->paired[which]);
        m->closed[which] = td_arena_array(&m->scratch, count, sizeof *m->closed[which]);
        m->identity[which] = td_arena_array(&m->scratch, count, sizeof *m->identity[which]);
        if (!m->paired[which] || !m->closed[which] || !m->identity[which])
            return td_fail_nomem(error);
        identify(m, which);
    }
    unite_stacks(m);
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++)
        TD_TRY(td_match_find_experts(m, which, error));
    /* Every pair takes one item at least that was in none before; a person may say what he likes. */
    size_t most = m->side[0]->count + m->side[1]->count + m->options->manual_count;
    m->pairs = td_arena_array(&m->scratch, most + 1, sizeof *m->pairs);
    m->aliases = td_arena_array(&m->scratch, most + 1, sizeof *m->aliases);
    return m->pairs && m->aliases ? TDBG_OK : td_fail_nomem(error);
}

tdbg_status td_match_sides(struct td_matches *out, const struct td_side *a, const struct td_side *b,
                           const struct td_match_options *options, const struct td_work *work,
                           struct tdbg_error *error)
{
    static const struct td_match_options none;
    struct td_matching m = {.side = {a, b}, .options = options ? options : &none};
    m.work = work ? *work : (struct td_work){0};
    m.threshold = m.options->threshold > 0 ? m.options->threshold : default_threshold;
    if (m.options->threshold < 0 || m.options->threshold > 1)
        return td_fail(error, TDBG_MISUSE, "a threshold of %g for similar names, not within 0 and 1",
                       m.options->threshold);
    const char *chain = m.options->strategy && *m.options->strategy ? m.options->strategy : "auto";
    struct td_matches result = {0};
    td_arena_init(&m.scratch, TD_MAX_METADATA);
    td_arena_init(&result.arena, TD_MAX_METADATA);
    m.kept = &result.arena;
    tdbg_status status = prepare(&m, error);
    if (status == TDBG_OK)
        status = td_match_manual(&m, NULL, error);
    if (status == TDBG_OK)
        status = run_chain(&m, chain, error);
    if (status == TDBG_OK)
        status = collect(&m, &result, error);
    td_arena_release(&m.scratch);
    if (status == TDBG_OK)
        *out = result;
    else
        td_matches_release(&result);
    return status;
}

void td_matches_release(struct td_matches *matches)
{
    td_arena_release(&matches->arena);
    *matches = (struct td_matches){0};
}
