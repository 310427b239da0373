/* memory.c: the collector: events in, figures per owner and the moving moments out (see memory.h). */
#include "analyse/memory_core.h"

#include "base/checked.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LASTING_NS INT64_C(50000000)

tdbg_status td_memory_open(struct td_memory **out, uint64_t granule, struct tdbg_error *error)
{
    struct td_memory *m = calloc(1, sizeof *m);
    if (!m)
        return td_fail_nomem(error);
    m->granule = granule;
    m->want_ns[0] = m->want_ns[1] = -1;
    *out = m;
    return TDBG_OK;
}

void td_memory_close(struct td_memory **memory)
{
    struct td_memory *m = *memory;
    *memory = NULL;
    if (!m)
        return;
    for (int i = 0; i < MOVING_MOMENTS; i++)
        free(m->moments[i].ghosts);
    for (int i = 0; i < 2; i++)
        free(m->holdings[i].amounts);
    free(m->marks);
    free(m->owners);
    free(m->granules.slots);
    free(m->blocks.slots);
    free(m);
}

size_t td_memory_owners(const struct td_memory *m)
{
    return m->owner_count;
}

/* --- Owners --------------------------------------------------------------------------------------------- */

static struct td_owner *owner_of(struct td_memory *m, uint32_t id)
{
    if (id >= m->owner_capacity) {
        size_t capacity = m->owner_capacity ? m->owner_capacity : 64;
        while (capacity <= id)
            capacity *= 2;
        struct td_owner *larger = realloc(m->owners, capacity * sizeof *larger);
        if (!larger)
            return NULL;
        memset(larger + m->owner_capacity, 0, (capacity - m->owner_capacity) * sizeof *larger);
        m->owners = larger;
        m->owner_capacity = capacity;
    }
    if (id >= m->owner_count)
        m->owner_count = (size_t)id + 1;
    return &m->owners[id];
}

struct td_memory_amount td_owner_at(const struct td_owner *o, const struct td_moment_state *moment, int index)
{
    return o->saved[index].epoch == moment->epoch ? o->saved[index].live : o->live;
}

/* The owner is about to change for the first time since a moment: what it holds now it held then. */
static void save_owner(const struct td_memory *m, struct td_owner *o)
{
    for (int i = 0; i < MOVING_MOMENTS; i++) {
        if (o->saved[i].epoch == m->moments[i].epoch)
            continue;
        o->saved[i].epoch = m->moments[i].epoch;
        o->saved[i].live = o->live;
    }
}

static void change_owner(struct td_memory *m, struct td_owner *o, const struct td_block *block, bool freed)
{
    uint64_t before = o->live.bytes;
    save_owner(m, o);
    if (freed) {
        o->live.bytes -= block->bytes;
        o->live.blocks--;
    } else {
        o->live.bytes += block->bytes;
        o->live.blocks++;
        if (o->asked.blocks == 0) {
            o->first_ns = m->now_ns;
            o->first = (int64_t)m->allocations;
        }
        o->last_ns = m->now_ns;
        o->asked.bytes += block->bytes;
        o->asked.blocks++;
    }
    td_series_put(&o->by_time, o->times, SERIES_SLOTS, m->now_ns, before, o->live.bytes);
    td_series_put(&o->by_number, o->numbers, GROWTH_SLOTS, (int64_t)m->allocations, before, o->live.bytes);
}

/* --- Granules and moments ------------------------------------------------------------------------------- */

static bool count_granules(struct td_memory *m, const struct td_block *block, bool freed)
{
    if (block->pool == TD_POOL_MAPPING)
        return true;
    uint64_t first = block->address / m->granule, last = (block->address + block->bytes - 1) / m->granule;
    uint64_t inner = last - first > 1 ? (last - first - 1) * m->granule : 0;
    if (freed) {
        td_granule_drop(&m->granules, first);
        if (last > first)
            td_granule_drop(&m->granules, last);
        m->inner_bytes -= inner;
        m->pooled_bytes -= block->bytes;
        return true;
    }
    if (!td_granule_add(&m->granules, first))
        return false;
    if (last > first && !td_granule_add(&m->granules, last)) {
        td_granule_drop(&m->granules, first);
        return false;
    }
    m->inner_bytes += inner;
    m->pooled_bytes += block->bytes;
    return true;
}

