/* writer.c: see writer.h.
 *
 * The writer looks when it is woken and otherwise every TICK; what it has by then is committed every COMMIT,
 * so that others can follow the run. A step's row is added together with the last of what belongs to it,
 * after its file has its name: a step that can be seen is whole.
 *
 * The first failure ends the recording: what is committed stays, the program goes on, and its lanes are
 * emptied without being read.
 */
#include "record/writer.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/safetensors.h"
#include "kernel/stats.h"
#include "record/gpu.h"
#include "record/step_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 200, RECORDS = 4096 };

/* Of a name: behind it there may be a number, and readers put rank and step in front. */
enum { NUMBER = 24, MOST_GIVEN = TD_MAX_NAME - 96 };

static const int64_t COMMIT_NS = 100 * 1000000, GPU_NS = 1000 * 1000000;

struct td_writer {
    tdbg_run *run;
    struct td_run_store *store;
    struct td_step_file file;
    struct td_tree scopes, names; /* of the index; of a step, to tell tensors of one name apart */
    uint32_t scope_count;

    uint32_t ordinal;      /* of the step whose events are taken, as the lanes count */
    int64_t row;           /* its ordinal in the index: steps of which nothing was recorded have none */
    struct td_begun begun; /* how it began */
    bool touched;          /* something was recorded in it */

    struct td_gpu *gpu; /* NULL without any */
    int64_t gpu_ns;     /* when it was asked */

    bool in_transaction;
    int64_t committed_ns;
    size_t span_count, block_count;
    struct td_run_span spans[RECORDS];
    struct td_run_block blocks[RECORDS];
};

tdbg_status td_writer_new(struct td_writer **out, tdbg_run *run, const struct td_run_facts *facts,
                          struct tdbg_error *error)
{
    struct td_writer *w = calloc(1, sizeof *w);
    if (!w)
        return td_fail_nomem(error);
    w->run = run;
    td_step_file_init(&w->file, run->dir);
    td_tree_init(&w->scopes);
    td_tree_init(&w->names);
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    w->begun.cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
    tdbg_status status = td_run_store_create(&w->store, run->dir, facts, error);
    if (status != TDBG_OK) {
        td_writer_free(w);
        return status;
    }
    *out = w;
    return TDBG_OK;
}

void td_writer_free(struct td_writer *writer)
{
    if (!writer)
        return;
    td_gpu_close(&writer->gpu);
    td_run_store_close(&writer->store);
    td_step_file_release(&writer->file);
    td_tree_release(&writer->scopes);
    td_tree_release(&writer->names);
    free(writer);
}

/* --- transactions --------------------------------------------------------------------------------------- */

static tdbg_status ensure_transaction(struct td_writer *w, struct tdbg_error *error)
{
    if (w->in_transaction)
        return TDBG_OK;
    TD_TRY(td_run_begin(w->store, error));
    w->in_transaction = true;
    return TDBG_OK;
}

static tdbg_status flush_spans(struct td_writer *w, struct tdbg_error *error)
{
    if (!w->span_count)
        return TDBG_OK;
    TD_TRY(ensure_transaction(w, error));
    TD_TRY(td_run_add_spans(w->store, w->row, w->spans, w->span_count, error));
    w->span_count = 0;
    return TDBG_OK;
}

static tdbg_status flush_blocks(struct td_writer *w, struct tdbg_error *error)
{
    if (!w->block_count)
        return TDBG_OK;
    TD_TRY(ensure_transaction(w, error));
    TD_TRY(td_run_add_blocks(w->store, w->row, w->blocks, w->block_count, error));
    w->block_count = 0;
    return TDBG_OK;
}

static tdbg_status commit(struct td_writer *w, struct tdbg_error *error)
{
    TD_TRY(flush_spans(w, error));
    TD_TRY(flush_blocks(w, error));
    w->committed_ns = td_recorder_now(w->run);
    if (!w->in_transaction)
        return TDBG_OK;
    w->in_transaction = false;
    return td_run_commit(w->store, error);
}

/* --- scopes --------------------------------------------------------------------------------------------- */

/* The number of a lane's scope in the index, where its row is added when it is new. 0 is the root. */
static tdbg_status scope_number(struct td_writer *w, struct td_node *node, uint32_t *out,
                                struct tdbg_error *error)
{
    *out = 0;
    if (!node || !node->name) /* none, or what a lane hangs its scopes on */
        return TDBG_OK;
    if (!node->twin) {
        uint32_t parent;
        TD_TRY(scope_number(w, node->parent, &parent, error));
        struct td_node *above = node->parent && node->parent->name ? node->parent->twin : NULL;
        struct td_node *twin = td_tree_child(&w->scopes, above, node->name);
        if (!twin)
            return td_fail_nomem(error);
        if (!twin->scope) {
            TD_TRY(ensure_transaction(w, error));
            struct td_run_scope row = {w->scope_count + 1, parent, node->name};
            TD_TRY(td_run_add_scope(w->store, &row, error));
            twin->scope = ++w->scope_count;
        }
        node->twin = twin;
    }
    *out = node->twin->scope;
    return TDBG_OK;
}

