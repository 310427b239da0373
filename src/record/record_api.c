/* record_api.c: the calls a program makes while it runs (tdbg.h, "Recording").
 *
 * All of it runs in the program's threads. Without a run a call is one test; with one it is bounded work, but
 * for the waiting when the writer is behind, and for an observer that holds the thread at a breakpoint. (The
 * names are in parentheses where they are defined, because tdbg.h has macros of them.)
 */
#include "record/recorder.h"

#include "base/checked.h"
#include "kernel/block.h"
#include "kernel/load.h"
#include "kernel/stats.h"
#include "tensor/slice.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A waiting program looks this often whether there is room. */
enum { PATIENCE_NS = 5000000 };

/* Elements that are worth the program's other threads: with two of them, what it costs to ask them is won
 * back at about four blocks. */
enum { WORTH_SHARING = 4 * TD_BLOCK_LENGTH };

/* A program that does the same thing wrong at every call says so often enough. */
enum { MOST_NOTES = 10000 };

int64_t td_recorder_now(const tdbg_run *run)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)(t.tv_sec - run->start.tv_sec) * 1000000000 + (t.tv_nsec - run->start.tv_nsec);
}

/* False in a forked child: nobody lets go of a lock that the writer held at the fork. The child records
 * nothing from then on. Asked only where a lock is needed, because it asks the system. */
static bool lock_run(tdbg_run *run)
{
    if (getpid() != run->pid) {
        atomic_store(&run->dead, true);
        return false;
    }
    pthread_mutex_lock(&run->lock);
    return true;
}

/* There is something the writer should not let lie until its next look. */
static void wake_writer(tdbg_run *run)
{
    atomic_store(&run->pressing, true); /* seen by a writer that is about to sleep, or it is seen sleeping */
    if (!atomic_load(&run->asleep) || !lock_run(run))
        return;
    pthread_cond_signal(&run->wake);
    pthread_mutex_unlock(&run->lock);
}

/* --- lanes ---------------------------------------------------------------------------------------------- */

/* The thread that asks has no lane: one of its number belongs to an earlier thread. */
static bool is_free(const struct td_lane *lane, pid_t self)
{
    return lane->owner == self || (tgkill(getpid(), lane->owner, 0) != 0 && errno == ESRCH);
}

/* A lane whose thread has ended, or a new one. */
static struct td_lane *take_lane(tdbg_run *run)
{
    struct td_lane *lane;
    pid_t self = gettid();
    if (!lock_run(run))
        return NULL;
    for (lane = atomic_load(&run->lanes); lane && !is_free(lane, self); lane = lane->next)
        ;
    if (lane) {
        (void)atomic_load_explicit(&lane->head, memory_order_acquire); /* sees all that its last thread did */
        lane->depth = 0;
    } else if ((lane = td_lane_new(run->threads, &run->budget))) {
        run->threads++;
        lane->next = atomic_load(&run->lanes);
        atomic_store(&run->lanes, lane);
    }
    if (lane)
        lane->owner = self;
    pthread_mutex_unlock(&run->lock);
    return lane && pthread_setspecific(run->key, lane) == 0 ? lane : NULL;
}

static struct td_lane *lane_of(tdbg_run *run)
{
    struct td_lane *lane = pthread_getspecific(run->key);
    return lane ? lane : take_lane(run);
}

/* Waits for the writer for a while. False: there is none any more. */
static bool wait_for_room(tdbg_run *run)
{
    struct timespec until;
    if (atomic_load(&run->dead))
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!lock_run(run))
        return false;
    pthread_cond_signal(&run->wake);
    pthread_cond_timedwait(&run->room, &run->lock, &until);
    pthread_mutex_unlock(&run->lock);
    return true;
}

/* The next slot of the lane with what every event has; NULL when recording has ended. */
static struct td_event *event_slot(tdbg_run *run, struct td_lane *lane, enum td_event_kind kind,
                                   struct td_node *node)
{
    struct td_event *event;
    if (!node || atomic_load_explicit(&run->dead, memory_order_relaxed))
        return NULL;
    while (!(event = td_lane_slot(lane)))
        if (!wait_for_room(run))
            return NULL;
    event->kind = kind;
    event->ordinal = atomic_load_explicit(&run->ordinal, memory_order_acquire);
    event->node = node;
    event->time_ns = td_recorder_now(run);
    return event;
}

