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
 * A trace may have many millions of events. Each is taken out of its list while the pickle is read and kept
 * as 32 bytes (memory_trace.h), so that a snapshot takes less memory than its file is long.
 *
 * Everything in the file is a claim: a value of another kind than expected counts as absent, and what a short
 * file repeats without end by referring to itself is counted.
 */
#include "analyse/memory_core.h"
#include "analyse/memory_story.h"
#include "analyse/memory_trace.h"

#include "base/checked.h"
#include "base/limits.h"
#include "io/source.h"

#include <stdio.h>
#include <stdlib.h>

/* Segments of the caching allocator are multiples of it. */
#define DEVICE_GRANULE (UINT64_C(2) << 20)

struct reading {
    const struct td_pickle_value *segments; /* a list; NULL where there is none */
    const struct td_trace *trace;           /* NULL where there is none */
    struct td_traces *traces;               /* all, with the frames */
    uint64_t device;
    struct td_memory *memory;
    struct td_memory_story *story;
    struct td_block_map seen; /* addresses in the trace; bytes 2: allocated when last seen, 1: not */
    uint64_t reserved;
    int64_t time_ns;
    uint64_t snapshots;
    uint64_t *budget; /* blocks that may still be visited: no file has more of them than bytes */
    struct tdbg_error *error;
};

/* --- Events --------------------------------------------------------------------------------------------- */

