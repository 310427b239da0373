/* item.c: see item.h.
 *
 * Marks of ranks are stripped from the names, and what then has one name is joined when it is a whole set:
 * every rank from 0, each once, of one type and as many axes. Files counted "-00001-of-00008" may instead
 * share out the tensors of one model; a tensor that is in one of them only is no shard, and loses nothing but
 * the mark in its name. order.h does the rest.
 */
#include "compare/name/item.h"

#include "compare/name/order.h"

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
        for (size_t k = i; k < i + n; k++) {
            if (!make_item(side, slots, entries + k, 1, tensors[entries[k].index]->name, tensors))
                return false;
            slots[entries[k].index].torn = n > 1 && entries[k].marked;
        }
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

tdbg_status td_side_init(struct td_side *side, const struct td_tensor *const *tensors, size_t count,
                         struct tdbg_error *error)
{
    *side = (struct td_side){.tensors = count};
    td_arena_init(&side->arena, TD_MAX_METADATA);
    if (join_shards(side, tensors, count) && td_order_find(side))
        return TDBG_OK;
    td_side_release(side);
    return td_fail_nomem(error);
}

void td_side_release(struct td_side *side)
{
    td_arena_release(&side->arena);
    *side = (struct td_side){0};
}