static void push(tdbg_run *run, struct td_lane *lane)
{
    td_lane_push(lane);
    if ((atomic_load_explicit(&lane->head, memory_order_relaxed) & (TD_LANE_EVENTS / 4 - 1)) == 0)
        wake_writer(run);
}

static struct td_node *scope_of(const struct td_lane *lane)
{
    int depth = lane->depth < TD_MAX_SCOPE_DEPTH ? lane->depth : TD_MAX_SCOPE_DEPTH;
    return depth ? lane->stack[depth - 1].node : NULL;
}

/* NULL without memory, and without a name: a program that hands over none goes on, as after other mistakes.
 */
static struct td_node *name_of(tdbg_run *run, struct td_lane *lane, const char *name, const char *call)
{
    if (name && *name)
        return td_tree_child(&lane->names, NULL, name);
    td_run_note(run, "trouble", call);
    return NULL;
}

static struct td_moment moment(const tdbg_run *run, const struct td_lane *lane, const char *name)
{
    return (struct td_moment){atomic_load(&run->number), lane->thread, name, lane->depth, scope_of(lane)};
}

/* --- scopes --------------------------------------------------------------------------------------------- */

static void begin_scope(tdbg_run *run, const char *name)
{
    struct td_lane *lane = lane_of(run);
    if (!lane)
        return;
    if (!name || !*name) { /* its end will come */
        td_run_note(run, "trouble", "tdbg_scope_begin: no name");
        name = "(no name)";
    }
    const struct td_observer *observer = atomic_load_explicit(&run->observer, memory_order_acquire);
    if (observer) {
        struct td_moment m = moment(run, lane, name);
        observer->scope(observer->context, &m, true);
    }
    if (lane->depth < TD_MAX_SCOPE_DEPTH) {
        struct td_node *parent = scope_of(lane);
        lane->stack[lane->depth] =
            (struct td_open_scope){.node = td_tree_child(&lane->names, parent ? parent : &lane->scopes, name),
                                   .begin_ns = td_recorder_now(run)};
    }
    lane->depth++;
}

void(tdbg_scope_begin)(tdbg_run *run, const char *name)
{
    if (run)
        begin_scope(run, name);
}

static void end_scope(tdbg_run *run)
{
    struct td_lane *lane = lane_of(run);
    if (!lane || lane->depth == 0) /* an end without a beginning */
        return;
    if (--lane->depth >= TD_MAX_SCOPE_DEPTH)
        return;
    const struct td_open_scope *scope = &lane->stack[lane->depth];
    struct td_event *event = event_slot(run, lane, TD_EVENT_SPAN, scope->node);
    if (event) {
        event->span.begin_ns = scope->begin_ns;
        event->span.flops = scope->flops;
        event->span.bytes = scope->bytes;
        event->span.tokens = scope->tokens;
        push(run, lane);
    }
    const struct td_observer *observer = atomic_load_explicit(&run->observer, memory_order_acquire);
    if (observer && scope->node) {
        struct td_moment m = moment(run, lane, scope->node->name);
        observer->scope(observer->context, &m, false);
    }
}

void(tdbg_scope_end)(tdbg_run *run)
{
    if (run)
        end_scope(run);
}

static void add_cost(tdbg_run *run, double flops, double bytes, double tokens)
{
    struct td_lane *lane = lane_of(run);
    if (!lane || lane->depth == 0 || lane->depth > TD_MAX_SCOPE_DEPTH)
        return;
    struct td_open_scope *scope = &lane->stack[lane->depth - 1];
    scope->flops += flops;
    scope->bytes += bytes;
    scope->tokens += tokens;
}

void(tdbg_cost)(tdbg_run *run, double flops, double bytes, double tokens)
{
    if (run)
        add_cost(run, flops, bytes, tokens);
}

/* --- tensors -------------------------------------------------------------------------------------------- */

/* Views count from their lowest element; `data` is the first, and an axis may run backwards from it. */
static tdbg_status strided_view(struct td_view *out, const struct tdbg_tensor *tensor, enum td_dtype dtype,
                                const struct td_shape *shape, struct tdbg_error *error)
{
    int64_t low = 0, bytes, length;
    bool fits = true;
    for (int i = 0; i < shape->ndim; i++)
        if (tensor->strides[i] < 0)
            fits = fits && td_mul_i64(shape->size[i] - 1, tensor->strides[i], &length) &&
                   td_add_i64(low, length, &low);
    if (!fits || !td_mul_i64(low, (int64_t)td_dtype_size(dtype), &bytes))
        return td_fail(error, TDBG_MISUSE, "strides that reach beyond any memory");
    return td_view_strided(out, (const uint8_t *)tensor->data + bytes, UINT64_MAX, dtype, -(uint64_t)low,
                           shape, tensor->strides, error);
}

