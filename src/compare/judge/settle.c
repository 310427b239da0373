/* settle.c: see settle.h. An item of A without a partner stays behind the one in front of it. */
#include "compare/judge/settle.h"

#include <stdbool.h>
#include <stdlib.h>

/* A match by where its tensor of B stands. */
struct standing {
    size_t order, wave, index;
    struct td_match match;
};

static int compare_standings(const void *x, const void *y)
{
    const struct standing *a = x, *b = y;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Experts that were joined to be compared with a stack of them are no items of the side. */
static bool is_of(const struct td_side *side, const struct td_item *item)
{
    return item >= side->items && item < side->items + side->count;
}

tdbg_status td_order_settle(struct td_matches *matches, struct td_side *a, const struct td_side *b,
                            struct tdbg_error *error)
{
    bool better = a->order == TD_ORDER_UNKNOWN ? b->order != TD_ORDER_UNKNOWN
                                               : a->order == TD_ORDER_TIMES && b->order >= TD_ORDER_SIDECAR;
    if (!better || matches->count == 0)
        return TDBG_OK;
    for (size_t i = 0; i < matches->count; i++)
        if (matches->pairs[i].a && !is_of(a, matches->pairs[i].a))
            return TDBG_OK;
    struct standing *list = calloc(matches->count, sizeof *list);
    bool *placed = calloc(a->count + 1, sizeof *placed);
    if (!list || !placed) {
        free(list);
        free(placed);
        return td_fail_nomem(error);
    }
    size_t order = 0, wave = 0, next = 0;
    for (size_t i = 0; i < matches->count; i++) {
        const struct td_match *m = &matches->pairs[i];
        order = m->b ? m->b->order : order;
        wave = m->b ? m->b->wave : wave;
        list[i] = (struct standing){order, wave, i, *m};
    }
    qsort(list, matches->count, sizeof *list, compare_standings);
    for (size_t i = 0; i < matches->count; i++) {
        matches->pairs[i] = list[i].match;
        size_t at = list[i].match.a ? (size_t)(list[i].match.a - a->items) : a->count;
        if (at == a->count || placed[at]) /* in several pairs: it runs with the first of them */
            continue;
        placed[at] = true;
        a->items[at].order =
            next++; /* each item has a number of its own below the count: others index by it */
        a->items[at].wave = list[i].wave;
    }
    a->order = b->order;
    free(list);
    free(placed);
    return TDBG_OK;
}
