/* memory_run.c: the memory of a recorded run, from what its program told by tdbg_alloc and tdbg_free.
 *
 * Each thread of the program writes its own records, so those of one step are not in the order of time: they
 * are gathered and sorted, a step at a time, or half of what has gathered when that becomes too much. An
 * owner is a scope, named by the way to it.
 */
#include "analyse/memory_story.h"

#include "base/limits.h"
#include "store/run_folders.h"
#include "store/run_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_WAITING = 1 << 22 };

#define RUN_GRANULE (UINT64_C(64) << 10)

struct pending_snapshot {
    const char *name;
    int64_t time_ns;
};

struct run_reading {
    struct td_memory *memory;
    struct td_memory_story *story;
    struct td_run_block *waiting; /* of the step */
    size_t count, capacity;
    int64_t step;
    const char **names; /* by scope; NULL: never told */
    size_t name_count;
    struct pending_snapshot *snapshots;
    size_t snapshot_count, snapshots_taken;
    tdbg_status status;
    struct tdbg_error *error;
};

/* --- Scopes and snapshots ------------------------------------------------------------------------------- */

static bool visit_scope(void *context, const struct td_run_scope *row)
{
    struct run_reading *r = context;
    if (row->id >= TD_MAX_MEMORY_OWNERS) {
        r->status = td_fail(r->error, TDBG_LIMIT, "more than %d scopes", TD_MAX_MEMORY_OWNERS);
        return false;
    }
    if (row->id >= r->name_count) {
        size_t count = (size_t)row->id + 1 + r->name_count;
        const char **larger = realloc(r->names, count * sizeof *larger);
        if (!larger) {
            r->status = td_fail_nomem(r->error);
            return false;
        }
        memset(larger + r->name_count, 0, (count - r->name_count) * sizeof *larger);
        r->names = larger;
        r->name_count = count;
    }
    const char *parent = row->parent && row->parent < r->name_count ? r->names[row->parent] : NULL;
    const char *name =
        td_arena_printf(&r->story->arena, "%s%s%s", parent ? parent : "", parent ? "/" : "", row->name);
    r->names[row->id] = name;
    if (!name)
        r->status = td_fail_nomem(r->error);
    return name != NULL;
}

static bool visit_snapshot(void *context, const struct td_run_snapshot *row)
{
    struct run_reading *r = context;
    struct pending_snapshot *larger = realloc(r->snapshots, (r->snapshot_count + 1) * sizeof *larger);
    const char *name = td_arena_strdup(&r->story->arena, row->name);
    if (larger)
        r->snapshots = larger;
    if (!larger || !name) {
        r->status = td_fail_nomem(r->error);
        return false;
    }
    r->snapshots[r->snapshot_count++] = (struct pending_snapshot){name, row->time_ns};
    return true;
}

static tdbg_status take_snapshots(struct run_reading *r, int64_t until)
{
    while (r->snapshots_taken < r->snapshot_count && r->snapshots[r->snapshots_taken].time_ns <= until) {
        const struct pending_snapshot *s = &r->snapshots[r->snapshots_taken++];
        TD_TRY(td_memory_snapshot(r->memory, s->name, s->time_ns, r->error));
    }
    return TDBG_OK;
}

/* --- Blocks --------------------------------------------------------------------------------------------- */