/* The program's own memory as a view. It vouches for the bytes behind it. */
static tdbg_status view_of(struct td_view *out, const struct tdbg_tensor *tensor, struct tdbg_error *error)
{
    struct td_shape shape = {.ndim = tensor->ndim};
    enum td_dtype dtype;
    int64_t count;
    if (!tensor->dtype || !td_dtype_find(tensor->dtype, &dtype))
        return td_fail(error, TDBG_MISUSE, "unknown type \"%.32s\"", tensor->dtype ? tensor->dtype : "");
    if (tensor->ndim < 0 || tensor->ndim > TD_MAX_DIMS || (tensor->ndim && !tensor->shape))
        return td_fail(error, TDBG_MISUSE, "%d dimensions", tensor->ndim);
    memcpy(shape.size, tensor->shape, (size_t)tensor->ndim * sizeof *shape.size);
    TD_TRY(td_shape_count(&shape, &count, error));
    if (!tensor->data && count)
        return td_fail(error, TDBG_MISUSE, "no data");
    return tensor->strides && count ? strided_view(out, tensor, dtype, &shape, error)
                                    : td_view_packed(out, tensor->data, UINT64_MAX, dtype, &shape, error);
}

static struct td_tensor tensor_of(const struct td_view *view, const char *name)
{
    return (struct td_tensor){.name = name,
                              .format = "run",
                              .dtype = view->dtype,
                              .shape = view->shape,
                              .count = view->count,
                              .bytes = (uint64_t)view->count * td_dtype_size(view->dtype),
                              .view = *view};
}

/* Row-major without gaps, whatever the strides were. */
static tdbg_status copy_values(struct td_parcel *parcel, const struct td_tensor *tensor,
                               struct tdbg_error *error)
{
    const void *direct = td_direct(tensor);
    if (!direct)
        return td_load(tensor, 0, tensor->count, parcel->data, error);
    memcpy(parcel->data, direct, tensor->bytes);
    return TDBG_OK;
}

/* A parcel with room for `bytes`, as soon as there is one; NULL when recording has ended. */
static tdbg_status take_parcel(struct td_parcel **out, tdbg_run *run, struct td_lane *lane, uint64_t bytes,
                               struct tdbg_error *error)
{
    tdbg_status status;
    *out = NULL;
    while ((status = td_parcel_take(out, &lane->parcels, bytes)) == TDBG_LIMIT)
        if (!wait_for_room(run))
            return TDBG_OK;
    return status == TDBG_OK ? status
                             : td_fail(error, status, "no memory for a copy of %llu bytes: not recorded",
                                       (unsigned long long)bytes);
}

/* A forked child has none of the threads that it might be lent, and would wait for them. */
static struct td_pool *threads_for(const tdbg_run *run, const struct td_tensor *tensor)
{
    return run->lent && tensor->count >= WORTH_SHARING && getpid() == run->pid ? run->lent : NULL;
}

/* How a tensor is handed over: by itself, or as the output of a scope, which may be the last one's again. */
enum handing { ALONE, OUTPUT, OUTPUT_AGAIN };

static tdbg_status measure(tdbg_run *run, struct td_lane *lane, const struct td_tensor *tensor,
                           enum handing how, struct tdbg_stats *out, struct tdbg_error *error)
{
    if (how == OUTPUT_AGAIN && td_last_is(&lane->last, tensor)) {
        *out = lane->last.stats;
        return TDBG_OK;
    }
    TD_TRY(td_stats_with(run->kernels, tensor, threads_for(run, tensor), out, error));
    if (how != ALONE)
        td_last_keep(&lane->last, tensor, out);
    return TDBG_OK;
}

/* A parcel with the values; NULL when recording has ended. Statistics alone are taken right here: that is one
 * read of what the program just wrote and has in its caches, a copy would be a read and a write. */
