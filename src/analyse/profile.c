/* profile.c: the tree of scopes: names, nodes, calls, and what follows from them at the end.
 *
 * Names and nodes are found through two hash tables with open addressing that grow by doubling; a node's key
 * is (parent, name). Parents have smaller numbers than their children, so one walk from the last node to the
 * first adds children up before their parent is looked at.
 */
#include "analyse/profile.h"

#include "analyse/grow.h"
#include "analyse/order.h"
#include "base/checked.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES = 1 << 17,         /* distinct names */
    NAME_BYTES = 8 << 20,    /* of text */
    NAME_LENGTH = 512,       /* longer names are cut */
    SERIES_BYTES = 16 << 20, /* of times per step */
};

static const char other_names[] = "(other names)";

/* Times come from files: a sum that would overflow stays at the end of the range. */
static int64_t add_ns(int64_t a, int64_t b)
{
    int64_t sum;
    if (td_add_i64(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t subtract_ns(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* --- Growing -------------------------------------------------------------------------------------------- */

static uint32_t *new_slots(size_t count)
{
    uint32_t *slots = malloc(count * sizeof *slots);
    if (slots)
        memset(slots, 0xff, count * sizeof *slots);
    return slots;
}

static size_t hash_text(const char *text, size_t length)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    for (; i < length; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 29);
}

static size_t hash_node(uint32_t parent, uint32_t name)
{
    uint64_t h = ((uint64_t)parent << 32 | name) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 29 ^ h >> 47);
}

/* The same entries in a table of twice the slots; `hash` tells where an entry belongs. */
static bool rehash(const struct td_profile *p, uint32_t **slots, size_t *slot_count, size_t entries,
                   size_t (*hash)(const struct td_profile *p, uint32_t entry))
{
    if (entries * 2 < *slot_count)
        return true;
    size_t count = *slot_count ? *slot_count * 2 : 256;
    uint32_t *bigger = new_slots(count);
    if (!bigger)
        return false;
    for (size_t i = 0; i < entries; i++) {
        size_t at = hash(p, (uint32_t)i) & (count - 1);
        while (bigger[at] != TD_PROFILE_NONE)
            at = (at + 1) & (count - 1);
        bigger[at] = (uint32_t)i;
    }
    free(*slots);
    *slots = bigger;
    *slot_count = count;
    return true;
}

static size_t hash_of_name(const struct td_profile *p, uint32_t entry)
{
    return hash_text(p->names[entry], strlen(p->names[entry]));
}

static size_t hash_of_node(const struct td_profile *p, uint32_t entry)
{
    return hash_node(p->nodes[entry].parent, p->nodes[entry].name);
}

/* --- Names and nodes ------------------------------------------------------------------------------------ */

/* Where a name is in the table, or the free slot where it belongs. */
static size_t name_slot(const struct td_profile *p, const char *text, size_t length)
{
    size_t mask = p->name_slot_count - 1, at = hash_text(text, length) & mask;
    for (; p->name_slots[at] != TD_PROFILE_NONE; at = (at + 1) & mask) {
        const char *known = p->names[p->name_slots[at]];
        if (strncmp(known, text, length) == 0 && known[length] == 0)
            break;
    }
    return at;
}

static size_t node_slot(const struct td_profile *p, uint32_t parent, uint32_t name)
{
    size_t mask = p->node_slot_count - 1, at = hash_node(parent, name) & mask;
    for (; p->node_slots[at] != TD_PROFILE_NONE; at = (at + 1) & mask) {
        const struct td_profile_node *known = &p->nodes[p->node_slots[at]];
        if (known->parent == parent && known->name == name && p->node_slots[at] != TD_PROFILE_ROOT)
            break;
    }
    return at;
}

uint32_t td_profile_find(const struct td_profile *p, uint32_t parent, const char *name)
{
    uint32_t id = p->name_slots[name_slot(p, name, strlen(name))];
    if (id == TD_PROFILE_NONE || !p->node_slot_count)
        return TD_PROFILE_NONE;
    return p->node_slots[node_slot(p, parent, id)];
}

tdbg_status td_profile_name(struct td_profile *p, const char *text, size_t length, uint32_t *out,
                            struct tdbg_error *error)
{
    const char *zero = memchr(text, 0, length);
    length = zero ? (size_t)(zero - text) : length;
    if (length > NAME_LENGTH) {
        length = NAME_LENGTH;
        while (length > 0 && ((uint8_t)text[length] & 0xc0) == 0x80)
            length--; /* not within a character */
    }
    if (!rehash(p, &p->name_slots, &p->name_slot_count, p->name_count, hash_of_name))
        return td_fail_nomem(error);
    size_t at = name_slot(p, text, length);
    if (p->name_slots[at] != TD_PROFILE_NONE) {
        *out = p->name_slots[at];
        return TDBG_OK;
    }
    if (p->name_count >= NAMES || p->arena.used + length > NAME_BYTES - 4096) {
        *out = 0; /* the first name there is */
        return TDBG_OK;
    }
    char *copy = td_arena_strndup(&p->arena, text, length);
    if (!copy || !td_grow((void **)&p->names, &p->name_room, p->name_count, sizeof *p->names))
        return td_fail_nomem(error);
    *out = (uint32_t)p->name_count;
    p->names[p->name_count++] = copy;
    p->name_slots[at] = *out;
    return TDBG_OK;
}

tdbg_status td_profile_child(struct td_profile *p, uint32_t parent, uint32_t name, uint32_t *out,
                             struct tdbg_error *error)
{
    if (!rehash(p, &p->node_slots, &p->node_slot_count, p->node_count, hash_of_node))
        return td_fail_nomem(error);
    size_t at = node_slot(p, parent, name);
    *out = p->node_slots[at];
    if (*out != TD_PROFILE_NONE)
        return TDBG_OK;
    if (p->node_count == TD_PROFILE_NODES)
        return TDBG_OK;
    if (!td_grow((void **)&p->nodes, &p->node_room, p->node_count, sizeof *p->nodes))
        return td_fail_nomem(error);
    struct td_profile_node *above = &p->nodes[parent];
    uint32_t made = (uint32_t)p->node_count++;
    p->nodes[made] = (struct td_profile_node){.name = name,
                                              .parent = parent,
                                              .series = TD_PROFILE_NONE,
                                              .depth = parent == TD_PROFILE_ROOT ? 0 : above->depth + 1,
                                              .device = above->device};
    if (above->last)
        p->nodes[above->last].next = made;
    else
        above->first = made;
    above->last = made;
    p->node_slots[at] = made;
    *out = made;
    return TDBG_OK;
}

tdbg_status td_profile_init(struct td_profile *p, struct tdbg_error *error)
{
    *p = (struct td_profile){.stride = 1, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    td_arena_init(&p->arena, NAME_BYTES);
    uint32_t name;
    tdbg_status status = td_profile_name(p, other_names, sizeof other_names - 1, &name, error);
    if (status == TDBG_OK && !td_grow((void **)&p->nodes, &p->node_room, 0, sizeof *p->nodes))
        status = td_fail_nomem(error);
    if (status != TDBG_OK) {
        td_profile_release(p);
        return status;
    }
    p->nodes[TD_PROFILE_ROOT] =
        (struct td_profile_node){.parent = TD_PROFILE_NONE, .series = TD_PROFILE_NONE};
    p->node_count = 1;
    return TDBG_OK;
}

void td_profile_release(struct td_profile *p)
{
    td_arena_release(&p->arena);
    td_intervals_release(&p->host);
    td_intervals_release(&p->device);
    free(p->nodes);
    free(p->names);
    free(p->name_slots);
    free(p->node_slots);
    free(p->steps);
    free(p->series);
    free(p->threads);
    *p = (struct td_profile){0};
}

/* --- Feeding -------------------------------------------------------------------------------------------- */

tdbg_status td_profile_set_steps(struct td_profile *p, int64_t count, struct tdbg_error *error)
{
    p->step_count = count;
    p->stride = count > 0 ? (count - 1) / TD_PROFILE_STEPS + 1 : 1;
    p->kept = (size_t)((count + p->stride - 1) / p->stride);
    if (p->kept && !(p->steps = calloc(p->kept, sizeof *p->steps)))
        return td_fail_nomem(error);
    return TDBG_OK;
}

void td_profile_step(struct td_profile *p, int64_t index, const struct td_profile_step *step)
{
    if (index >= 0 && index < p->step_count && index % p->stride == 0)
        p->steps[index / p->stride] = *step;
}

tdbg_status td_profile_add_thread(struct td_profile *p, const char *name, bool device,
                                  struct tdbg_error *error)
{
    if (p->thread_count == TD_PROFILE_THREADS)
        return td_fail(error, TDBG_LIMIT, "more than %d threads", TD_PROFILE_THREADS);
    uint32_t id;
    TD_TRY(td_profile_name(p, name, strlen(name), &id, error));
    if (!td_grow((void **)&p->threads, &p->thread_room, p->thread_count, sizeof *p->threads))
        return td_fail_nomem(error);
    p->threads[p->thread_count++] = (struct td_profile_thread){.name = p->names[id], .device = device};
    return TDBG_OK;
}

/* A row of the series for a node, while there is room for one. */
static float *series_row(struct td_profile *p, struct td_profile_node *node)
{
    if (node->series == TD_PROFILE_NONE) {
        if ((p->series_count + 1) * p->kept * sizeof *p->series > SERIES_BYTES)
            return NULL;
        if (p->series_count == p->series_room) {
            size_t room = p->series_room ? p->series_room * 2 : 16;
            float *bigger = realloc(p->series, room * p->kept * sizeof *p->series);
            if (!bigger)
                return NULL;
            p->series = bigger;
            p->series_room = room;
        }
        node->series = (uint32_t)p->series_count++;
        for (size_t i = 0; i < p->kept; i++)
            p->series[node->series * p->kept + i] = NAN;
    }
    return p->series + node->series * p->kept;
}

tdbg_status td_profile_add(struct td_profile *p, uint32_t index, uint32_t thread, bool outermost,
                           const struct td_profile_call *call, struct tdbg_error *error)
{
    struct td_profile_node *node = &p->nodes[index];
    int64_t time = subtract_ns(call->end_ns, call->begin_ns);
    time = time > 0 ? time : 0;
    node->calls++;
    node->total_ns = add_ns(node->total_ns, time);
    node->most_ns = time > node->most_ns ? time : node->most_ns;
    node->own_flops += call->flops;
    node->own_bytes += call->bytes;
    node->own_tokens += call->tokens;
    p->calls++;
    p->first_ns = call->begin_ns < p->first_ns ? call->begin_ns : p->first_ns;
    p->last_ns = call->end_ns > p->last_ns ? call->end_ns : p->last_ns;
    if (call->step >= 0 && call->step < p->step_count && call->step % p->stride == 0) {
        float *row = series_row(p, node);
        if (row) {
            float *value = &row[call->step / p->stride];
            *value = isnan(*value) ? (float)time : *value + (float)time;
        }
    }
    bool device = node->device;
    if (thread < p->thread_count) {
        p->threads[thread].calls++;
        if (outermost)
            p->threads[thread].busy_ns = add_ns(p->threads[thread].busy_ns, time);
    }
    if (outermost && !td_intervals_add(device ? &p->device : &p->host, call->begin_ns, call->end_ns))
        return td_fail_nomem(error);
    return TDBG_OK;
}

void td_profile_hold(struct td_profile *p, uint32_t node, int64_t bytes)
{
    while (node != TD_PROFILE_NONE) {
        struct td_profile_node *n = &p->nodes[node];
        n->held_bytes = add_ns(n->held_bytes, bytes);
        n->peak_bytes = n->held_bytes > n->peak_bytes ? n->held_bytes : n->peak_bytes;
        node = n->parent;
    }
    if (p->nodes[TD_PROFILE_ROOT].peak_bytes > p->peak_bytes)
        p->peak_bytes = p->nodes[TD_PROFILE_ROOT].peak_bytes;
}

void td_profile_allocated(struct td_profile *p, uint32_t node, int64_t bytes)
{
    for (; node != TD_PROFILE_NONE; node = p->nodes[node].parent)
        p->nodes[node].allocated_bytes = add_ns(p->nodes[node].allocated_bytes, bytes);
}

void td_profile_gauge(struct td_profile *p, const char *name, double value)
{
    size_t i = 0;
    while (i < p->gauge_count && strcmp(p->gauges[i].name, name) != 0)
        i++;
    if (i == p->gauge_count) {
        char *copy = i < TD_PROFILE_GAUGES ? td_arena_strdup(&p->arena, name) : NULL;
        if (!copy)
            return;
        p->gauges[p->gauge_count++] = (struct td_profile_gauge){.name = copy, .most = value};
    }
    struct td_profile_gauge *gauge = &p->gauges[i];
    gauge->count++;
    gauge->sum += value;
    gauge->most = value > gauge->most ? value : gauge->most;
}

/* --- What follows --------------------------------------------------------------------------------------- */

/* A parent that had not ended, or ended less often than its children, took at least their time. */
static void add_up(struct td_profile *p)
{
    for (size_t i = 0; i < p->node_count; i++) {
        struct td_profile_node *n = &p->nodes[i];
        n->self_ns = 0; /* until then: the time of the children */
        n->flops = n->own_flops;
        n->bytes = n->own_bytes;
        n->tokens = n->own_tokens;
    }
    for (size_t i = p->node_count; i-- > 1;) {
        struct td_profile_node *n = &p->nodes[i], *above = &p->nodes[n->parent];
        n->total_ns = n->total_ns > n->self_ns ? n->total_ns : n->self_ns;
        n->self_ns = n->total_ns - n->self_ns;
        above->self_ns = add_ns(above->self_ns, n->total_ns);
        above->flops += n->flops;
        above->bytes += n->bytes;
        if (above->own_tokens <= 0 && n->tokens > above->tokens)
            above->tokens = n->tokens;
        int64_t *sum = n->device ? &p->device_ns : &p->host_ns;
        *sum = add_ns(*sum, n->self_ns);
    }
    struct td_profile_node *root = &p->nodes[TD_PROFILE_ROOT];
    root->total_ns = root->self_ns;
    root->self_ns = 0;
}

static struct td_spread spread_of(double *values, size_t count)
{
    if (!count)
        return (struct td_spread){0};
    td_order_sort(values, count);
    return (struct td_spread){.count = count,
                              .p50 = td_order_quantile(values, count, 0.5),
                              .p90 = td_order_quantile(values, count, 0.9),
                              .p99 = td_order_quantile(values, count, 0.99),
                              .least = values[0],
                              .most = values[count - 1]};
}

tdbg_status td_profile_finish(struct td_profile *p, struct tdbg_error *error)
{
    if (p->finished)
        return TDBG_OK;
    p->finished = true;
    add_up(p);
    p->wall_ns = td_intervals_covered(&p->host);
    p->device_wall_ns = td_intervals_covered(&p->device);
    if (!p->kept)
        return TDBG_OK;
    double *work = malloc(p->kept * sizeof *work);
    if (!work)
        return td_fail_nomem(error);
    for (size_t i = 0; i < p->kept; i++)
        work[i] = (double)subtract_ns(p->steps[i].end_ns, p->steps[i].begin_ns);
    p->step_spread = spread_of(work, p->kept);
    free(work);
    return TDBG_OK;
}

/* --- Asking --------------------------------------------------------------------------------------------- */

const char *td_profile_path(const struct td_profile *p, uint32_t node, char *out, size_t size)
{
    uint32_t way[256];
    size_t depth = 0, at = 0;
    for (; node != TD_PROFILE_ROOT && depth < 256; node = p->nodes[node].parent)
        way[depth++] = node;
    out[0] = 0;
    while (depth-- > 0 && at + 1 < size) {
        int n = snprintf(out + at, size - at, "%s%s", at ? "/" : "", td_profile_name_of(p, way[depth]));
        at += n > 0 ? (size_t)n : 0;
    }
    if (at + 1 >= size)
        td_utf8_clean(out); /* it may be cut within a character */
    return out;
}

double td_profile_share(const struct td_profile *p, uint32_t node)
{
    const struct td_profile_node *n = &p->nodes[node];
    int64_t whole = n->device ? p->device_ns : p->host_ns;
    return whole > 0 ? (double)n->total_ns / (double)whole : 0;
}

const float *td_profile_series(const struct td_profile *p, uint32_t node)
{
    uint32_t row = p->nodes[node].series;
    return row == TD_PROFILE_NONE ? NULL : p->series + row * p->kept;
}

struct td_spread td_profile_spread(const struct td_profile *p, uint32_t node, double *work)
{
    const float *series = td_profile_series(p, node);
    size_t count = 0;
    for (size_t i = 0; series && i < p->kept; i++)
        if (!isnan(series[i]))
            work[count++] = (double)series[i];
    return spread_of(work, count);
}