static void move_moment(struct td_memory *m, enum td_memory_moment which, uint64_t score)
{
    struct td_moment_state *moment = &m->moments[which];
    if (score <= moment->score)
        return;
    moment->score = score;
    moment->number = m->events;
    moment->epoch++;
    moment->time_ns = m->now_ns;
    moment->live = m->live;
    moment->reserved = m->reserved;
    moment->ghost_count = 0;
}

/* Free memory that is pinned does harm while more is asked for, or for as long as it lasts. A program that
 * gives its memory back block by block at its end passes through such states, and none of them matters. */
static void look_for_waste(struct td_memory *m, const struct td_memory_event *next)
{
    uint64_t held = m->granules.count * m->granule + m->inner_bytes;
    if (next->bytes > 0 || next->time_ns - m->now_ns > LASTING_NS)
        move_moment(m, TD_MOMENT_WORST, held > m->pooled_bytes ? held - m->pooled_bytes : 0);
}

/* A dying block that was alive at a moment is remembered for it. */
static bool haunt(struct td_memory *m, const struct td_block *block)
{
    for (int i = 0; i < MOVING_MOMENTS; i++) {
        struct td_moment_state *moment = &m->moments[i];
        if (block->number > moment->number)
            continue;
        if (moment->ghost_count == moment->ghost_capacity) {
            size_t capacity = moment->ghost_capacity ? moment->ghost_capacity * 2 : 256;
            struct td_block *larger = realloc(moment->ghosts, capacity * sizeof *larger);
            if (!larger)
                return false;
            moment->ghosts = larger;
            moment->ghost_capacity = capacity;
        }
        moment->ghosts[moment->ghost_count++] = *block;
    }
    return true;
}

/* --- Snapshots ------------------------------------------------------------------------------------------ */

/* "0.5s" is half a second into the run. */
static int64_t named_time(const char *name)
{
    char *end;
    double seconds = strtod(name, &end);
    bool good = end != name && strcmp(end, "s") == 0 && seconds >= 0 && seconds < 1e9;
    return good ? (int64_t)(seconds * 1e9) : -1;
}

void td_memory_want(struct td_memory *m, const char *from, const char *to)
{
    m->want[0] = from;
    m->want[1] = to;
    for (int i = 0; i < 2; i++)
        m->want_ns[i] = m->want[i] ? named_time(m->want[i]) : -1;
}

static tdbg_status take_holdings(struct td_memory *m, struct td_holdings *h, const char *name,
                                 struct tdbg_error *error)
{
    struct td_memory_amount *amounts = calloc(m->owner_count + 1, sizeof *amounts);
    if (!amounts)
        return td_fail_nomem(error);
    for (size_t i = 0; i < m->owner_count; i++)
        amounts[i] = m->owners[i].live;
    free(h->amounts);
    *h = (struct td_holdings){.taken = true, .amounts = amounts, .count = m->owner_count};
    snprintf(h->name, sizeof h->name, "%s", name);
    return TDBG_OK;
}

tdbg_status td_memory_snapshot(struct td_memory *m, const char *name, int64_t time_ns,
                               struct tdbg_error *error)
{
    if (m->mark_count == MAX_MARKS)
        return td_fail(error, TDBG_LIMIT, "more than %d memory snapshots", MAX_MARKS);
    if (m->mark_count == m->mark_capacity) {
        size_t capacity = m->mark_capacity ? m->mark_capacity * 2 : 8;
        struct td_memory_mark *larger = realloc(m->marks, capacity * sizeof *larger);
        if (!larger)
            return td_fail_nomem(error);
        m->marks = larger;
        m->mark_capacity = capacity;
    }
    struct td_memory_mark *mark = &m->marks[m->mark_count++];
    *mark = (struct td_memory_mark){.time_ns = time_ns, .live = m->live};
    snprintf(mark->name, sizeof mark->name, "%s", name);
    if (!m->want[0] && !m->want[1])
        return take_holdings(m, &m->holdings[m->mark_count > 1], name, error);
    for (int i = 0; i < 2; i++)
        if (m->want[i] && strcmp(m->want[i], name) == 0)
            TD_TRY(take_holdings(m, &m->holdings[i], name, error));
    return TDBG_OK;
}