static tdbg_status pack(struct td_parcel **out, tdbg_run *run, struct td_lane *lane,
                        const struct td_tensor *tensor, enum td_keep keep, enum handing how,
                        struct tdbg_error *error)
{
    struct td_parcel *parcel;
    bool values = keep != TD_KEEP_STATS;
    TD_TRY(take_parcel(&parcel, run, lane, !values ? 0 : tensor->bytes ? tensor->bytes : 1, error));
    *out = parcel;
    if (!parcel)
        return TDBG_OK;
    parcel->keep = keep;
    parcel->dtype = tensor->dtype;
    parcel->kept = tensor->shape;
    parcel->bytes = values ? tensor->bytes : 0;
    parcel->measured = !values;
    tdbg_status status =
        values ? copy_values(parcel, tensor, error) : measure(run, lane, tensor, how, &parcel->stats, error);
    if (status != TDBG_OK)
        td_parcel_return(&lane->parcels, parcel);
    return status;
}

/* What a slice rule keeps; without the values when it does not fit the shape. */
static enum td_keep cut(struct td_view *view, const struct td_rule *rule, struct tdbg_error *error)
{
    struct td_slice slice;
    if (td_slice_parse(&slice, rule->slice, &view->shape, error) != TDBG_OK)
        return TD_KEEP_STATS;
    *view = td_slice_view(&slice, view);
    return TD_KEEP_SLICE;
}

static tdbg_status record_tensor(tdbg_run *run, struct td_lane *lane, const char *text,
                                 const struct tdbg_tensor *given, enum handing how, struct tdbg_error *error)
{
    struct td_view view;
    if (!given)
        return td_fail(error, TDBG_MISUSE, "no tensor");
    struct td_node *name = name_of(run, lane, text, "tdbg_tensor: no name");
    if (!text || !*text)
        return TDBG_OK;
    TD_TRY(view_of(&view, given, error));
    const struct td_observer *observer = atomic_load_explicit(&run->observer, memory_order_acquire);
    if (observer) {
        struct td_tensor tensor = tensor_of(&view, text);
        struct td_moment m = moment(run, lane, text);
        observer->tensor(observer->context, &m, &tensor);
    }
    const struct td_rule *rule =
        name ? td_capture_rule(atomic_load(&run->capture), name, atomic_load(&run->number)) : NULL;
    if (!rule || rule->keep == TD_KEEP_NONE || atomic_load_explicit(&run->dead, memory_order_relaxed))
        return TDBG_OK;
    struct td_shape shape = view.shape;
    enum td_keep keep = rule->keep == TD_KEEP_SLICE ? cut(&view, rule, NULL) : rule->keep;
    struct td_tensor tensor = tensor_of(&view, text);
    struct td_parcel *parcel;
    TD_TRY(pack(&parcel, run, lane, &tensor, keep, how, error));
    if (!parcel)
        return TDBG_OK; /* recording has ended */
    parcel->shape = shape;
    parcel->scope = scope_of(lane);
    parcel->id = atomic_fetch_add(&run->next_tensor, 1) + 1;
    struct td_event *event = event_slot(run, lane, TD_EVENT_TENSOR, name);
    if (!event) {
        td_parcel_return(&lane->parcels, parcel);
        return TDBG_OK;
    }
    event->parcel = parcel;
    push(run, lane);
    if (parcel->bytes) /* memory that others may wait for */
        wake_writer(run);
    return TDBG_OK;
}

static void tell_tensor(tdbg_run *run, const char *name, const struct tdbg_tensor *tensor, enum handing how)
{
    struct tdbg_error error;
    struct td_lane *lane = lane_of(run);
    char text[512];
    if (!lane || record_tensor(run, lane, name, tensor, how, &error) == TDBG_OK)
        return;
    snprintf(text, sizeof text, "%.100s: %s", name ? name : "(no name)", error.message);
    td_run_note(run, "trouble", text);
}

void(tdbg_tensor)(tdbg_run *run, const char *name, const struct tdbg_tensor *tensor)
{
    if (run)
        tell_tensor(run, name, tensor, ALONE);
}

static void finish_scope(tdbg_run *run, const struct tdbg_output *output, const void *data, bool again)
{
    struct td_lane *lane = lane_of(run);
    if (lane && !again)
        lane->last.data = NULL; /* until this one is measured, which no rule may ask for */
    if (output && output->name) {
        struct tdbg_tensor tensor = output->tensor;
        tensor.data = data;
        tell_tensor(run, output->name, &tensor, again ? OUTPUT_AGAIN : OUTPUT);
    }
    if (output && output->flops != 0)
        add_cost(run, output->flops, 0, 0);
    end_scope(run);
}

void(tdbg_output)(tdbg_run *run, const struct tdbg_output *output, const void *data, bool again)
{
    if (run)
        finish_scope(run, output, data, again);
}

/* --- numbers, memory, steps ----------------------------------------------------------------------------- */

