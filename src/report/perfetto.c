/* perfetto.c: see perfetto.h. Times are microseconds with three digits behind the point, so that nanoseconds
 * survive. Thread 0 of the trace is the track of the steps, thread N + 1 the run's thread N. */
#include "report/perfetto.h"

#include "analyse/profile_heap.h"
#include "analyse/trace.h"
#include "base/json.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    struct td_json json;
    struct td_job *job;
    struct td_arena arena;
    const char **names; /* of scopes, by number */
    size_t name_room;
    uint32_t threads; /* how many were seen */
    int64_t pid;
    struct td_profile held; /* only its root is used: what is held in all */
    struct td_profile_heap heap;
    tdbg_status status;
    struct tdbg_error *error;
};

static void begin_event(struct writer *w, const char *phase, const char *name, uint32_t thread)
{
    td_json_begin_object(&w->json);
    td_json_field_string(&w->json, "ph", phase);
    td_json_field_string(&w->json, "name", name);
    td_json_field_int(&w->json, "pid", w->pid);
    td_json_field_uint(&w->json, "tid", thread);
}

static void end_event(struct writer *w)
{
    td_json_end_object(&w->json);
    td_json_newline(&w->json);
}

static void write_time(struct writer *w, const char *key, int64_t ns)
{
    td_json_field_number(&w->json, key, (double)ns / 1000);
}

/* --- Spans ---------------------------------------------------------------------------------------------- */

static bool take_scope(void *context, const struct td_run_scope *row)
{
    struct writer *w = context;
    if (row->id >= w->name_room) {
        size_t room = w->name_room ? w->name_room : 1024;
        while (room <= row->id)
            room *= 2;
        const char **bigger = row->id > TD_MAX_SCOPES ? NULL : realloc(w->names, room * sizeof *bigger);
        if (!bigger) {
            w->status = td_fail_nomem(w->error);
            return false;
        }
        memset(bigger + w->name_room, 0, (room - w->name_room) * sizeof *bigger);
        w->names = bigger;
        w->name_room = room;
    }
    w->names[row->id] = td_arena_strdup(&w->arena, row->name);
    if (!w->names[row->id])
        w->status = td_fail_nomem(w->error);
    return w->status == TDBG_OK;
}

static void write_span(struct writer *w, const struct td_run_span *span)
{
    const char *name = span->scope < w->name_room ? w->names[span->scope] : NULL;
    begin_event(w, "X", name ? name : "?", span->thread + 1);
    td_json_field_string(&w->json, "cat", "scope");
    write_time(w, "ts", span->begin_ns);
    write_time(w, "dur", span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0);
    if (span->flops > 0 || span->bytes > 0 || span->tokens > 0) {
        td_json_key(&w->json, "args");
        td_json_begin_object(&w->json);
        if (span->flops > 0)
            td_json_field_number(&w->json, "flops", span->flops);
        if (span->bytes > 0)
            td_json_field_number(&w->json, "bytes", span->bytes);
        if (span->tokens > 0)
            td_json_field_number(&w->json, "tokens", span->tokens);
        td_json_end_object(&w->json);
    }
    end_event(w);
}

static bool take_spans(void *context, int64_t id, int64_t step, const struct td_run_span *spans, size_t count)
{
    struct writer *w = context;
    (void)id, (void)step;
    for (size_t i = 0; i < count; i++) {
        write_span(w, &spans[i]);
        if (spans[i].thread >= w->threads && spans[i].thread < TD_PROFILE_THREADS)
            w->threads = spans[i].thread + 1;
    }
    return !w->json.failed && !td_job_cancelled(w->job);
}

/* --- Steps and counters --------------------------------------------------------------------------------- */

static void write_counter(struct writer *w, const char *name, int64_t time_ns, double value)
{
    begin_event(w, "C", name, 0);
    write_time(w, "ts", time_ns);
    td_json_key(&w->json, "args");
    td_json_begin_object(&w->json);
    td_json_field_number(&w->json, "value", value);
    td_json_end_object(&w->json);
    end_event(w);
}

