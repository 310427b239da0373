/* order.c: see order.h.
 *
 *     embeddings and what the file has before its first layer
 *     each stack (encoder, then decoder): layer, stage, then as in the file
 *         and what follows the stack in the file
 *     the final norm and the head
 *
 * Names in front of the layer tell stacks apart only if they must, that is if one stage of one layer is in
 * several: attn/3_query.pth and mlp/3_post_mlp.pth are one stack in two folders.
 *
 * A list that is the order of execution (evidence.h) counts as it is where a run, a sidecar or a whole dump
 * in one file wrote it, and else within the layers. A folder, and a file whose writer sorts its keys, list by
 * the alphabet, which puts down_proj before q_proj. Such a list says nothing, and what the stage is to its
 * layer decides (families.h); the backward pass runs through all of it the other way round, after it.
 *
 * Where neither decides, items have an order, but share a wave: nobody may say that one came before the
 * other.
 */
#include "compare/name/order.h"

#include "compare/name/evidence.h"
#include "compare/name/guess.h"
#include "compare/name/name.h"
#include "compare/name/pipeline.h"
#include "compare/name/place.h"
#include "compare/name/template.h"

#include <stdlib.h>
#include <string.h>

/* Where an item stands in the order of execution. */
struct standing {
    struct td_place place;
    const struct td_item *item;
    enum { FORWARD, BACKWARD, STORED } phase; /* gradients of weights come last: a list of results */
    enum { BEFORE, WITHIN, AFTER } zone;
    size_t stack; /* the number of the stack, in the order of the file; 0 when they are one */
    int64_t layer;
    int64_t sublayer; /* T5 counts the parts of a block: block.0.layer.1.…; -1: none */
    int role_rank;    /* where the list says nothing: place of the role in a layer; else 0 */
    uint64_t rank;    /* place in a list that is the order of execution; else 0 */
    size_t index;
};

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_stacks(const void *x, const void *y)
{
    const struct standing *a = *(const struct standing *const *)x, *b = *(const struct standing *const *)y;
    int order = compare_text(a->item->name, a->place.stack, b->item->name, b->place.stack);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int compare_stages(const void *x, const void *y)
{
    const struct standing *a = *(const struct standing *const *)x, *b = *(const struct standing *const *)y;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return strcmp(a->item->stage, b->item->stage);
}

/* One stage of one layer in several stacks: they run one after the other. `list` holds the layered items. */
static bool stacks_differ(const struct standing **list, size_t count)
{
    qsort(list, count, sizeof *list, compare_stages);
    for (size_t i = 1; i < count; i++)
        if (compare_stages(&list[i - 1], &list[i]) == 0 &&
            compare_text(list[i - 1]->item->name, list[i - 1]->place.stack, list[i]->item->name,
                         list[i]->place.stack) != 0)
            return true;
    return false;
}

/* A decoder attends to what encoders made of text, pictures and sound. */
static bool runs_first(const struct standing *s)
{
    return td_stack_of(s->item->name, s->place.stack) != TD_STACK_MAIN;
}

/* Numbers the stacks: encoders first, then by where they begin in the file, for which the index of their
 * first item will do. `total` is beyond every index. */
static void number_stacks(struct standing *all, const struct standing **list, size_t count, size_t total)
{
    if (!stacks_differ(list, count))
        return;
    qsort(list, count, sizeof *list, compare_stacks);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (compare_text(list[first]->item->name, list[first]->place.stack, list[i]->item->name,
                         list[i]->place.stack) != 0)
            first = i;
        all[list[i]->index].stack = list[first]->index + 1 + (runs_first(list[first]) ? 0 : total);
    }
}

/* Where a list tells nothing, what has no layer and no known role goes behind the layers, as results do, but
 * for what a model starts from. */
