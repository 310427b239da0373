/* experts.c: the experts of a layer that are stored one by one, as the one tensor that others store.
 *
 *     layers.0.mlp.experts.0.gate_proj.weight [ff, d]
 *     layers.0.mlp.experts.1.gate_proj.weight [ff, d]
 *     becomes layers.0.mlp.experts.*.gate_proj.weight, in as many parts as there are experts
 *
 * Such a set stands beside the items of its side; its index is behind theirs. It is no more than an offer:
 * experts that found partners one by one are in no set any more, and a set that is paired takes all its
 * experts. Like shards, the parts follow each other along an axis, which the values confirm (candidates.h).
 * Only whole sets are made: every expert from 0, each once, of one type and shape.
 */
#include "compare/match/strategy.h"

#include <stdlib.h>
#include <string.h>

/* One expert on its way to a set: what it has in common with the others of the set. */
struct expert {
    int64_t layer, number;
    int traits;
    enum td_role role;
    size_t index;
};

static int compare_modules(const struct expert *a, const struct expert *b)
{
    int order = td_compare_numbers(a->layer, b->layer);
    if (order == 0)
        order = td_compare_numbers(a->role, b->role);
    return order ? order : td_compare_numbers(a->traits, b->traits);
}

static int compare_experts(const void *x, const void *y)
{
    const struct expert *a = x, *b = y;
    int order = compare_modules(a, b);
    if (order == 0)
        order = td_compare_numbers(a->number, b->number);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static size_t list_experts(const struct td_matching *m, enum td_which which, struct expert *list)
{
    const struct td_side *side = m->side[which];
    size_t count = 0;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_identity *id = &m->identity[which][i];
        if (id->expert >= 0 && id->role != TD_ROLE_NONE && side->items[i].part_count == 1)
            list[count++] =
                (struct expert){side->items[i].layer, id->expert, td_identity_traits(id), id->role, i};
    }
    qsort(list, count, sizeof *list, compare_experts);
    return count;
}

static bool is_whole(const struct td_side *side, const struct expert *list, size_t n)
{
    const struct td_tensor *first = side->items[list[0].index].parts[0];
    for (size_t i = 0; i < n; i++) {
        const struct td_tensor *t = side->items[list[i].index].parts[0];
        if (list[i].number != (int64_t)i || t->dtype != first->dtype || t->shape.ndim != first->shape.ndim ||
            memcmp(t->shape.size, first->shape.size,
                   (size_t)first->shape.ndim * sizeof first->shape.size[0]) != 0)
            return false;
    }
    return n >= 2 && n <= TD_MAX_SHARDS;
}

/* The name of the first expert with a '*' where the second has another number. */
static const char *name_of_all(struct td_matching *m, const char *first, const char *second)
{
    size_t at = 0;
    while (first[at] && first[at] == second[at])
        at++;
    size_t digits = strspn(first + at, "0123456789");
    return td_arena_printf(m->kept, "%.*s*%s", (int)at, first, first + at + digits);
}

static bool make_set(struct td_matching *m, enum td_which which, const struct expert *list, size_t n)
{
    const struct td_side *side = m->side[which];
    struct td_expert_set *set = &m->sets[which][m->set_count[which]++];
    const struct td_tensor **parts = td_arena_array(m->kept, n, sizeof(*parts));
    set->members = td_arena_array(&m->scratch, n, sizeof *set->members);
    set->item = td_arena_alloc(m->kept, sizeof *set->item);
    if (!parts || !set->members || !set->item)
        return false;
    set->count = n;
    set->identity = m->identity[which][list[0].index];
    set->identity.expert = TD_ALL_EXPERTS;
    const struct td_item *first = &side->items[list[0].index], *second = &side->items[list[1].index];
    *set->item = *first;
    for (size_t i = 0; i < n; i++) {
        const struct td_item *expert = &side->items[list[i].index];
        set->members[i] = list[i].index;
        parts[i] = expert->parts[0];
        if (expert->order < set->item->order)
            set->item->order = expert->order;
    }
    set->item->parts = parts;
    set->item->part_count = (int)n;
    set->item->experts = TD_EXPERTS_JOINED;
    set->item->name = name_of_all(m, first->name, second->name);
    set->item->stage = name_of_all(m, first->stage, second->stage);
    return set->item->name && set->item->stage;
}

tdbg_status td_match_find_experts(struct td_matching *m, enum td_which which, struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    struct expert *list = td_arena_array(&m->scratch, side->count + 1, sizeof *list);
    m->sets[which] = td_arena_array(&m->scratch, side->count / 2 + 1, sizeof *m->sets[which]);
    if (!list || !m->sets[which])
        return td_fail_nomem(error);
    size_t count = list_experts(m, which, list);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && compare_modules(&list[i], &list[i + n]) == 0;)
            n++;
        if (is_whole(side, list + i, n) && !make_set(m, which, list + i, n))
            return td_fail_nomem(error);
    }
    return TDBG_OK;
}
