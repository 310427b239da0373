/* profile_heap.c: see profile_heap.h. A block that is removed leaves no hole: those behind it that belong
 * further to the front move up. */
#include "analyse/profile_heap.h"

#include <stdlib.h>

enum { EVENTS = 1 << 18, BLOCKS = 1 << 20 };

struct td_heap_event {
    int64_t time_ns;
    uint64_t address, bytes;
    uint32_t node, order;
};

struct td_heap_block {
    uint64_t address, bytes;
    uint32_t node;
};

static size_t home_of(const struct td_profile_heap *h, uint64_t address)
{
    return (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (h->block_room - 1);
}

/* Where `address` is, or the free place where it would be. */
static size_t find(const struct td_profile_heap *h, uint64_t address)
{
    size_t at = home_of(h, address);
    while (h->blocks[at].address && h->blocks[at].address != address)
        at = (at + 1) & (h->block_room - 1);
    return at;
}

static bool make_room(struct td_profile_heap *h)
{
    if (h->block_count * 2 < h->block_room)
        return true;
    struct td_profile_heap bigger = *h;
    bigger.block_room = h->block_room ? h->block_room * 2 : 1024;
    bigger.blocks = calloc(bigger.block_room, sizeof *bigger.blocks);
    if (!bigger.blocks)
        return false;
    for (size_t i = 0; i < h->block_room; i++)
        if (h->blocks[i].address)
            bigger.blocks[find(&bigger, h->blocks[i].address)] = h->blocks[i];
    free(h->blocks);
    h->blocks = bigger.blocks;
    h->block_room = bigger.block_room;
    return true;
}

static void give_back(struct td_profile_heap *h, struct td_profile *p, uint64_t address)
{
    if (!h->block_room)
        return;
    size_t hole = find(h, address), mask = h->block_room - 1;
    if (!h->blocks[hole].address)
        return;
    td_profile_hold(p, h->blocks[hole].node, -(int64_t)h->blocks[hole].bytes);
    h->block_count--;
    for (size_t at = (hole + 1) & mask; h->blocks[at].address; at = (at + 1) & mask) {
        size_t home = home_of(h, h->blocks[at].address);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            h->blocks[hole] = h->blocks[at];
            hole = at;
        }
    }
    h->blocks[hole] = (struct td_heap_block){0};
}

static tdbg_status apply(struct td_profile_heap *h, struct td_profile *p, const struct td_heap_event *e,
                         struct tdbg_error *error)
{
    give_back(h, p, e->address); /* an address given out again was given back, seen or not */
    if (!e->bytes)
        return TDBG_OK;
    td_profile_allocated(p, e->node, (int64_t)e->bytes);
    if (h->block_count == BLOCKS)
        h->lost = true;
    if (h->lost)
        return TDBG_OK;
    if (!make_room(h))
        return td_fail_nomem(error);
    h->blocks[find(h, e->address)] = (struct td_heap_block){e->address, e->bytes, e->node};
    h->block_count++;
    td_profile_hold(p, e->node, (int64_t)e->bytes);
    return TDBG_OK;
}

static int by_time(const void *left, const void *right)
{
    const struct td_heap_event *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

tdbg_status td_profile_heap_flush(struct td_profile_heap *h, struct td_profile *p, struct tdbg_error *error)
{
    if (h->event_count)
        qsort(h->events, h->event_count, sizeof *h->events, by_time);
    for (size_t i = 0; i < h->event_count; i++) {
        TD_TRY(apply(h, p, &h->events[i], error));
        if (h->watch && !h->lost)
            h->watch(h->context, h->events[i].time_ns, p->nodes[TD_PROFILE_ROOT].held_bytes);
    }
    h->event_count = 0;
    return TDBG_OK;
}

tdbg_status td_profile_heap_add(struct td_profile_heap *h, struct td_profile *p, int64_t step,
                                const struct td_run_block *block, uint32_t node, struct tdbg_error *error)
{
    if (!block->address || block->bytes > INT64_MAX / 4)
        return TDBG_OK;
    if (h->event_count == EVENTS || step != h->step)
        TD_TRY(td_profile_heap_flush(h, p, error));
    h->step = step;
    if (h->event_count == h->event_room) {
        size_t room = h->event_room ? h->event_room * 2 : 1024;
        struct td_heap_event *bigger = realloc(h->events, room * sizeof *bigger);
        if (!bigger)
            return td_fail_nomem(error);
        h->events = bigger;
        h->event_room = room;
    }
    h->events[h->event_count] =
        (struct td_heap_event){block->time_ns, block->address, block->bytes, node, (uint32_t)h->event_count};
    h->event_count++;
    return TDBG_OK;
}

void td_profile_heap_release(struct td_profile_heap *h)
{
    free(h->events);
    free(h->blocks);
    *h = (struct td_profile_heap){0};
}