static bool starts_a_model(const char *name)
{
    static const char *const words[] = {"input",    "inputs",    "ids",  "tokens",  "mask",
                                        "cos",      "sin",       "rope", "rotary",  "freqs",
                                        "position", "positions", "drop", "dropout", "patch"};
    struct td_word word;
    enum td_role other, role = td_role_guess(name, strlen(name), false, &other);
    if (role != TD_ROLE_NONE)
        return role == TD_ROLE_EMBED || role == TD_ROLE_EMBED_POSITION;
    for (size_t at = 0, length = strlen(name); td_word_next(name, length, &at, true, &word);)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (td_word_is(&word, words[i]))
                return true;
    return false;
}

/* `listed`: the list itself tells what came before the layers. */
static void set_zones(struct standing *all, size_t count, bool dumped, bool listed)
{
    bool layered = false;
    size_t stack = 0, last = 0;
    for (size_t i = 0; i < count; i++)
        last = all[i].stack > last ? all[i].stack : last;
    for (size_t i = 0; i < count; i++) {
        struct standing *s = &all[i];
        if (s->layer >= 0) {
            s->zone = WITHIN;
            layered = true;
            stack = s->stack;
            continue;
        }
        enum td_role role = s->item->role;
        s->zone = layered ? WITHIN : dumped ? AFTER : BEFORE;
        if (role == TD_ROLE_EMBED || role == TD_ROLE_EMBED_POSITION)
            s->zone = BEFORE;
        else if (role == TD_ROLE_HEAD || (role == TD_ROLE_NORM_FINAL && stack == last))
            s->zone = AFTER; /* an encoder's final norm ends its own stack */
        else if (role == TD_ROLE_NONE && !listed && !s->item->parameter && last == 0)
            s->zone = starts_a_model(s->item->name) ? BEFORE : AFTER;
        s->stack = stack;
        s->layer = INT64_MAX;
    }
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By all that tells the order; 0: nothing does. */
static int compare_waves(const struct standing *a, const struct standing *b)
{
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    const int64_t keys[][2] = {{(int64_t)a->zone, (int64_t)b->zone},
                               {(int64_t)a->stack, (int64_t)b->stack},
                               {a->layer, b->layer},
                               {a->place.stage_rank, b->place.stage_rank},
                               {a->sublayer, b->sublayer},
                               {a->role_rank, b->role_rank}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return a->phase == BACKWARD ? compare_numbers(keys[i][1], keys[i][0])
                                        : compare_numbers(keys[i][0], keys[i][1]);
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_standings(const void *x, const void *y)
{
    const struct standing *a = x, *b = y;
    int order = compare_waves(a, b);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int compare_ranks(const void *x, const void *y)
{
    const struct standing *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* --- what a stage is to its layer ----------------------------------------------------------------------- */

/* Four places for each role: attention to another stack comes behind all of the stack's own, and the input of
 * a module that is dumped whole before what the module does. A stage of no known role that is part of
 * attention or of the MLP (softmax, act_fn) stands before what the module ends in; a norm opens its layer or
 * sublayer; the rest, such as the layer's own output, closes it. */
static int role_rank(const struct td_item *item)
{
    enum { PLACES = 4, BEFORE_IT = -1, BEHIND_IT = 1, ACROSS = 2 };
    struct td_identity id = td_role_of(item->name, item->layer, item->stage);
    if (item->layer < 0)
        return PLACES * (int)id.role;
    enum td_role role = id.role;
    if (role == TD_ROLE_NONE) {
        enum td_role module = td_role_around(item->stage);
        if (module == TD_ROLE_ATTN)
            return PLACES * TD_ROLE_ATTN_O + BEFORE_IT;
        if (module == TD_ROLE_MLP)
            return PLACES * TD_ROLE_MLP_DOWN + BEFORE_IT;
        return td_names_norm(item->stage) || strcmp(item->stage, "input") == 0 ? 0 : PLACES * TD_ROLE_HEAD;
    }
    if (id.cross)
        return PLACES * TD_ROLE_NORM_ATTN_POST + ACROSS;
    if (id.kind == TD_PART_INPUT && role == TD_ROLE_ATTN)
        return PLACES * TD_ROLE_NORM_ATTN + BEHIND_IT;
    if (id.kind == TD_PART_INPUT && role == TD_ROLE_MLP)
        return PLACES * TD_ROLE_NORM_MLP + BEHIND_IT;
    return PLACES * (int)role;
}

/* What goes into a module is there before what comes out of it. */
static bool goes_in(const struct td_item *item)
{
    struct td_identity id = td_role_of(item->name, item->layer, item->stage);
    return id.kind == TD_PART_INPUT;
}

/* Only names of modules: the stages of a dump have their own order. */
static void rank_roles(struct standing *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].place.dumped)
            continue;
        all[i].role_rank = 2 * role_rank(all[i].item) + !goes_in(all[i].item);
        if (all[i].layer >= 0)
            all[i].sublayer = td_place_find(all[i].item->stage).layer;
    }
}

/* A weight or bias, by a word of its name. */
static bool names_parameter(const char *name)
{
    static const char *const words[] = {"weight",         "bias",         "gamma",
                                        "beta",           "scales",       "qweight",
                                        "in_proj_weight", "in_proj_bias", "layer_norm_weight",
                                        "layer_norm_bias"};
    for (const char *at = name; *at;) {
        size_t length = strcspn(at, "./:");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == length && strncmp(at, words[i], length) == 0)
                return true;
        at += length;
        at += strspn(at, "./:");
    }
    return false;
}

static bool find_place(struct td_side *side, struct td_item *item, struct standing *s)
{
    s->item = item;
    s->layer = item->layer = s->place.layer;
    item->parameter = names_parameter(item->name);
    item->stage_rank = s->place.stage_rank;
    s->sublayer = -1;
    if (item->layer < 0)
        item->stage = item->name;
    else if (s->place.stage_length == 0)
        item->stage = "output"; /* the layer itself, named by nothing: what it put out */
    else
        item->stage = td_arena_printf(&side->arena, "%.*s%s%s", (int)s->place.stage_length, s->place.stage,
                                      s->place.part ? "." : "", s->place.part ? s->place.part : "");
    if (!item->stage)
        return false;
    struct td_identity id = td_role_of(item->name, item->layer, item->stage);
    item->role = id.role;
    item->cross = id.cross;
    item->experts = id.expert == TD_ALL_EXPERTS ? TD_EXPERTS_STACKED : TD_EXPERTS_APART;
    if (item->experts && id.role != TD_ROLE_NONE && !id.gradient && id.kind >= TD_PART_WEIGHT)
        item->parameter = true;
    return true;
}

/* The last part of a stage, when it is just one letter; else 0. */
static char last_letter(const char *stage)
{
    const char *last = stage;
    for (; *stage; stage++)
        last = strchr("./:", *stage) ? stage + 1 : last;
    return last[0] && !last[1] ? last[0] : 0;
}

/* "w" and "b": what a module of one's own calls its weight and bias. A "w" alone may be anything. */
static void find_short_parameters(struct td_side *side)
{
    bool weight = false, bias = false;
    for (size_t i = 0; i < side->count; i++) {
        char letter = last_letter(side->items[i].stage);
        weight = weight || letter == 'w' || letter == 'W';
        bias = bias || letter == 'b';
    }
    for (size_t i = 0; weight && bias && i < side->count; i++) {
        char letter = last_letter(side->items[i].stage);
        if (letter == 'w' || letter == 'W' || letter == 'b')
            side->items[i].parameter = true;
    }
}

/* The list as a whole goes from layer to layer as a model does: it is the run, and no collection of parts. */
static bool lists_a_run(const struct standing *all, size_t count)
{
    bool computed = false, head = false;
    const struct standing *before = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct standing *s = &all[i];
        computed = computed || !s->item->parameter;
        if (s->phase != FORWARD)
            continue;
        head = head || s->item->role == TD_ROLE_HEAD;
        if (before && s->layer < 0 && s->item->role == TD_ROLE_EMBED)
            return false;
        if (s->layer < 0)
            continue;
        if (head || (before && before->stack == s->stack && s->layer < before->layer))
            return false;
        before = s;
    }
    return computed;
}

