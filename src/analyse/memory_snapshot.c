/* memory_snapshot.c: snapshots of PyTorch's CUDA allocator, as torch.cuda.memory._dump_snapshot pickles them.
 *
 *     {"segments": [{"device", "address", "total_size", "blocks": [{"address", "size", "state",
 * "frames"}…]}…], "device_traces": [[{"action", "addr", "size", "frames", "time_us"}…]…]}        one list for
 * each device
 *
 * The segments are the state when the snapshot was taken, the trace is what led to it, or its end: the
 * history is a ring. Older versions wrote only the list of segments, blocks without addresses (they follow
 * each other), and the frames in "history". The trace is replayed; what was live before it began is known
 * from what it frees without allocating, and from the blocks that are live at the end and never allocated in
 * it.
 *
 * Everything in the file is a claim: a value of another kind than expected counts as absent.
 */
#include "analyse/memory_core.h"
#include "analyse/memory_frames.h"
#include "analyse/memory_story.h"

#include "base/checked.h"
#include "base/limits.h"
#include "io/source.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_DEVICES = 1024 };

/* Segments of the caching allocator are multiples of it. */
#define DEVICE_GRANULE (UINT64_C(2) << 20)

struct reading {
    const struct td_pickle_value *segments, *trace; /* lists; NULL where there is none */
    uint64_t device;
    struct td_memory *memory;
    struct td_memory_story *story;
    struct td_frames frames;
    struct td_block_map seen; /* addresses in the trace; bytes 2: allocated when last seen, 1: not */
    uint64_t reserved;
    int64_t time_ns;
    uint64_t snapshots;
    struct tdbg_error *error;
};

/* --- Values ----------------------------------------------------------------------------------------------
 */

static bool is_list(const struct td_pickle_value *value)
{
    return value && (value->kind == TD_PICKLE_LIST || value->kind == TD_PICKLE_TUPLE);
}

static const struct td_pickle_value *list_in(const struct td_pickle_value *dict, const char *key)
{
    const struct td_pickle_value *value = dict->kind == TD_PICKLE_DICT ? td_pickle_get(dict, key) : NULL;
    return is_list(value) ? value : NULL;
}

/* A whole number that is not negative; else, and where there is none, `otherwise`. */
static uint64_t number_in(const struct td_pickle_value *dict, const char *key, uint64_t otherwise)
{
    const struct td_pickle_value *value = td_pickle_get(dict, key);
    if (value && value->kind == TD_PICKLE_INT && value->integer >= 0)
        return (uint64_t)value->integer;
    if (value && value->kind == TD_PICKLE_BIGINT && !value->decimal && value->count <= 9) {
        uint64_t sum = 0; /* an address in the upper half: eight bytes and one for the sign */
        for (size_t i = value->count < 8 ? value->count : 8; i-- > 0;)
            sum = sum << 8 | (unsigned char)value->text[i];
        return sum;
    }
    return otherwise;
}

static bool says(const struct td_pickle_value *dict, const char *key, const char *text)
{
    const struct td_pickle_value *value = td_pickle_get(dict, key);
    return value && td_pickle_is(value, TD_PICKLE_STR, text);
}

/* The frames of a block: its own, or those of the last allocation in its history. */
static const struct td_pickle_value *frames_of(const struct td_pickle_value *block)
{
    const struct td_pickle_value *frames = list_in(block, "frames"), *history = list_in(block, "history");
    if (!frames && history && history->count)
        frames = list_in(history->items[history->count - 1], "frames");
    return frames;
}

/* --- Events ----------------------------------------------------------------------------------------------
 */

static tdbg_status hold(struct reading *r, uint64_t address, uint64_t bytes,
                        const struct td_pickle_value *frames)
{
    struct td_memory_event event = {.time_ns = r->time_ns, .address = address, .bytes = bytes};
    if (bytes == 0)
        return TDBG_OK;
    TD_TRY(td_frames_owner(&r->frames, frames, &event.owner, r->error));
    return td_memory_add(r->memory, &event, r->error);
}

