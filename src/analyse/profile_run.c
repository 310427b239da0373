/* profile_run.c: from the rows of a run to calls of scopes.
 *
 * The index numbers scopes by the way they were reached, as the profile does; the two numberings differ, and
 * `scopes` leads from one to the other. Scopes beyond the profile's cap lead to the nearest one above them.
 *
 * A call comes when it ends, so a scope that is still open has children and no call yet. Therefore every call
 * counts for the wall time, not only the outermost ones.
 *
 * Memory: threads write what they did in blocks, so a release may come before its allocation. The blocks of a
 * step are put in the order of time first.
 */
#include "analyse/profile_run.h"

#include "analyse/profile_heap.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDED (UINT32_C(1) << 31)

struct feed {
    struct td_profile *profile;
    struct td_job *job;
    uint32_t *scopes; /* by their number in the index; FOLDED: the node above stands for it */
    size_t scope_room;
    int64_t step_count;
    struct td_profile_heap heap;
    tdbg_status status;
    struct tdbg_error *error;
};

/* --- Steps and scopes ----------------------------------------------------------------------------------- */

static bool count_step(void *context, const struct td_run_step *row)
{
    struct feed *f = context;
    if (row->ordinal >= f->step_count && row->ordinal < INT64_C(1) << 40)
        f->step_count = row->ordinal + 1;
    return true;
}

static bool add_step(void *context, const struct td_run_step *row)
{
    struct feed *f = context;
    td_profile_step(f->profile, row->ordinal,
                    &(struct td_profile_step){.number = row->number,
                                              .begin_ns = row->begin_ns,
                                              .end_ns = row->end_ns,
                                              .cpu_ns = row->cpu_ns,
                                              .rss = row->rss});
    return true;
}

static uint32_t node_of(const struct feed *f, uint32_t scope)
{
    return scope < f->scope_room ? f->scopes[scope] : FOLDED | TD_PROFILE_ROOT;
}

static bool make_room(struct feed *f, uint32_t scope)
{
    size_t room = f->scope_room ? f->scope_room : 1024;
    while (room <= scope)
        room *= 2;
    if (room == f->scope_room)
        return true;
    uint32_t *bigger = realloc(f->scopes, room * sizeof *bigger);
    if (!bigger)
        return false;
    for (size_t i = f->scope_room; i < room; i++)
        bigger[i] = FOLDED | TD_PROFILE_ROOT;
    if (!f->scope_room)
        bigger[0] = TD_PROFILE_ROOT;
    f->scopes = bigger;
    f->scope_room = room;
    return true;
}

static bool add_scope(void *context, const struct td_run_scope *row)
{
    struct feed *f = context;
    if (row->id == 0 || row->id > TD_MAX_SCOPES || row->parent >= row->id)
        f->status = td_fail(f->error, TDBG_CORRUPT, "scope %u below scope %u", row->id, row->parent);
    else if (!make_room(f, row->id))
        f->status = td_fail_nomem(f->error);
    if (f->status != TDBG_OK)
        return false;
    uint32_t above = node_of(f, row->parent), name, node = TD_PROFILE_NONE;
    if (!(above & FOLDED)) {
        f->status = td_profile_name(f->profile, row->name, strlen(row->name), &name, f->error);
        if (f->status == TDBG_OK)
            f->status = td_profile_child(f->profile, above, name, &node, f->error);
    }
    f->scopes[row->id] = node == TD_PROFILE_NONE ? above | FOLDED : node;
    return f->status == TDBG_OK;
}

/* --- Calls ---------------------------------------------------------------------------------------------- */

static bool add_call(struct feed *f, int64_t step, const struct td_run_span *span)
{
    struct td_profile *p = f->profile;
    uint32_t node = node_of(f, span->scope);
    if (node & FOLDED) {
        p->folded++;
        return true;
    }
    while (f->status == TDBG_OK && p->thread_count <= span->thread) {
        char name[32];
        snprintf(name, sizeof name, "thread %zu", p->thread_count);
        f->status = td_profile_add_thread(p, name, false, f->error);
    }
    bool outermost = p->nodes[node].parent == TD_PROFILE_ROOT;
    struct td_profile_call call = {.begin_ns = span->begin_ns,
                                   .end_ns = span->end_ns,
                                   .step = step,
                                   .flops = span->flops,
                                   .bytes = span->bytes,
                                   .tokens = span->tokens};
    if (f->status == TDBG_OK)
        f->status = td_profile_add(p, node, span->thread, outermost, &call, f->error);
    if (f->status == TDBG_OK && !outermost && !td_intervals_add(&p->host, span->begin_ns, span->end_ns))
        f->status = td_fail_nomem(f->error);
    return f->status == TDBG_OK;
}

static bool add_calls(void *context, int64_t id, int64_t step, const struct td_run_span *spans, size_t count)
{
    struct feed *f = context;
    (void)id;
    for (size_t i = 0; i < count; i++)
        if (!add_call(f, step, &spans[i]))
            return false;
    return !td_job_cancelled(f->job);
}

static bool add_blocks(void *context, int64_t id, int64_t step, const struct td_run_block *blocks,
                       size_t count)
{
    struct feed *f = context;
    (void)id;
    for (size_t i = 0; i < count && f->status == TDBG_OK; i++)
        f->status = td_profile_heap_add(&f->heap, f->profile, step, &blocks[i],
                                        node_of(f, blocks[i].scope) & ~FOLDED, f->error);
    return f->status == TDBG_OK && !td_job_cancelled(f->job);
}

/* What the recorder samples of the machine; the program's own scalars are no business of a profile. */
static bool add_scalar(void *context, const struct td_run_scalar *row)
{
    struct feed *f = context;
    if (strncmp(row->name, "gpu", 3) == 0 && row->name[3] >= '0' && row->name[3] <= '9')
        td_profile_gauge(f->profile, row->name, row->value);
    return true;
}

static tdbg_status read_run(struct feed *f, struct td_run_store *store, struct tdbg_error *error)
{
    TD_TRY(td_run_each_step(store, -1, count_step, f, error));
    TD_TRY(td_profile_set_steps(f->profile, f->step_count, error));
    TD_TRY(td_run_each_step(store, -1, add_step, f, error));
    if (!make_room(f, 0))
        return td_fail_nomem(error);
    TD_TRY(td_run_each_scope(store, -1, add_scope, f, error));
    TD_TRY(f->status);
    TD_TRY(td_run_each_spans(store, -1, add_calls, f, error));
    TD_TRY(f->status);
    TD_TRY(td_run_each_blocks(store, -1, add_blocks, f, error));
    TD_TRY(f->status);
    TD_TRY(td_profile_heap_flush(&f->heap, f->profile, error));
    TD_TRY(td_run_each_scalar(store, -1, add_scalar, f, error));
    return td_job_cancelled(f->job) ? td_fail(error, TDBG_CANCELLED, "stopped") : TDBG_OK;
}

tdbg_status td_run_profile(struct td_profile *profile, struct td_run_store *store, struct td_job *job,
                           struct tdbg_error *error)
{
    struct feed f = {.profile = profile, .job = job, .error = error};
    TD_TRY(td_run_begin(store, error));
    tdbg_status status = read_run(&f, store, error);
    tdbg_status ended = td_run_commit(store, status == TDBG_OK ? error : NULL);
    td_profile_heap_release(&f.heap);
    free(f.scopes);
    return status == TDBG_OK ? ended : status;
}