/* --- events --------------------------------------------------------------------------------------------- */

static tdbg_status take_span(struct td_writer *w, const struct td_lane *lane, const struct td_event *e,
                             struct tdbg_error *error)
{
    if (w->span_count == RECORDS)
        TD_TRY(flush_spans(w, error));
    struct td_run_span *span = &w->spans[w->span_count];
    TD_TRY(scope_number(w, e->node, &span->scope, error));
    span->begin_ns = e->span.begin_ns;
    span->end_ns = e->time_ns;
    span->thread = lane->thread;
    span->flops = e->span.flops;
    span->bytes = e->span.bytes;
    span->tokens = e->span.tokens;
    w->span_count++;
    return TDBG_OK;
}

static tdbg_status take_block(struct td_writer *w, const struct td_lane *lane, const struct td_event *e,
                              struct tdbg_error *error)
{
    if (w->block_count == RECORDS)
        TD_TRY(flush_blocks(w, error));
    struct td_run_block *block = &w->blocks[w->block_count];
    TD_TRY(scope_number(w, e->node, &block->scope, error));
    block->time_ns = e->time_ns;
    block->address = e->block.address;
    block->bytes = e->block.bytes;
    block->thread = lane->thread;
    w->block_count++;
    return TDBG_OK;
}

/* Statistics, and for a sketch the counts, of values that lie packed in a parcel. */
static tdbg_status measure(const struct td_writer *w, struct td_parcel *parcel, uint64_t *bins,
                           bool *sketched, struct tdbg_error *error)
{
    struct td_view view;
    double edges[TD_SKETCH_BINS + 1];
    if (parcel->measured)
        return TDBG_OK;
    TD_TRY(td_view_packed(&view, parcel->data, parcel->bytes, parcel->dtype, &parcel->kept, error));
    struct td_tensor tensor = {.name = "",
                               .format = "run",
                               .dtype = view.dtype,
                               .shape = view.shape,
                               .count = view.count,
                               .bytes = parcel->bytes,
                               .view = view};
    TD_TRY(td_stats_with(w->run->kernels, &tensor, NULL, &parcel->stats, error));
    *sketched = parcel->keep == TD_KEEP_SKETCH && parcel->stats.finite;
    return *sketched ? td_histogram(&tensor, NULL, NULL, parcel->stats.min, parcel->stats.max, TD_SKETCH_BINS,
                                    edges, bins, error)
                     : TDBG_OK;
}

/* The name is this tensor's, unless the step has had it already. */
static bool claim(struct td_node *name, uint64_t step)
{
    if (name->since == step)
        return false;
    name->since = step;
    name->seen = 1;
    return true;
}

/* The name as readers will see it; one that is taken in this step gets the first number that is free, for two
 * tensors of one name cannot be in one file. A program may number names itself: x#2 may be taken, too. */
static tdbg_status unique_name(struct td_writer *w, const char *given, char room[TD_MAX_NAME + 1],
                               struct tdbg_error *error)
{
    uint64_t step = (uint64_t)w->ordinal + 1;
    snprintf(room, TD_MAX_NAME + 1, "%.*s", MOST_GIVEN, given);
    td_utf8_clean(room);
    struct td_node *first = td_tree_child(&w->names, NULL, room);
    if (!first)
        return td_fail_nomem(error);
    bool reserved = strcmp(room, TD_SAFETENSORS_METADATA) == 0;
    if (claim(first, step) && !reserved)
        return TDBG_OK;
    for (char *number = room + strlen(room);;) {
        snprintf(number, NUMBER, "#%llu", (unsigned long long)++first->seen);
        struct td_node *name = td_tree_child(&w->names, NULL, room);
        if (!name)
            return td_fail_nomem(error);
        if (claim(name, step))
            return TDBG_OK;
    }
}

/* The values into the file of the step. A type that the file cannot hold leaves the statistics. */
static tdbg_status keep_values(struct td_writer *w, struct td_parcel *parcel, const char *name,
                               struct tdbg_error *error)
{
    tdbg_status status = td_step_file_add(&w->file, w->begun.number, name, parcel->dtype, &parcel->kept,
                                          parcel->data, parcel->bytes, error);
    if (status != TDBG_UNSUPPORTED)
        return status;
    parcel->keep = TD_KEEP_STATS;
    if (error)
        td_run_note(w->run, "trouble", error->message);
    return TDBG_OK;
}