static tdbg_status give_back(struct reading *r, uint64_t address)
{
    struct td_memory_event event = {.time_ns = r->time_ns, .address = address};
    return td_memory_add(r->memory, &event, r->error);
}

static void reserve(struct reading *r, uint64_t bytes, bool more)
{
    uint64_t sum;
    if (more)
        r->reserved = td_add_u64(r->reserved, bytes, &sum) ? sum : UINT64_MAX;
    else
        r->reserved -= bytes < r->reserved ? bytes : r->reserved;
    td_memory_reserve(r->memory, r->time_ns, r->reserved);
}

static bool is_release(const struct td_pickle_value *event)
{
    return says(event, "action", "free_completed") || says(event, "action", "free");
}

static tdbg_status replay(struct reading *r, const struct td_pickle_value *event)
{
    uint64_t address = number_in(event, "addr", 0), bytes = number_in(event, "size", 0);
    char name[64];
    if (says(event, "action", "alloc"))
        return hold(r, address, bytes, frames_of(event));
    if (is_release(event))
        return give_back(r, address);
    if (says(event, "action", "segment_alloc") || says(event, "action", "segment_map"))
        reserve(r, bytes, true);
    else if (says(event, "action", "segment_free") || says(event, "action", "segment_unmap"))
        reserve(r, bytes, false);
    else if (says(event, "action", "oom"))
        r->story->note = td_arena_printf(
            &r->story->arena, "out of memory: %llu bytes were asked for and %llu were free on the device",
            (unsigned long long)bytes, (unsigned long long)number_in(event, "device_free", 0));
    else if (says(event, "action", "snapshot") && r->snapshots < MAX_MARKS) {
        snprintf(name, sizeof name, "snapshot %llu", (unsigned long long)++r->snapshots);
        return td_memory_snapshot(r->memory, name, r->time_ns, r->error);
    }
    return TDBG_OK;
}

/* --- What was there before -------------------------------------------------------------------------------
 */

static tdbg_status note_seen(struct reading *r, uint64_t address, bool allocated, bool *first)
{
    struct td_block *seen = td_block_find(&r->seen, address);
    *first = seen == NULL;
    if (!seen)
        seen = td_block_insert(&r->seen, address);
    if (!seen)
        return td_fail_nomem(r->error);
    seen->bytes = allocated ? 2 : 1;
    return TDBG_OK;
}

/* What the trace frees without having allocated it; and how much more or less is reserved at its end. */
static tdbg_status find_earlier(struct reading *r, uint64_t *taken, uint64_t *returned)
{
    for (size_t i = 0; r->trace && i < r->trace->count; i++) {
        const struct td_pickle_value *event = r->trace->items[i];
        if (event->kind != TD_PICKLE_DICT)
            continue;
        uint64_t address = number_in(event, "addr", 0), bytes = number_in(event, "size", 0);
        bool allocates = says(event, "action", "alloc"), first = false;
        if (allocates || is_release(event))
            TD_TRY(note_seen(r, address, allocates, &first));
        if (first && !allocates)
            TD_TRY(hold(r, address, bytes, NULL));
        if (says(event, "action", "segment_alloc") || says(event, "action", "segment_map"))
            *taken += bytes; /* wraps around for liars, and is a figure only */
        if (says(event, "action", "segment_free") || says(event, "action", "segment_unmap"))
            *returned += bytes;
    }
    return TDBG_OK;
}