/* Sorts `all`, and returns what the order rests on. */
static enum td_order_evidence sort(struct td_side *side, struct standing *all, size_t layered, bool dumped,
                                   enum td_order_evidence list)
{
    bool stages = false, computed = false;
    for (size_t i = 0; i < side->count; i++) {
        stages = stages || (all[i].place.dumped && all[i].place.stage_rank < td_stage_places);
        computed = computed || !all[i].item->parameter;
    }
    for (size_t i = 0; i < side->count && !computed && layered == 0; i++)
        all[i].rank = 0; /* weights without layers have no order */
    if (!computed && layered == 0)
        list = TD_ORDER_UNKNOWN;
    if (list >= TD_ORDER_SIDECAR || (list == TD_ORDER_FILE && !stages && layered == 0)) {
        qsort(all, side->count, sizeof *all, compare_ranks);
        return list;
    }
    if (list == TD_ORDER_FILE && !stages) {
        qsort(all, side->count, sizeof *all, compare_ranks);
        if (lists_a_run(all, side->count))
            return list;
    }
    if (layered > 0) {
        if (list == TD_ORDER_UNKNOWN)
            rank_roles(all, side->count);
        set_zones(all, side->count, dumped, list > TD_ORDER_TIMES);
    }
    qsort(all, side->count, sizeof *all, compare_standings);
    if (stages)
        return TD_ORDER_STAGES;
    return list != TD_ORDER_UNKNOWN ? list : layered ? TD_ORDER_NAMES : TD_ORDER_UNKNOWN;
}