static tdbg_status take_tensor(struct td_writer *w, const struct td_lane *lane, const struct td_event *e,
                               struct tdbg_error *error)
{
    struct td_parcel *parcel = e->parcel;
    char name[TD_MAX_NAME + 1];
    uint64_t bins[TD_SKETCH_BINS];
    bool sketched = false;
    struct td_run_tensor row = {.id = parcel->id,
                                .name = name,
                                .step = w->row,
                                .time_ns = e->time_ns,
                                .thread = lane->thread,
                                .dtype = td_dtype_name(parcel->dtype),
                                .ndim = parcel->shape.ndim};
    TD_TRY(ensure_transaction(w, error));
    TD_TRY(unique_name(w, e->node->name, name, error));
    TD_TRY(scope_number(w, parcel->scope, &row.scope, error));
    TD_TRY(measure(w, parcel, bins, &sketched, error));
    if (parcel->keep == TD_KEEP_FULL || parcel->keep == TD_KEEP_SLICE)
        TD_TRY(keep_values(w, parcel, name, error));
    row.kind = parcel->keep;
    row.file = parcel->keep == TD_KEEP_FULL || parcel->keep == TD_KEEP_SLICE ? w->file.name : NULL;
    memcpy(row.shape, parcel->shape.size, sizeof row.shape);
    row.stats = parcel->stats;
    row.bins = sketched ? bins : NULL;
    return td_run_add_tensor(w->store, &row, error);
}

