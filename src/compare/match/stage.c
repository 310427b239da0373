/* stage.c: {layer}_{stage} on both sides.
 *
 * One engine may number layers from 1, or dump layers 3 to 10 where the other dumps 0 to 7. Sets that differ
 * by a constant show it at their ends, so the offsets worth a try are those of the lowest and the highest
 * layers. The one under which most layers have a partner is taken; layers, not pairs, are counted, since a
 * layer dumped in part says nothing about its number. No offset is preferred when it does as well.
 */
#include "compare/match/strategy.h"

#include "compare/name/place.h"

#include <stdlib.h>
#include <string.h>

struct dump {
    const struct td_item *item;
    size_t index;
    const char *folder; /* of the name, with its length */
    size_t folder_length;
};

struct dumps {
    struct dump *list; /* by layer, stage, folder, execution */
    size_t count;
};

static int compare_places(const struct dump *a, const struct dump *b, int64_t offset)
{
    if (a->item->layer + offset != b->item->layer)
        return a->item->layer + offset < b->item->layer ? -1 : 1;
    return strcmp(a->item->stage, b->item->stage);
}

static int compare_folders(const struct dump *a, const struct dump *b)
{
    size_t common = a->folder_length < b->folder_length ? a->folder_length : b->folder_length;
    int by_text = memcmp(a->folder, b->folder, common);
    return by_text ? by_text : (a->folder_length > b->folder_length) - (a->folder_length < b->folder_length);
}

static int compare_dumps(const void *x, const void *y)
{
    const struct dump *a = x, *b = y;
    int order = compare_places(a, b, 0);
    if (order == 0)
        order = compare_folders(a, b);
    return order ? order : (a->item->order > b->item->order) - (a->item->order < b->item->order);
}

static tdbg_status dumps_init(struct dumps *out, struct td_matching *m, enum td_which which,
                              struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    *out = (struct dumps){.list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++) {
        struct td_place place = td_place_find(side->items[i].name);
        if (!m->paired[which][i] && place.dumped)
            out->list[out->count++] = (struct dump){&side->items[i], i, side->items[i].name, place.stack};
    }
    qsort(out->list, out->count, sizeof *out->list, compare_dumps);
    return TDBG_OK;
}

/* Layers of A of which any stage is in B, at this offset. */
static size_t layers_met(const struct dumps *a, const struct dumps *b, int64_t offset)
{
    size_t met = 0;
    int64_t last = -1;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        int order = compare_places(&a->list[i], &b->list[j], offset);
        if (order == 0 && a->list[i].item->layer != last) {
            last = a->list[i].item->layer;
            met++;
        }
        i += order <= 0;
        j += order >= 0;
    }
    return met;
}

static int64_t find_offset(const struct dumps *a, const struct dumps *b)
{
    const struct dump *first_a = a->list, *last_a = a->list + a->count - 1;
    const struct dump *first_b = b->list, *last_b = b->list + b->count - 1;
    int64_t offsets[] = {0, first_b->item->layer - first_a->item->layer,
                         last_b->item->layer - last_a->item->layer};
    int64_t best = 0;
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        size_t met = layers_met(a, b, offsets[i]);
        if (met > most) {
            most = met;
            best = offsets[i];
        }
    }
    return best;
}

static size_t run_length(const struct dumps *d, size_t from)
{
    size_t n = 1;
    while (from + n < d->count && compare_places(&d->list[from], &d->list[from + n], 0) == 0)
        n++;
    return n;
}

/* One stage of one layer, several times: those in folders of one name first, the rest as they come. */
static void pair_runs(struct td_matching *m, const struct dump *a, size_t na, const struct dump *b, size_t nb)
{
    for (size_t i = 0, j = 0; i < na && j < nb;) {
        int order = compare_folders(&a[i], &b[j]);
        if (order == 0)
            td_pair(m, a[i].index, b[j].index, TD_MATCH_STAGE);
        i += order <= 0;
        j += order >= 0;
    }
    for (size_t i = 0, j = 0; i < na && j < nb;) {
        if (m->paired[TD_SIDE_A][a[i].index])
            i++;
        else if (m->paired[TD_SIDE_B][b[j].index])
            j++;
        else
            td_pair(m, a[i].index, b[j].index, TD_MATCH_STAGE);
    }
}

tdbg_status td_match_by_stage(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct dumps a, b;
    TD_TRY(dumps_init(&a, m, TD_SIDE_A, error));
    TD_TRY(dumps_init(&b, m, TD_SIDE_B, error));
    if (a.count == 0 || b.count == 0)
        return td_match_find_offset(m, error); /* for the strategies that follow */
    m->layer_offset = find_offset(&a, &b);
    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        int order = compare_places(&a.list[i], &b.list[j], m->layer_offset);
        size_t na = order <= 0 ? run_length(&a, i) : 0, nb = order >= 0 ? run_length(&b, j) : 0;
        if (order == 0)
            pair_runs(m, &a.list[i], na, &b.list[j], nb);
        i += na;
        j += nb;
    }
    return TDBG_OK;
}
