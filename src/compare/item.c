/* item.c: see item.h.
 *
 * Two passes over the names. The first strips the marks of ranks and joins what then has one name, when it
 * is a whole set: every rank from 0, each once, of one type and as many axes. Files counted "-00001-of-00008"
 * may instead share out the tensors of one model; a tensor that is in one of them only is no shard, and loses
 * nothing but the mark in its name.
 *
 * The second finds the order of execution:
 *
 *     embeddings and what the file has before its first layer
 *     each stack (encoder, then decoder): layer, stage, then as in the file; what follows the stack in the
 * file the final norm and the head
 *
 * Names in front of the layer tell stacks apart only if they must, that is if one stage of one layer is in
 * several: attn/3_query.pth and mlp/3_post_mlp.pth are one stack in two folders.
 */
#include "compare/item.h"

#include "compare/families.h"
#include "compare/place.h"

#include <stdlib.h>
#include <string.h>

/* A tensor on its way to an item: by its name without the mark. */
struct entry {
    const char *name;
    struct td_shard shard;
    bool marked;
    size_t index;
};

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int by_name = strcmp(a->name, b->name);
    if (by_name)
        return by_name;
    if (a->shard.rank != b->shard.rank)
        return a->shard.rank < b->shard.rank ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Ranks 0 to n - 1, each once, of tensors that can be parts of one. */
static bool is_whole(const struct entry *set, size_t n, const struct td_tensor *const *tensors)
{
    if (n < 2 || n > TD_MAX_SHARDS)
        return false;
    const struct td_tensor *first = tensors[set[0].index];
    for (size_t i = 0; i < n; i++) {
        const struct td_tensor *t = tensors[set[i].index];
        if (!set[i].marked || set[i].shard.rank != (int64_t)i || set[i].shard.of != set[0].shard.of ||
            t->dtype != first->dtype || t->shape.ndim != first->shape.ndim)
            return false;
    }
    return set[0].shard.of == 0 || set[0].shard.of == (int64_t)n;
}

/* One item of parts [0, n) of `set`, at the place of the tensor that comes first in the file. */
static bool make_item(struct td_side *side, struct td_item *slots, const struct entry *set, size_t n,
                      const char *name, const struct td_tensor *const *tensors)
{
    const struct td_tensor **parts = td_arena_array(&side->arena, n, sizeof(*parts));
    if (!parts)
        return false;
    size_t first = set[0].index;
    for (size_t i = 0; i < n; i++) {
        parts[i] = tensors[set[i].index];
        first = set[i].index < first ? set[i].index : first;
    }
    slots[first] = (struct td_item){.name = name, .part_count = (int)n, .parts = parts};
    return true;
}

static bool make_items(struct td_side *side, struct td_item *slots, const struct entry *entries, size_t count,
                       const struct td_tensor *const *tensors)
{
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && strcmp(entries[i + n].name, entries[i].name) == 0;)
            n++;
        bool shared_out = n == 1 && entries[i].shard.of > 0;
        if (is_whole(entries + i, n, tensors) || shared_out) {
            if (!make_item(side, slots, entries + i, n, entries[i].name, tensors))
                return false;
            continue;
        }
        for (size_t k = i; k < i + n; k++)
            if (!make_item(side, slots, entries + k, 1, tensors[entries[k].index]->name, tensors))
                return false;
    }
    return true;
}

static bool read_names(struct td_side *side, struct entry *entries, size_t count,
                       const struct td_tensor *const *tensors)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = tensors[i]->name;
        entries[i] = (struct entry){.name = name, .index = i};
        char *bare = malloc(strlen(name) + 1);
        if (!bare)
            return false;
        entries[i].marked = td_shard_name(name, bare, &entries[i].shard);
        if (entries[i].marked)
            entries[i].name = td_arena_strdup(&side->arena, bare);
        else
            entries[i].shard = (struct td_shard){0};
        free(bare);
        if (!entries[i].name)
            return false;
    }
    return true;
}

static bool join_shards(struct td_side *side, const struct td_tensor *const *tensors, size_t count)
{
    struct entry *entries = calloc(count + 1, sizeof *entries);
    struct td_item *slots = td_arena_array(&side->arena, count + 1, sizeof *slots);
    bool ok = entries && slots && read_names(side, entries, count, tensors);
    if (ok) {
        qsort(entries, count, sizeof *entries, compare_entries);
        ok = make_items(side, slots, entries, count, tensors);
    }
    free(entries);
    if (!ok)
        return false;
    for (size_t i = 0; i < count; i++)
        if (slots[i].part_count)
            slots[side->count++] = slots[i];
    side->items = slots;
    return true;
}