static tdbg_status take_event(struct td_writer *w, const struct td_lane *lane, const struct td_event *e,
                              struct tdbg_error *error)
{
    w->touched = true;
    switch (e->kind) {
    case TD_EVENT_SPAN:
        return take_span(w, lane, e, error);
    case TD_EVENT_BLOCK:
        return take_block(w, lane, e, error);
    case TD_EVENT_TENSOR:
        return take_tensor(w, lane, e, error);
    case TD_EVENT_SCALAR: {
        struct td_run_scalar row = {
            .step = e->scalar.step, .time_ns = e->time_ns, .name = e->node->name, .value = e->scalar.value};
        TD_TRY(ensure_transaction(w, error));
        return td_run_add_scalar(w->store, &row, error);
    }
    case TD_EVENT_SNAPSHOT: {
        struct td_run_snapshot row = {e->node->name, w->row, e->time_ns};
        TD_TRY(ensure_transaction(w, error));
        return td_run_add_snapshot(w->store, &row, error);
    }
    }
    return TDBG_OK;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static int64_t resident(void)
{
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%*s %lld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

/* The step is over: `next` is how the one after it began. */
static tdbg_status finish_step(struct td_writer *w, const struct td_begun *next, struct tdbg_error *error)
{
    if (w->touched) {
        TD_TRY(td_step_file_finish(&w->file, error));
        TD_TRY(flush_spans(w, error));
        TD_TRY(flush_blocks(w, error));
        TD_TRY(ensure_transaction(w, error));
        struct td_run_step row = {
            w->row,    w->begun.number, w->begun.time_ns, next->time_ns, next->cpu_ns - w->begun.cpu_ns,
            resident()};
        TD_TRY(td_run_add_step(w->store, &row, error));
        TD_TRY(commit(w, error));
        atomic_store(&w->run->saved, w->begun.number);
        w->row++;
    }
    w->touched = false;
    w->begun = *next;
    return TDBG_OK;
}

/* --- the loop ------------------------------------------------------------------------------------------- */

static void end_recording(struct td_writer *w, tdbg_status status, const struct tdbg_error *error)
{
    tdbg_run *run = w->run;
    run->trouble = status;
    run->trouble_error = *error;
    atomic_store(&run->dead, true);
    if (w->in_transaction)
        (void)!td_run_commit(w->store, NULL); /* whatever still goes in */
    w->in_transaction = false;
}

/* Everything up to the step `w->ordinal`, from all lanes. */
static void drain(struct td_writer *w)
{
    struct tdbg_error error;
    for (struct td_lane *lane = atomic_load(&w->run->lanes); lane; lane = lane->next)
        for (struct td_event *e; (e = td_lane_peek(lane, w->ordinal)); td_lane_drop(lane)) {
            tdbg_status status = TDBG_OK;
            if (!atomic_load_explicit(&w->run->dead, memory_order_relaxed)) {
                status = take_event(w, lane, e, &error);
                if (status == TDBG_OK && e->time_ns - w->committed_ns > COMMIT_NS)
                    status = commit(w, &error);
            }
            if (status != TDBG_OK)
                end_recording(w, status, &error);
            if (e->kind == TD_EVENT_TENSOR)
                td_parcel_return(&lane->parcels, e->parcel);
        }
}

static void write_notes(struct td_writer *w)
{
    struct tdbg_error error;
    pthread_mutex_lock(&w->run->lock);
    struct td_pending_note *note = w->run->notes;
    w->run->notes = NULL;
    pthread_mutex_unlock(&w->run->lock);
    while (note) {
        struct td_pending_note *next = note->next;
        struct td_run_note row = {
            .step = w->row, .time_ns = note->time_ns, .kind = note->kind, .text = note->text};
        if (!atomic_load(&w->run->dead)) {
            tdbg_status status = ensure_transaction(w, &error);
            if (status == TDBG_OK)
                status = td_run_add_note(w->store, &row, &error);
            if (status != TDBG_OK)
                end_recording(w, status, &error);
        }
        free(note);
        note = next;
    }
}

static tdbg_status write_gpu_scalar(struct td_writer *w, int index, const char *what, double value,
                                    struct tdbg_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "gpu%d.%s", index, what);
    struct td_run_scalar row = {.step = w->begun.number, .time_ns = w->gpu_ns, .name = name, .value = value};
    TD_TRY(ensure_transaction(w, error));
    return td_run_add_scalar(w->store, &row, error);
}

/* How busy the GPUs are, once a second. */
static void write_gpu(struct td_writer *w)
{
    struct tdbg_error error;
    int64_t now = td_recorder_now(w->run);
    if (!w->gpu || atomic_load(&w->run->dead) || now - w->gpu_ns < GPU_NS)
        return;
    w->gpu_ns = now;
    tdbg_status status = TDBG_OK;
    for (int i = 0; status == TDBG_OK && i < td_gpu_count(w->gpu); i++) {
        struct td_gpu_sample sample;
        if (!td_gpu_sample(w->gpu, i, &sample))
            continue;
        status = write_gpu_scalar(w, i, "utilisation", sample.utilisation, &error);
        if (status == TDBG_OK)
            status = write_gpu_scalar(w, i, "memory", sample.memory, &error);
    }
    if (status != TDBG_OK)
        end_recording(w, status, &error);
}

/* The oldest step that began and is not under way here; false when there is none. */
static bool next_begun(struct td_writer *w, struct td_begun *out)
{
    tdbg_run *run = w->run;
    pthread_mutex_lock(&run->lock);
    bool any = run->begun_count > 0;
    if (any) {
        *out = run->begun[0];
        memmove(run->begun, run->begun + 1, --run->begun_count * sizeof *run->begun);
    }
    pthread_mutex_unlock(&run->lock);
    return any;
}

static void take_all(struct td_writer *w)
{
    struct tdbg_error error;
    struct td_begun next;
    while (next_begun(w, &next)) {
        drain(w);
        if (!atomic_load(&w->run->dead)) {
            tdbg_status status = finish_step(w, &next, &error);
            if (status != TDBG_OK)
                end_recording(w, status, &error);
        }
        w->ordinal++;
    }
    drain(w);
    write_notes(w);
    write_gpu(w);
    if (!atomic_load(&w->run->dead) && td_recorder_now(w->run) - w->committed_ns > COMMIT_NS) {
        tdbg_status status = commit(w, &error);
        if (status != TDBG_OK)
            end_recording(w, status, &error);
    }
}

/* Until there is something to do, or the tick is over. True when the run is closing. */
static bool wait_for_work(tdbg_run *run)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&run->lock);
    atomic_store(&run->asleep, true);
    if (!run->closing && !run->begun_count && !atomic_load(&run->pressing))
        pthread_cond_timedwait(&run->wake, &run->lock, &until);
    atomic_store(&run->asleep, false);
    atomic_store(&run->pressing, false);
    bool closing = run->closing;
    pthread_mutex_unlock(&run->lock);
    return closing;
}

static void finish(struct td_writer *w)
{
    struct tdbg_error error;
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    int64_t now = td_recorder_now(w->run);
    struct td_begun end = {0, now, (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec};
    tdbg_status status = finish_step(w, &end, &error);
    if (status == TDBG_OK)
        status = td_run_set_ended(w->store, now, &error);
    if (status == TDBG_OK)
        status = commit(w, &error);
    if (status != TDBG_OK)
        end_recording(w, status, &error);
    else
        td_run_settle(w->store);
}

void *td_writer_main(void *run)
{
    struct td_writer *w = ((tdbg_run *)run)->writer;
    bool closing;
    w->gpu = td_gpu_open();
    do {
        closing = wait_for_work(w->run);
        take_all(w);
        pthread_cond_broadcast(&w->run->room);
    } while (!closing);
    if (!atomic_load(&w->run->dead))
        finish(w);
    return NULL;
}