static tdbg_status hold(struct reading *r, uint64_t address, uint64_t bytes, uint32_t owner)
{
    struct td_memory_event event = {
        .time_ns = r->time_ns, .address = address, .bytes = bytes, .owner = owner};
    return bytes ? td_memory_add(r->memory, &event, r->error) : TDBG_OK;
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

static tdbg_status replay(struct reading *r, const struct td_trace_event *event)
{
    char name[64];
    switch ((enum td_trace_action)event->action) {
    case TD_TRACE_ALLOC:
        return hold(r, event->address, event->bytes, event->owner);
    case TD_TRACE_FREE:
        return give_back(r, event->address);
    case TD_TRACE_GROW:
        reserve(r, event->bytes, true);
        break;
    case TD_TRACE_SHRINK:
        reserve(r, event->bytes, false);
        break;
    case TD_TRACE_OOM:
        r->story->note = td_arena_printf(
            &r->story->arena, "out of memory: %llu bytes were asked for and %llu were free on the device",
            (unsigned long long)event->bytes, (unsigned long long)event->address);
        break;
    case TD_TRACE_SNAPSHOT:
        if (r->snapshots == MAX_MARKS)
            break;
        snprintf(name, sizeof name, "snapshot %llu", (unsigned long long)++r->snapshots);
        return td_memory_snapshot(r->memory, name, r->time_ns, r->error);
    case TD_TRACE_OTHER:
        break;
    }
    return TDBG_OK;
}

/* --- What was there before ------------------------------------------------------------------------------ */

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

/* What the trace frees without having allocated it. */
static tdbg_status find_earlier(struct reading *r)
{
    for (size_t i = 0; r->trace && i < r->trace->count; i++) {
        const struct td_trace_event *event = &r->trace->events[i];
        bool allocates = event->action == TD_TRACE_ALLOC, first = false;
        if (allocates || event->action == TD_TRACE_FREE)
            TD_TRY(note_seen(r, event->address, allocates, &first));
        if (first && !allocates)
            TD_TRY(hold(r, event->address, event->bytes, 0));
    }
    return TDBG_OK;
}

static bool is_here(const struct reading *r, const struct td_pickle_value *segment)
{
    return td_trace_is_record(segment) && td_trace_number(segment, "device", 0) == r->device;
}

/* When the trace begins: what is reserved at its end, without what it takes and with what it returns. Sums
 * wrap around for liars: they are only a figure. */
static uint64_t reserved_before(const struct reading *r)
{
    uint64_t taken = 0, had = 0;
    for (size_t i = 0; r->segments && i < r->segments->count; i++)
        if (is_here(r, r->segments->items[i]))
            had += td_trace_number(r->segments->items[i], "total_size", 0);
    for (size_t i = 0; r->trace && i < r->trace->count; i++) {
        const struct td_trace_event *event = &r->trace->events[i];
        taken += event->action == TD_TRACE_GROW ? event->bytes : 0;
        had += event->action == TD_TRACE_SHRINK ? event->bytes : 0;
    }
    return had > taken ? had - taken : 0;
}

static bool is_active(const struct td_pickle_value *block)
{
    return td_trace_says(block, "state", "active_allocated") ||
           td_trace_says(block, "state", "active_awaiting_free") ||
           td_trace_says(block, "state", "active_pending_free");
}

static tdbg_status add_blocks(struct reading *r, const struct td_pickle_value *segment)
{
    const struct td_pickle_value *blocks = td_trace_list(segment, "blocks");
    uint64_t next = td_trace_number(segment, "address", 0);
    for (size_t i = 0; blocks && i < blocks->count; i++) {
        const struct td_pickle_value *block = blocks->items[i];
        if ((*r->budget)-- == 0)
            return td_fail(r->error, TDBG_CORRUPT, "more blocks than a file of this size can hold");
        if (!td_trace_is_record(block))
            continue;
        uint64_t address = td_trace_number(block, "address", next), size = td_trace_number(block, "size", 0);
        const struct td_block *seen = td_block_find(&r->seen, address);
        uint32_t owner = 0;
        if (is_active(block) && (!seen || seen->bytes != 2)) {
            TD_TRY(td_frames_owner(&r->traces->frames, td_trace_frames(block), &owner, r->error));
            TD_TRY(hold(r, address, size, owner));
        }
        if (!td_add_u64(address, size, &next))
            return td_fail(r->error, TDBG_CORRUPT, "a block of %llu bytes at %#llx", (unsigned long long)size,
                           (unsigned long long)address);
    }
    return TDBG_OK;
}

/* Of the i-th event, by the clock of the trace or, without one, a microsecond for each. */
static int64_t time_of(const struct reading *r, size_t index)
{
    uint64_t us = r->trace && index < r->trace->count ? r->trace->events[index].time_us : TD_TRACE_NO_TIME;
    return (int64_t)((us == TD_TRACE_NO_TIME ? (uint64_t)index : us) % (UINT64_C(1) << 52)) * 1000;
}

/* What is there when the trace begins; segments first, so that no moment has blocks without them. */
static tdbg_status set_stage(struct reading *r)
{
    r->time_ns = time_of(r, 0);
    r->reserved = reserved_before(r);
    td_memory_reserve(r->memory, r->time_ns, r->reserved);
    TD_TRY(find_earlier(r));
    for (size_t i = 0; r->segments && i < r->segments->count; i++)
        if (is_here(r, r->segments->items[i]))
            TD_TRY(add_blocks(r, r->segments->items[i]));
    return TDBG_OK;
}

/* --- A device ------------------------------------------------------------------------------------------- */

static tdbg_status read_device(struct reading *r, struct td_job *job)
{
    TD_TRY(set_stage(r));
    for (size_t i = 0; r->trace && i < r->trace->count; i++) {
        if (i % 4096 == 0 && td_job_cancelled(job))
            return td_fail(r->error, TDBG_CANCELLED, "cancelled");
        r->time_ns = time_of(r, i);
        TD_TRY(replay(r, &r->trace->events[i]));
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
        status = read_device(r, job);
    if (status == TDBG_OK && !(story.title && story.note))
        status = td_fail_nomem(r->error);
    bool used =
        status == TDBG_OK && td_memory_owners(r->memory); /* a machine may have GPUs that do nothing */
    if (used)
        status = td_memory_story_finish(&story, r->memory, r->traces->frames.labels, 0, r->error);
    if (used && status == TDBG_OK)
        status = td_memory_book_add(book, &story, SIZE_MAX, r->error);
    td_memory_story_release(&story);
    td_memory_close(&r->memory);
    free(r->seen.slots);
    r->seen = (struct td_block_map){0};
    return status;
}

/* --- The file ------------------------------------------------------------------------------------------- */

/* Devices that the segments name, or that have a trace. */
static uint64_t count_devices(const struct td_pickle_value *segments, const struct td_pickle_value *lists)
{
    uint64_t count = lists ? lists->count : 0;
    for (size_t i = 0; segments && i < segments->count; i++) {
        if (!td_trace_is_record(segments->items[i]))
            continue;
        uint64_t device = td_trace_number(segments->items[i], "device", 0);
        if (device >= count && device < TD_TRACE_DEVICES)
            count = device + 1;
    }
    return count < TD_TRACE_DEVICES ? count : TD_TRACE_DEVICES;
}

static bool is_segment_list(const struct td_pickle_value *value)
{
    return td_trace_is_list(value) && value->count && td_trace_is_record(value->items[0]) &&
           td_trace_list(value->items[0], "blocks");
}

static tdbg_status tell(struct td_memory_book *book, const struct td_pickle_value *root,
                        struct td_traces *traces, uint64_t budget, const struct td_memory_wish *wish,
                        struct td_job *job, struct tdbg_error *error)
{
    const struct td_pickle_value *segments = is_segment_list(root) ? root : td_trace_list(root, "segments");
    const struct td_pickle_value *lists = td_trace_list(root, "device_traces");
    if (!segments && !lists)
        return td_fail(
            error, TDBG_UNSUPPORTED,
            "a pickle, but no snapshot of torch.cuda.memory: neither segments nor device_traces in it");
    uint64_t devices = count_devices(segments, lists);
    for (uint64_t i = 0; i < devices; i++) {
        struct reading r = {
            .segments = segments, .traces = traces, .device = i, .budget = &budget, .error = error};
        if (lists && i < lists->count)
            r.trace = td_traces_of(traces, lists->items[i]);
        TD_TRY(tell_device(book, &r, wish, job));
    }
    td_memory_book_sort(book);
    return book->count ? TDBG_OK : td_fail(error, TDBG_NOTFOUND, "the snapshot holds no memory");
}

tdbg_status td_memory_read_pickle(struct td_memory_book *book, const void *data, size_t size,
                                  const struct td_memory_wish *wish, struct td_job *job,
                                  struct tdbg_error *error)
{
    struct td_arena arena;
    struct td_traces traces;
    struct td_pickle pickle;
    uint64_t most;
    if (!td_mul_u64(size, TD_MAX_SNAPSHOT_RATIO, &most) || most > TD_MAX_SNAPSHOT_GRAPH)
        most = TD_MAX_SNAPSHOT_GRAPH;
    td_arena_init(&arena, (size_t)most + (1 << 20));
    if (!book->texts.limit)
        td_arena_init(&book->texts, TD_MAX_METADATA);
    tdbg_status status = td_traces_init(&traces, &book->texts, error);
    if (status == TDBG_OK) {
        struct td_pickle_taker taker = {.context = &traces, .take = td_traces_take};
        struct td_pickle_limits limits = {.taker = &taker};
        status = td_pickle_parse(data, size, &limits, &arena, &pickle, error);
        if (traces.status != TDBG_OK)
            status = traces.status;
    }
    if (status == TDBG_OK)
        status = tell(book, pickle.root, &traces, size, wish, job, error);
    td_traces_release(&traces);
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
        status = td_memory_read_pickle(book, source->data, source->size, wish, job, error);
    td_bundle_close(&archive);
    td_bundle_close(&file);
    return status;
}