/* Where an item stands in the order of execution. */
struct standing {
    struct td_place place;
    const struct td_item *item;
    enum { BEFORE, WITHIN, AFTER } zone;
    size_t stack; /* the number of the stack, in the order of the file; 0 when they are one */
    int64_t layer;
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

/* Numbers the stacks by where they begin in the file: the index of their first item will do. */
static void number_stacks(struct standing *all, const struct standing **list, size_t count)
{
    if (!stacks_differ(list, count))
        return;
    qsort(list, count, sizeof *list, compare_stacks);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (compare_text(list[first]->item->name, list[first]->place.stack, list[i]->item->name,
                         list[i]->place.stack) != 0)
            first = i;
        all[list[i]->index].stack = list[first]->index + 1;
    }
}

static void set_zones(struct standing *all, size_t count, bool dumped)
{
    bool layered = false;
    size_t stack = 0;
    for (size_t i = 0; i < count; i++) {
        struct standing *s = &all[i];
        if (s->layer >= 0) {
            s->zone = WITHIN;
            layered = true;
            stack = s->stack;
            continue;
        }
        enum td_role role = td_role_of(s->item->name, -1, s->item->name).role;
        s->zone = layered ? WITHIN : dumped ? AFTER : BEFORE;
        if (role == TD_ROLE_EMBED || role == TD_ROLE_EMBED_POSITION)
            s->zone = BEFORE;
        else if (role == TD_ROLE_NORM_FINAL || role == TD_ROLE_HEAD)
            s->zone = AFTER;
        s->stack = stack;
        s->layer = INT64_MAX;
    }
}

static int compare_standings(const void *x, const void *y)
{
    const struct standing *a = x, *b = y;
    if (a->zone != b->zone)
        return a->zone < b->zone ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->place.stage_rank != b->place.stage_rank)
        return a->place.stage_rank < b->place.stage_rank ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* A weight or bias, by a word of its name. */
static bool names_parameter(const char *name)
{
    static const char *const words[] = {"weight", "bias", "gamma", "beta", "scales", "qweight"};
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
    s->place = td_place_find(item->name);
    s->item = item;
    s->layer = item->layer = s->place.layer;
    item->parameter = names_parameter(item->name);
    item->stage_rank = s->place.stage_rank;
    if (item->layer < 0)
        item->stage = item->name;
    else if (s->place.stage_length == 0)
        item->stage = "output"; /* the layer itself, named by nothing: what it put out */
    else
        item->stage = td_arena_strndup(&side->arena, s->place.stage, s->place.stage_length);
    return item->stage != NULL;
}

/* A recorded run was there: its list is the order, whatever the names say. */
static bool was_recorded(const struct td_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (!side->items[i].parts[0]->executed)
            return false;
    return side->count > 0;
}

static bool find_order(struct td_side *side)
{
    struct standing *all = calloc(side->count + 1, sizeof *all);
    const struct standing **layered = calloc(side->count + 1, sizeof(*layered));
    size_t count = 0;
    bool dumped = false, ok = all && layered;
    for (size_t i = 0; ok && i < side->count; i++) {
        ok = find_place(side, &side->items[i], &all[i]);
        all[i].index = i;
        dumped = dumped || all[i].place.dumped;
        if (all[i].layer >= 0)
            layered[count++] = &all[i];
    }
    if (ok) {
        number_stacks(all, layered, count);
        if (count > 0)
            set_zones(all, side->count, dumped);
        if (!was_recorded(side))
            qsort(all, side->count, sizeof *all, compare_standings);
        for (size_t i = 0; i < side->count; i++)
            side->items[all[i].index].order = i;
    }
    free(layered);
    free(all);
    return ok;
}

tdbg_status td_side_init(struct td_side *side, const struct td_tensor *const *tensors, size_t count,
                         struct tdbg_error *error)
{
    *side = (struct td_side){.tensors = count};
    td_arena_init(&side->arena, TD_MAX_METADATA);
    if (join_shards(side, tensors, count) && find_order(side))
        return TDBG_OK;
    td_side_release(side);
    return td_fail_nomem(error);
}

void td_side_release(struct td_side *side)
{
    td_arena_release(&side->arena);
    *side = (struct td_side){0};
}