void(tdbg_scalar)(tdbg_run *run, const char *name, int64_t step, double value)
{
    struct td_lane *lane = run ? lane_of(run) : NULL;
    struct td_event *event =
        lane ? event_slot(run, lane, TD_EVENT_SCALAR, name_of(run, lane, name, "tdbg_scalar: no name"))
             : NULL;
    if (!event)
        return;
    event->scalar.step = step;
    event->scalar.value = value;
    push(run, lane);
}

static void record_block(tdbg_run *run, const void *ptr, uint64_t bytes)
{
    struct td_lane *lane = ptr ? lane_of(run) : NULL;
    if (!lane)
        return;
    struct td_node *scope = scope_of(lane);
    struct td_event *event = event_slot(run, lane, TD_EVENT_BLOCK, scope ? scope : &lane->scopes);
    if (!event)
        return;
    event->block.address = (uint64_t)(uintptr_t)ptr;
    event->block.bytes = bytes;
    push(run, lane);
}

void(tdbg_alloc)(tdbg_run *run, const void *ptr, uint64_t bytes)
{
    if (run && bytes)
        record_block(run, ptr, bytes);
}

void(tdbg_free)(tdbg_run *run, const void *ptr, uint64_t bytes)
{
    (void)bytes; /* known from the allocation */
    if (run)
        record_block(run, ptr, 0);
}

void(tdbg_snapshot)(tdbg_run *run, const char *name)
{
    struct td_lane *lane = run ? lane_of(run) : NULL;
    if (lane && event_slot(run, lane, TD_EVENT_SNAPSHOT, name_of(run, lane, name, "tdbg_snapshot: no name")))
        push(run, lane);
}

static void begin_step(tdbg_run *run, int64_t number)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    if (!lock_run(run))
        return;
    if (run->begun_count == run->begun_capacity) {
        size_t capacity = run->begun_capacity ? 2 * run->begun_capacity : 16;
        struct td_begun *larger = realloc(run->begun, capacity * sizeof *larger);
        if (!larger) { /* the step before goes on */
            pthread_mutex_unlock(&run->lock);
            return;
        }
        run->begun = larger;
        run->begun_capacity = capacity;
    }
    run->begun[run->begun_count++] =
        (struct td_begun){number, td_recorder_now(run), (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec};
    atomic_store(&run->number, number);
    atomic_fetch_add(&run->ordinal, 1);
    pthread_cond_signal(&run->wake);
    pthread_mutex_unlock(&run->lock);
}

void(tdbg_step)(tdbg_run *run, int64_t n)
{
    if (run)
        begin_step(run, n);
}

int64_t tdbg_run_saved(const tdbg_run *run)
{
    return run ? atomic_load(&run->saved) : -1;
}

tdbg_status tdbg_run_trouble(const tdbg_run *run, struct tdbg_error *error)
{
    if (!run || !atomic_load(&run->dead))
        return TDBG_OK;
    if (error)
        *error = run->trouble_error;
    return run->trouble;
}

/* --- for those who watch -------------------------------------------------------------------------------- */

void td_run_observe(tdbg_run *run, const struct td_observer *observer)
{
    atomic_store_explicit(&run->observer, observer, memory_order_release);
}

tdbg_status td_run_set_capture(tdbg_run *run, const char *rules, struct tdbg_error *error)
{
    struct td_capture *made;
    if (!lock_run(run))
        return td_fail(error, TDBG_MISUSE, "a forked child records nothing");
    tdbg_status status = td_capture_parse(&made, rules, atomic_load(&run->capture), error);
    if (status == TDBG_OK)
        atomic_store(&run->capture, made);
    pthread_mutex_unlock(&run->lock);
    if (status == TDBG_OK)
        td_run_note(run, "capture", rules);
    return status;
}

void td_run_note(tdbg_run *run, const char *kind, const char *text)
{
    size_t size = strlen(text) + 1;
    struct td_pending_note *note = malloc(sizeof *note + size);
    if (!note)
        return;
    note->time_ns = td_recorder_now(run);
    note->kind = kind;
    note->next = NULL;
    memcpy(note->text, text, size);
    if (!lock_run(run)) {
        free(note);
        return;
    }
    struct td_pending_note **end = &run->notes;
    while (*end)
        end = &(*end)->next;
    if (run->note_count < MOST_NOTES) {
        run->note_count++;
        *end = note;
        note = NULL;
    }
    pthread_mutex_unlock(&run->lock);
    free(note);
}