static bool take_step(void *context, const struct td_run_step *row)
{
    struct writer *w = context;
    char name[48];
    snprintf(name, sizeof name, "step %" PRId64, row->number);
    begin_event(w, "X", name, 0);
    td_json_field_string(&w->json, "cat", TD_TRACE_STEP);
    write_time(w, "ts", row->begin_ns);
    write_time(w, "dur", row->end_ns > row->begin_ns ? row->end_ns - row->begin_ns : 0);
    end_event(w);
    write_counter(w, "process memory", row->end_ns, (double)row->rss);
    return !w->json.failed;
}

static bool take_scalar(void *context, const struct td_run_scalar *row)
{
    struct writer *w = context;
    if (row->value - row->value == 0) /* a track has no place for NaN and Inf */
        write_counter(w, row->name, row->time_ns, row->value);
    return !w->json.failed && !td_job_cancelled(w->job);
}

static void write_held(void *context, int64_t time_ns, int64_t held)
{
    write_counter(context, "memory held", time_ns, (double)held);
}

static bool take_blocks(void *context, int64_t id, int64_t step, const struct td_run_block *blocks,
                        size_t count)
{
    struct writer *w = context;
    (void)id;
    for (size_t i = 0; i < count && w->status == TDBG_OK; i++)
        w->status = td_profile_heap_add(&w->heap, &w->held, step, &blocks[i], TD_PROFILE_ROOT, w->error);
    return w->status == TDBG_OK && !w->json.failed && !td_job_cancelled(w->job);
}

/* --- The document --------------------------------------------------------------------------------------- */

static void write_name(struct writer *w, const char *what, uint32_t thread, const char *name)
{
    begin_event(w, "M", what, thread);
    td_json_key(&w->json, "args");
    td_json_begin_object(&w->json);
    td_json_field_string(&w->json, "name", name);
    td_json_end_object(&w->json);
    end_event(w);
}

static void write_names(struct writer *w, const struct td_run_facts *facts)
{
    char name[32];
    write_name(w, "process_name", 0, facts->program);
    write_name(w, "thread_name", 0, "steps");
    for (uint32_t i = 0; i < w->threads; i++) {
        snprintf(name, sizeof name, "thread %" PRIu32, i);
        write_name(w, "thread_name", i + 1, name);
    }
}

static tdbg_status write_events(struct writer *w, struct td_run_store *store, struct tdbg_error *error)
{
    struct td_run_facts facts;
    TD_TRY(td_run_facts(store, &facts, error));
    TD_TRY(td_profile_init(&w->held, error));
    w->pid = facts.pid;
    TD_TRY(td_run_each_scope(store, -1, take_scope, w, error));
    TD_TRY(w->status);
    TD_TRY(td_run_each_step(store, -1, take_step, w, error));
    TD_TRY(td_run_each_spans(store, -1, take_spans, w, error));
    TD_TRY(td_run_each_scalar(store, -1, take_scalar, w, error));
    TD_TRY(td_run_each_blocks(store, -1, take_blocks, w, error));
    TD_TRY(w->status);
    TD_TRY(td_profile_heap_flush(&w->heap, &w->held, error));
    write_names(w, &facts);
    return td_job_cancelled(w->job) ? td_fail(error, TDBG_CANCELLED, "stopped") : TDBG_OK;
}

tdbg_status td_perfetto_write(FILE *out, struct td_run_store *store, struct td_job *job,
                              struct tdbg_error *error)
{
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return td_fail_nomem(error);
    w->job = job;
    w->error = error;
    w->heap.watch = write_held;
    w->heap.context = w;
    td_arena_init(&w->arena, TD_MAX_METADATA);
    td_json_to_file(&w->json, out);
    td_json_begin_object(&w->json);
    td_json_field_string(&w->json, "displayTimeUnit", "ms");
    td_json_key(&w->json, "traceEvents");
    td_json_begin_array(&w->json);
    tdbg_status status = td_run_begin(store, error);
    if (status == TDBG_OK) {
        status = write_events(w, store, error);
        tdbg_status ended = td_run_commit(store, status == TDBG_OK ? error : NULL);
        status = status == TDBG_OK ? ended : status;
    }
    td_json_end_array(&w->json);
    td_json_end_object(&w->json);
    td_json_newline(&w->json);
    (void)td_json_finish(&w->json); /* the stream remembers */
    td_profile_heap_release(&w->heap);
    td_profile_release(&w->held);
    td_arena_release(&w->arena);
    free(w->names);
    free(w);
    return status;
}