struct timed {
    int64_t time_ns;
    size_t index; /* keeps what happened at the same time in the order it was told */
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static tdbg_status feed(struct run_reading *r, const struct td_run_block *block)
{
    struct td_memory_event event = {
        .time_ns = block->time_ns, .address = block->address, .bytes = block->bytes, .owner = block->scope};
    TD_TRY(take_snapshots(r, block->time_ns));
    return td_memory_add(r->memory, &event, r->error);
}

/* Passes the first `count` of those waiting on, in the order of time. */
static tdbg_status flush(struct run_reading *r, size_t count)
{
    struct timed *order = malloc((r->count + 1) * sizeof *order);
    struct td_run_block *rest = malloc((r->count - count + 1) * sizeof *rest);
    tdbg_status status = order && rest ? TDBG_OK : td_fail_nomem(r->error);
    if (status == TDBG_OK) {
        for (size_t i = 0; i < r->count; i++)
            order[i] = (struct timed){r->waiting[i].time_ns, i};
        qsort(order, r->count, sizeof *order, by_time);
        for (size_t i = 0; i < count && status == TDBG_OK; i++)
            status = feed(r, &r->waiting[order[i].index]);
        for (size_t i = count; i < r->count; i++)
            rest[i - count] = r->waiting[order[i].index];
        r->count -= count;
        memcpy(r->waiting, rest, r->count * sizeof *rest);
    }
    free(rest);
    free(order);
    return status;
}

static bool visit_blocks(void *context, int64_t id, int64_t step, const struct td_run_block *blocks,
                         size_t count)
{
    struct run_reading *r = context;
    (void)id;
    if (step != r->step || r->count > MOST_WAITING)
        r->status = flush(r, step != r->step ? r->count : r->count / 2);
    r->step = step;
    if (r->status == TDBG_OK && r->count + count > r->capacity) {
        size_t capacity = (r->count + count) * 2;
        struct td_run_block *larger = realloc(r->waiting, capacity * sizeof *larger);
        if (larger) {
            r->waiting = larger;
            r->capacity = capacity;
        } else {
            r->status = td_fail_nomem(r->error);
        }
    }
    if (r->status == TDBG_OK && count) {
        memcpy(r->waiting + r->count, blocks, count * sizeof *blocks);
        r->count += count;
    }
    return r->status == TDBG_OK;
}

/* --- A run ---------------------------------------------------------------------------------------------- */

static tdbg_status read_rows(struct run_reading *r, struct td_run_store *store)
{
    TD_TRY(td_run_each_scope(store, -1, visit_scope, r, r->error));
    TD_TRY(r->status);
    TD_TRY(td_run_each_snapshot(store, -1, visit_snapshot, r, r->error));
    TD_TRY(r->status);
    TD_TRY(td_run_each_blocks(store, -1, visit_blocks, r, r->error));
    TD_TRY(r->status);
    if (r->count)
        TD_TRY(flush(r, r->count));
    return take_snapshots(r, INT64_MAX);
}

static tdbg_status finish(struct run_reading *r, int64_t end_ns)
{
    size_t count = td_memory_owners(r->memory);
    struct td_memory_label *labels = calloc(count + 1, sizeof *labels);
    if (!labels)
        return td_fail_nomem(r->error);
    for (size_t i = 0; i < count; i++) {
        const char *name = i < r->name_count ? r->names[i] : NULL;
        labels[i].name = name ? name : i ? "unknown scope" : "outside of any scope";
    }
    tdbg_status status = td_memory_story_finish(r->story, r->memory, labels, end_ns, r->error);
    free(labels);
    return status;
}

static tdbg_status read_store(struct td_memory_story *story, struct td_run_store *store,
                              const struct td_memory_wish *wish, struct tdbg_error *error)
{
    struct run_reading r = {.story = story, .error = error};
    struct td_run_facts facts;
    TD_TRY(td_run_facts(store, &facts, error));
    TD_TRY(td_memory_open(&r.memory, RUN_GRANULE, error));
    if (wish->from)
        td_memory_want(r.memory, wish->from, wish->to);
    story->title = facts.world > 1 ? td_arena_printf(&story->arena, "%s, rank %d", facts.program, facts.rank)
                                   : td_arena_strdup(&story->arena, facts.program);
    story->judged = facts.ended_ns > 0;
    story->note = story->judged ? NULL : "the run is not over, or was killed: what it holds now is no leak";
    tdbg_status status = story->title ? read_rows(&r, store) : td_fail_nomem(error);
    if (status == TDBG_OK)
        status = finish(&r, facts.ended_ns);
    td_memory_close(&r.memory);
    free(r.waiting);
    free(r.names);
    free(r.snapshots);
    return status;
}

static tdbg_status read_folder(struct td_memory_book *book, const char *path,
                               const struct td_memory_wish *wish, struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    struct td_memory_story story;
    TD_TRY(td_run_store_open(&store, path, error));
    td_memory_story_init(&story);
    tdbg_status status = td_run_begin(store, error); /* one moment of a run that grows */
    if (status == TDBG_OK)
        status = read_store(&story, store, wish, error);
    if (status == TDBG_OK)
        status = td_run_commit(store, error);
    if (status == TDBG_OK && story.report.allocations == 0)
        status = td_fail(error, TDBG_NOTFOUND, "the run recorded no memory (tdbg_alloc, tdbg_free)");
    if (status == TDBG_OK)
        status = td_memory_book_add(book, &story, SIZE_MAX, error);
    td_memory_story_release(&story);
    td_run_store_close(&store);
    return status;
}

tdbg_status td_memory_read_run(struct td_memory_book *book, const char *path,
                               const struct td_memory_wish *wish, struct tdbg_error *error)
{
    struct td_run_folders folders = {0};
    TD_TRY(td_run_folders_init(&folders, path, error));
    tdbg_status status = TDBG_OK;
    if (folders.count == 0)
        status = td_fail(error, TDBG_MISUSE, "no recorded run: there is no " TD_RUN_INDEX " in it");
    for (size_t i = 0; i < folders.count && status == TDBG_OK; i++)
        status = read_folder(book, folders.paths[i], wish, error);
    td_run_folders_release(&folders);
    td_memory_book_sort(book);
    return status;
}

tdbg_status td_memory_read(struct td_memory_book *book, const char *path, const struct td_memory_wish *wish,
                           struct td_job *job, struct tdbg_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return td_fail_errno(error, "cannot open");
    if (S_ISDIR(facts.st_mode))
        return td_memory_read_run(book, path, wish, error);
    return td_memory_read_snapshot(book, path, wish, job, error);
}
