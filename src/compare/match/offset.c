/* offset.c: by how much the layers of two models are numbered apart, where the names are of modules.
 *
 *     model.layers.3.self_attn.q_proj   against   layers.0.self_attn.q_proj      a part of a model, by itself
 *     blk.1.attn_q.weight               against   layers.0.attn.wq.weight        one counts from 1
 *
 * The offsets worth a try, and which names speak for, are those of stage.c. But module names come with
 * other names for everything else, and a file may hold any part of a model: layers 0 to 3 may be the last
 * four of eight. So where there is a choice, the values are asked: tensors of one role that agree at one
 * offset and at no other outvote the names.
 */
#include "compare/match/strategy.h"

#include "compare/layout/sampled.h"
#include "compare/name/place.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIED = 48,        /* pairs whose values are asked, spread over the layers */
    SMALLEST = 32,     /* elements: fewer correlate by chance */
    MOST_OFFSETS = 256 /* no model has more layers than that */
};

struct module {
    const struct td_item *item;
    const struct td_identity *id;
};

struct modules {
    struct module *list; /* by layer, then by what they are */
    size_t count;
};

/* `a` moved on by the offset. */
static int compare_at(const struct module *a, const struct module *b, int64_t offset)
{
    int order = td_compare_numbers(a->item->layer + offset, b->item->layer);
    if (order == 0)
        order = td_compare_numbers(a->id->role, b->id->role);
    if (order == 0)
        order = td_compare_numbers(a->id->expert, b->id->expert);
    if (order == 0)
        order = td_compare_numbers(td_identity_traits(a->id), td_identity_traits(b->id));
    return order || a->id->role != TD_ROLE_NONE ? order : strcmp(a->item->stage, b->item->stage);
}

static int compare_modules(const void *x, const void *y)
{
    const struct module *a = x, *b = y;
    int order = compare_at(a, b, 0);
    return order ? order : (a->item->order > b->item->order) - (a->item->order < b->item->order);
}

/* False: there is a dump by stages among them, or nothing; or more than one stack, each with numbers of its
 * own. `*found` tells. */
static tdbg_status modules_init(struct modules *out, struct td_matching *m, enum td_which which, bool *found,
                                struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    *out = (struct modules){.list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    *found = true;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_item *item = &side->items[i];
        if (item->layer < 0 || !td_is_free(m, which, i))
            continue;
        struct module *module = &out->list[out->count++];
        *module = (struct module){item, &m->identity[which][i]};
        if (td_place_find(item->name).dumped || module->id->stack != out->list[0].id->stack)
            *found = false;
    }
    *found = *found && out->count > 0;
    qsort(out->list, out->count, sizeof *out->list, compare_modules);
    return TDBG_OK;
}

/* Layers of A that B has, at this offset. */
static size_t layers_met(const struct modules *a, const struct modules *b, int64_t offset)
{
    size_t met = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        int64_t layer = a->list[i].item->layer;
        while (j < b->count && b->list[j].item->layer < layer + offset)
            j++;
        met += j < b->count && b->list[j].item->layer == layer + offset;
        while (i < a->count && a->list[i].item->layer == layer)
            i++;
    }
    return met;
}

static bool is_askable(const struct td_item *a, const struct td_item *b)
{
    const struct td_shape *x = &a->parts[0]->shape, *y = &b->parts[0]->shape;
    return a->part_count == 1 && b->part_count == 1 && a->parts[0]->count >= SMALLEST && x->ndim == y->ndim &&
           memcmp(x->size, y->size, (size_t)x->ndim * sizeof x->size[0]) == 0;
}

struct poll {
    size_t met, askable, asked, agreed;
};

/* Goes over the pairs at this offset and asks every `step`-th, none where that is 0. */
static void ask(struct poll *poll, const struct modules *a, const struct modules *b, int64_t offset,
                size_t step)
{
    poll->askable = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const struct td_item *x = a->list[i].item, *y = b->list[j].item;
        int order = compare_at(&a->list[i], &b->list[j], offset);
        i += order <= 0;
        j += order >= 0;
        if (order != 0 || !is_askable(x, y) || poll->askable++ % (step ? step : 1) || !step)
            continue;
        struct td_layout as_they_are = {.shape = x->parts[0]->shape};
        poll->asked++;
        poll->agreed += td_layout_fit(x, y, &as_they_are) > TD_CONVINCING;
    }
}

static struct poll poll_values(const struct modules *a, const struct modules *b, int64_t offset)
{
    struct poll poll = {.met = layers_met(a, b, offset)};
    ask(&poll, a, b, offset, 0);
    ask(&poll, a, b, offset, poll.askable / TRIED + 1);
    return poll;
}

/* A majority agrees here, and not half as many there: layers of one model resemble each other only where all
 * of them carry the same stream on. */
static bool outvotes(const struct poll *here, const struct poll *there)
{
    return here->agreed > 0 && 2 * here->agreed >= here->asked && here->agreed > 2 * there->agreed;
}

struct choice {
    int64_t offset;
    struct poll poll;
};

static void consider(struct choice *best, const struct modules *a, const struct modules *b, int64_t offset)
{
    struct choice other = {offset, poll_values(a, b, offset)};
    if (outvotes(&other.poll, &best->poll))
        *best = other;
}

/* A stage from the middle of a pipeline has its ends nowhere: where no value agrees at the usual offsets,
 * those under which the fewer layers lie within the more are all considered. */
static void consider_all(struct choice *best, const struct modules *a, const struct modules *b, int64_t first,
                         int64_t last)
{
    int64_t low = first < last ? first : last, high = first < last ? last : first;
    if (best->poll.asked == 0 || 2 * best->poll.agreed >= best->poll.asked || high - low > MOST_OFFSETS)
        return;
    for (int64_t offset = low; offset <= high; offset++)
        consider(best, a, b, offset);
}

tdbg_status td_match_find_offset(struct td_matching *m, struct tdbg_error *error)
{
    struct modules a, b;
    bool found_a, found_b;
    TD_TRY(modules_init(&a, m, TD_SIDE_A, &found_a, error));
    TD_TRY(modules_init(&b, m, TD_SIDE_B, &found_b, error));
    if (!found_a || !found_b)
        return TDBG_OK;
    int64_t first = b.list[0].item->layer - a.list[0].item->layer;
    int64_t last = b.list[b.count - 1].item->layer - a.list[a.count - 1].item->layer;
    if (first == 0 && last == 0)
        return TDBG_OK;
    const int64_t offsets[] = {0, first, last};
    struct choice best = {0, poll_values(&a, &b, 0)};
    for (int i = 1; i < 3; i++)
        if (layers_met(&a, &b, offsets[i]) > best.poll.met)
            best = (struct choice){offsets[i], poll_values(&a, &b, offsets[i])};
    for (int i = 0; i < 3; i++)
        consider(&best, &a, &b, offsets[i]);
    consider_all(&best, &a, &b, first, last);
    m->layer_offset = best.offset;
    return TDBG_OK;
}