static tdbg_status add_blocks(struct reading *r, const struct td_pickle_value *segment)
{
    const struct td_pickle_value *blocks = list_in(segment, "blocks");
    uint64_t next = number_in(segment, "address", 0);
    for (size_t i = 0; blocks && i < blocks->count; i++) {
        const struct td_pickle_value *block = blocks->items[i];
        if (block->kind != TD_PICKLE_DICT)
            continue;
        uint64_t address = number_in(block, "address", next), size = number_in(block, "size", 0);
        const struct td_block *seen = td_block_find(&r->seen, address);
        bool active = says(block, "state", "active_allocated") ||
                      says(block, "state", "active_awaiting_free") ||
                      says(block, "state", "active_pending_free");
        if (active && (!seen || seen->bytes != 2))
            TD_TRY(hold(r, address, size, frames_of(block)));
        if (!td_add_u64(address, size, &next))
            return td_fail(r->error, TDBG_CORRUPT, "a block of %llu bytes at %#llx", (unsigned long long)size,
                           (unsigned long long)address);
    }
    return TDBG_OK;
}

/* Time of the first event, so that what was there before is not later than it. */
static int64_t time_of(const struct reading *r, size_t index)
{
    const struct td_pickle_value *event = r->trace && index < r->trace->count ? r->trace->items[index] : NULL;
    uint64_t otherwise = (uint64_t)index;
    uint64_t us = event && event->kind == TD_PICKLE_DICT ? number_in(event, "time_us", otherwise) : otherwise;
    return (int64_t)(us % (UINT64_C(1) << 52)) * 1000;
}

static tdbg_status set_stage(struct reading *r)
{
    uint64_t taken = 0, returned = 0, at_end = 0;
    r->time_ns = time_of(r, 0);
    TD_TRY(find_earlier(r, &taken, &returned));
    for (size_t i = 0; r->segments && i < r->segments->count; i++) {
        const struct td_pickle_value *segment = r->segments->items[i];
        if (segment->kind != TD_PICKLE_DICT || number_in(segment, "device", 0) != r->device)
            continue;
        at_end += number_in(segment, "total_size", 0);
        TD_TRY(add_blocks(r, segment));
    }
    uint64_t before = at_end + returned;
    r->reserved = before > taken ? before - taken : 0;
    td_memory_reserve(r->memory, r->time_ns, r->reserved);
    return TDBG_OK;
}

/* --- A device --------------------------------------------------------------------------------------------
 */

static tdbg_status read_device(struct reading *r, struct td_job *job)
{
    TD_TRY(set_stage(r));
    for (size_t i = 0; r->trace && i < r->trace->count; i++) {
        if (i % 4096 == 0 && td_job_cancelled(job))
            return td_fail(r->error, TDBG_CANCELLED, "cancelled");
        if (r->trace->items[i]->kind != TD_PICKLE_DICT)
            continue;
        r->time_ns = time_of(r, i);
        TD_TRY(replay(r, r->trace->items[i]));
    }
    return TDBG_OK;
}

static tdbg_status tell_device(struct td_memory_book *book, struct reading *r,
                               const struct td_memory_wish *wish, struct td_job *job)
{
    struct td_memory_story story;
    td_memory_story_init(&story);
    r->story = &story;
    story.judged = r->trace && r->trace->count;
    story.note = story.judged ? "the state when the snapshot was taken: what grows may still be given back"
                              : "without a history: only the state when the snapshot was taken is known";
    story.title = td_arena_printf(&story.arena, "device %llu", (unsigned long long)r->device);
    tdbg_status status = td_memory_open(&r->memory, DEVICE_GRANULE, r->error);
    if (status == TDBG_OK && wish->from)
        td_memory_want(r->memory, wish->from, wish->to);
    if (status == TDBG_OK)
        status = td_frames_init(&r->frames, &story.arena, r->error);
    if (status == TDBG_OK)
        status = read_device(r, job);
    if (status == TDBG_OK && !(story.title && story.note))
        status = td_fail_nomem(r->error);
    if (status == TDBG_OK)
        status = td_memory_story_finish(&story, r->memory, r->frames.labels, 0, r->error);
    if (status == TDBG_OK && story.report.allocations)
        status = td_memory_book_add(book, &story, SIZE_MAX, r->error);
    td_memory_story_release(&story);
    td_frames_release(&r->frames);
    td_memory_close(&r->memory);
    free(r->seen.slots);
    r->seen = (struct td_block_map){0};
    return status;
}