/* Fills in what names and list tell of each item; false: no memory. */
static bool survey(struct td_side *side, struct standing *all, const struct td_place *places,
                   const struct standing **layered, size_t *layered_count, bool *dumped)
{
    *layered_count = 0;
    *dumped = false;
    for (size_t i = 0; i < side->count; i++) {
        all[i].place = places[i];
        if (!find_place(side, &side->items[i], &all[i]))
            return false;
        all[i].index = i;
        if (td_names_backward(side->items[i].name))
            all[i].phase = side->items[i].parameter ? STORED : BACKWARD;
        *dumped = *dumped || all[i].place.dumped;
        if (all[i].layer >= 0)
            layered[(*layered_count)++] = &all[i];
    }
    find_short_parameters(side);
    if (!td_pipeline_renumber(side))
        return false;
    for (size_t i = 0; i < side->count; i++)
        all[i].layer = side->items[i].layer;
    return true;
}

static void set_order(struct td_side *side, const struct standing *all)
{
    size_t wave = 0;
    for (size_t i = 0; i < side->count; i++) {
        struct td_item *item = &side->items[all[i].index];
        wave += i > 0 && compare_waves(&all[i - 1], &all[i]) != 0;
        item->order = i;
        item->wave = wave;
    }
}

bool td_order_find(struct td_side *side)
{
    struct standing *all = calloc(side->count + 1, sizeof *all);
    struct td_place *places = calloc(side->count + 1, sizeof *places);
    const struct standing **layered = calloc(side->count + 1, sizeof(*layered));
    uint64_t *rank = calloc(side->count + 1, sizeof *rank);
    size_t count = 0;
    bool dumped = false;
    enum td_order_evidence list = TD_ORDER_UNKNOWN;
    bool ok = all && layered && rank && places && td_template_places(side, places) &&
              td_template_name(side, places) && survey(side, all, places, layered, &count, &dumped) &&
              td_evidence_find(side, rank, &list);
    if (ok) {
        for (size_t i = 0; i < side->count; i++)
            all[i].rank = rank[i];
        number_stacks(all, layered, count, side->count);
        side->order = sort(side, all, count, dumped, list);
        set_order(side, all);
    }
    free(places);
    free(rank);
    free(layered);
    free(all);
    return ok;
}