/* --- Events --------------------------------------------------------------------------------------------- */

tdbg_status td_memory_take_wanted(struct td_memory *m, int64_t until_ns, struct tdbg_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (m->want_ns[i] < 0 || until_ns - m->begin_ns < m->want_ns[i])
            continue;
        m->want_ns[i] = -1;
        TD_TRY(td_memory_snapshot(m, m->want[i], m->now_ns, error));
    }
    return TDBG_OK;
}

static tdbg_status pass_time(struct td_memory *m, int64_t time_ns, struct tdbg_error *error)
{
    if (m->events == 0) {
        m->begin_ns = m->now_ns = time_ns;
        for (int i = 0; i < MOVING_MOMENTS; i++)
            m->moments[i].time_ns = time_ns; /* where they stay, unless one is reached */
    }
    TD_TRY(td_memory_take_wanted(m, time_ns, error));
    if (time_ns > m->now_ns)
        m->now_ns = time_ns;
    return TDBG_OK;
}

static tdbg_status release_block(struct td_memory *m, struct td_block *block, struct tdbg_error *error)
{
    uint64_t before = m->live.bytes;
    if (!haunt(m, block))
        return td_fail_nomem(error);
    change_owner(m, &m->owners[block->owner], block, true);
    (void)count_granules(m, block, true);
    m->live.bytes -= block->bytes;
    m->live.blocks--;
    td_block_remove(&m->blocks, block);
    td_series_put(&m->timeline, m->most, TIMELINE_SLOTS, m->now_ns, before, m->live.bytes);
    return TDBG_OK;
}

static tdbg_status hold_block(struct td_memory *m, const struct td_memory_event *e, struct tdbg_error *error)
{
    uint64_t before = m->live.bytes, end;
    if (!td_add_u64(e->address, e->bytes, &end) || !td_add_u64(m->asked.bytes, e->bytes, &end))
        return td_fail(error, TDBG_CORRUPT, "a block of %llu bytes at %#llx", (unsigned long long)e->bytes,
                       (unsigned long long)e->address);
    struct td_owner *owner = owner_of(m, e->owner);
    struct td_block *block = owner ? td_block_insert(&m->blocks, e->address) : NULL;
    if (!block)
        return td_fail_nomem(error);
    block->bytes = e->bytes;
    block->number = m->events;
    block->owner = e->owner;
    block->pool = e->pool;
    if (!count_granules(m, block, false)) {
        td_block_remove(&m->blocks, block);
        return td_fail_nomem(error);
    }
    change_owner(m, owner, block, false);
    m->live.bytes += e->bytes;
    m->live.blocks++;
    m->asked.bytes += e->bytes;
    td_series_put(&m->timeline, m->most, TIMELINE_SLOTS, m->now_ns, before, m->live.bytes);
    move_moment(m, TD_MOMENT_PEAK, m->live.bytes);
    return TDBG_OK;
}

tdbg_status td_memory_add(struct td_memory *m, const struct td_memory_event *event, struct tdbg_error *error)
{
    look_for_waste(m, event);
    TD_TRY(pass_time(m, event->time_ns, error));
    m->events++;
    struct td_block *old = td_block_find(&m->blocks, event->address);
    if (event->bytes == 0) {
        m->releases++;
        m->unknown += old == NULL;
        return old ? release_block(m, old, error) : TDBG_OK;
    }
    m->allocations++;
    if (event->owner >= TD_MAX_MEMORY_OWNERS)
        return td_fail(error, TDBG_LIMIT, "more than %d owners of memory", TD_MAX_MEMORY_OWNERS);
    if (old) /* it was given back unseen: nobody is handed the same address twice */
        TD_TRY(release_block(m, old, error));
    return hold_block(m, event, error);
}

void td_memory_reserve(struct td_memory *m, int64_t time_ns, uint64_t bytes)
{
    if (time_ns > m->now_ns)
        m->now_ns = time_ns;
    m->reserved = bytes;
}