/* --- The file --------------------------------------------------------------------------------------------
 */

/* Devices that the segments name, or one more than the traces have. */
static uint64_t count_devices(const struct td_pickle_value *segments, const struct td_pickle_value *traces)
{
    uint64_t count = traces ? traces->count : 0;
    for (size_t i = 0; segments && i < segments->count; i++) {
        if (segments->items[i]->kind != TD_PICKLE_DICT)
            continue;
        uint64_t device = number_in(segments->items[i], "device", 0);
        if (device >= count && device < MOST_DEVICES)
            count = device + 1;
    }
    return count < MOST_DEVICES ? count : MOST_DEVICES;
}

static bool is_segment_list(const struct td_pickle_value *value)
{
    return is_list(value) && value->count && value->items[0]->kind == TD_PICKLE_DICT &&
           list_in(value->items[0], "blocks");
}

tdbg_status td_memory_read_graph(struct td_memory_book *book, const struct td_pickle_value *root,
                                 const struct td_memory_wish *wish, struct td_job *job,
                                 struct tdbg_error *error)
{
    const struct td_pickle_value *segments = is_segment_list(root) ? root : list_in(root, "segments");
    const struct td_pickle_value *traces = list_in(root, "device_traces");
    if (!segments && !traces)
        return td_fail(
            error, TDBG_UNSUPPORTED,
            "a pickle, but no snapshot of torch.cuda.memory: neither segments nor device_traces in it");
    uint64_t devices = count_devices(segments, traces);
    for (uint64_t i = 0; i < devices; i++) {
        const struct td_pickle_value *trace = traces && i < traces->count ? traces->items[i] : NULL;
        struct reading r = {
            .segments = segments, .trace = is_list(trace) ? trace : NULL, .device = i, .error = error};
        TD_TRY(tell_device(book, &r, wish, job));
    }
    td_memory_book_sort(book);
    return book->count ? TDBG_OK : td_fail(error, TDBG_NOTFOUND, "the snapshot holds no memory");
}

static tdbg_status read_source(struct td_memory_book *book, const struct td_source *source,
                               const struct td_memory_wish *wish, struct td_job *job,
                               struct tdbg_error *error)
{
    struct td_arena arena;
    struct td_pickle pickle;
    uint64_t most;
    if (!td_mul_u64(source->size, TD_MAX_SNAPSHOT_RATIO, &most) || most > TD_MAX_SNAPSHOT_GRAPH)
        most = TD_MAX_SNAPSHOT_GRAPH;
    td_arena_init(&arena, (size_t)most + (1 << 20));
    tdbg_status status = td_pickle_parse(source->data, source->size, NULL, &arena, &pickle, error);
    if (status == TDBG_OK)
        status = td_memory_read_graph(book, pickle.root, wish, job, error);
    td_arena_release(&arena);
    return status;
}

tdbg_status td_memory_read_snapshot(struct td_memory_book *book, const char *path,
                                    const struct td_memory_wish *wish, struct td_job *job,
                                    struct tdbg_error *error)
{
    struct td_bundle *file = NULL, *archive = NULL;
    const struct td_source *source = NULL;
    TD_TRY(td_bundle_open(&file, path, job, error));
    tdbg_status status = td_bundle_source(file, 0, &source, error);
    if (status == TDBG_OK && td_bundle_probe(source)) { /* one that was compressed */
        status = td_bundle_open_archive(&archive, source, job, error);
        if (status == TDBG_OK && td_bundle_count(archive) != 1)
            status = td_fail(error, TDBG_UNSUPPORTED, "an archive of %zu files, and not one snapshot",
                             td_bundle_count(archive));
        if (status == TDBG_OK)
            status = td_bundle_source(archive, 0, &source, error);
    }
    if (status == TDBG_OK)
        status = read_source(book, source, wish, job, error);
    td_bundle_close(&archive);
    td_bundle_close(&file);
    return status;
}
