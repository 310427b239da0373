/* trace.c: what the events of a trace mean.
 *
 * Two passes over spans, one over the text: events become spans of 32 bytes, sorted per thread
 * (trace_sort.h), and then fall into place on a stack: a span belongs into the one that is open when it
 * begins.
 *
 *     X       a span                       B … E   a span in two events, nested within a thread
 *     M       names of threads             i       "[memory]": torch's allocator
 *
 * Clocks of traces are coarse: a child may end a microsecond after its parent, and streams of a GPU overlap.
 * A span that lies mostly within the open one is cut to it; else it begins where the open one ends. So no
 * moment of a thread counts twice, and self times add up.
 *
 * Steps: torch marks them with ProfilerStep#N, ONNX Runtime runs the model once a step (model_run), and the
 * traces tdbg writes have events of the category TD_TRACE_STEP beside the spans.
 */
#include "analyse/trace.h"

#include "analyse/grow.h"
#include "analyse/trace_flops.h"
#include "analyse/trace_scan.h"
#include "analyse/trace_sort.h"
#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sum of two times still has a difference to any other. */
#define TIME_MOST (INT64_C(1) << 62)

enum { MARKS = 1 << 18, OPEN_MOST = 1 << 18, NEST_MOST = 4096, NAME_ROOM = 512 };

struct begun {
    int64_t time_ns;
    uint32_t name, below; /* the one that was open before, TD_PROFILE_NONE: none */
};

struct thread {
    uint32_t key; /* name number of "PID\nTID" */
    uint32_t open;
    bool device, named;
    char name[64];
};

struct mark {
    int64_t begin, end, number;
};

struct trace {
    struct td_profile *profile;
    struct td_trace_facts *facts;
    struct td_trace_sort sort;
    struct thread *threads;
    size_t thread_count, thread_room;
    uint32_t *thread_of; /* by the number of its key */
    size_t thread_of_room;
    struct mark *marks;
    size_t mark_count, mark_room;
    struct begun *begun; /* of all threads, linked by `below` */
    size_t begun_count, begun_room;
    uint32_t begun_free;
    uint32_t memory; /* the name of allocations */
};

/* --- Threads -------------------------------------------------------------------------------------------- */

/* The first 60 bytes of a process or thread number, which are all there is. */
static size_t put_number(char *out, struct td_slice number)
{
    size_t size = number.size > 60 ? 60 : number.size;
    if (size)
        memcpy(out, number.data, size);
    return size;
}

static void name_by_number(struct thread *thread, const char *kind, struct td_slice number)
{
    snprintf(thread->name, sizeof thread->name, "%s %.*s", kind, (int)(number.size > 40 ? 40 : number.size),
             number.data ? number.data : "");
}

static bool cover_key(struct trace *t, uint32_t key)
{
    size_t before = t->thread_of_room;
    while (key >= t->thread_of_room)
        if (!td_grow((void **)&t->thread_of, &t->thread_of_room, t->thread_of_room, sizeof *t->thread_of))
            return false;
    for (size_t i = before; i < t->thread_of_room; i++)
        t->thread_of[i] = TD_PROFILE_NONE;
    return true;
}

static tdbg_status find_thread(struct trace *t, const struct td_trace_event *e, uint32_t *out,
                               struct tdbg_error *error)
{
    char key[128];
    uint32_t id;
    size_t length = put_number(key, e->pid);
    key[length++] = '\n';
    length += put_number(key + length, e->tid);
    TD_TRY(td_profile_name(t->profile, key, length, &id, error));
    if (!cover_key(t, id))
        return td_fail_nomem(error);
    *out = t->thread_of[id];
    if (*out != TD_PROFILE_NONE)
        return TDBG_OK;
    if (t->thread_count == TD_PROFILE_THREADS)
        return td_fail(error, TDBG_LIMIT, "more than %d threads", TD_PROFILE_THREADS);
    if (!td_grow((void **)&t->threads, &t->thread_room, t->thread_count, sizeof *t->threads))
        return td_fail_nomem(error);
    t->threads[t->thread_count] = (struct thread){.key = id, .open = TD_PROFILE_NONE};
    name_by_number(&t->threads[t->thread_count], "thread", e->tid);
    t->thread_of[id] = (uint32_t)t->thread_count++;
    *out = t->thread_of[id];
    return TDBG_OK;
}

static tdbg_status name_thread(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    struct td_slice name = td_trace_field(e->args, "name");
    uint32_t thread;
    if (!td_slice_is(e->name, "thread_name") || !name.data || !name.size)
        return TDBG_OK;
    TD_TRY(find_thread(t, e, &thread, error));
    td_trace_unescape(name, t->threads[thread].name, sizeof t->threads[thread].name);
    t->threads[thread].named = true;
    return TDBG_OK;
}

static bool on_device(struct td_slice category)
{
    static const char *const kinds[] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation",
                                        "Kernel", "Memcpy",     "Memset"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (td_slice_is(category, kinds[i]))
            return true;
    return false;
}

static void make_device(struct thread *thread, const struct td_trace_event *e)
{
    if (!thread->device && !thread->named)
        name_by_number(thread, "stream", e->tid);
    thread->device = true;
}

/* --- Events to spans ------------------------------------------------------------------------------------ */

/* ONNX Runtime calls the time a node took NODE_kernel_time; torch numbers its steps. */
static struct td_slice plain_name(const struct td_trace_event *e)
{
    static const char suffix[] = "_kernel_time", step[] = "ProfilerStep#";
    struct td_slice name = e->name;
    size_t extra = sizeof suffix - 1;
    if (td_slice_is(e->category, "Node") && name.size > extra &&
        memcmp(name.data + name.size - extra, suffix, extra) == 0)
        name.size -= extra;
    if (td_slice_begins(name, step))
        name.size = sizeof step - 2;
    return name;
}

static tdbg_status name_of(struct trace *t, const struct td_trace_event *e, uint32_t *out,
                           struct tdbg_error *error)
{
    struct td_slice name = plain_name(e);
    char text[NAME_ROOM];
    bool plain = true;
    for (size_t i = 0; i < name.size && plain; i++)
        plain = name.data[i] >= ' ' && name.data[i] < 0x7f && name.data[i] != '\\';
    if (plain)
        return td_profile_name(t->profile, name.data, name.size, out, error);
    return td_profile_name(t->profile, text, td_trace_unescape(name, text, sizeof text), out, error);
}

static tdbg_status mark_step(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    bool torch = td_slice_begins(e->name, "ProfilerStep#");
    bool onnx = td_slice_is(e->category, "Session") && td_slice_is(e->name, "model_run");
    bool ours = td_slice_is(e->category, TD_TRACE_STEP) && td_slice_begins(e->name, "step ");
    size_t prefix = torch ? strlen("ProfilerStep#") : ours ? strlen("step ") : 0;
    double number = (double)t->mark_count;
    if ((!torch && !onnx && !ours) || t->mark_count == MARKS)
        return TDBG_OK;
    if (prefix &&
        (!td_slice_number((struct td_slice){e->name.data + prefix, e->name.size - prefix}, &number) ||
         fabs(number) > 1e15))
        return TDBG_OK;
    if (!td_grow((void **)&t->marks, &t->mark_room, t->mark_count, sizeof *t->marks))
        return td_fail_nomem(error);
    t->marks[t->mark_count++] = (struct mark){e->time_ns, e->time_ns + e->duration_ns, (int64_t)number};
    return TDBG_OK;
}

static tdbg_status add_span(struct trace *t, const struct td_trace_span *span, struct tdbg_error *error)
{
    t->facts->spans++;
    return td_trace_sort_add(&t->sort, span, error);
}

static tdbg_status take_whole(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    struct td_trace_span span = {.begin = e->time_ns};
    if (td_slice_is(e->category, "Trace"))
        return TDBG_OK; /* Kineto's own frame around everything */
    if (!e->timed || !e->name.data || e->duration_ns < 0 ||
        !td_add_i64(e->time_ns, e->duration_ns, &span.end) || span.end > TIME_MOST) {
        t->facts->skipped++;
        return TDBG_OK;
    }
    if (td_slice_is(e->category, TD_TRACE_STEP))
        return mark_step(t, e, error);
    TD_TRY(find_thread(t, e, &span.thread, error));
    TD_TRY(name_of(t, e, &span.name, error));
    if (on_device(e->category))
        make_device(&t->threads[span.thread], e);
    else
        TD_TRY(mark_step(t, e, error));
    span.flops = (float)td_trace_flops(e);
    return add_span(t, &span, error);
}

static tdbg_status take_begin(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    uint32_t thread, place = t->begun_free;
    struct begun begun = {.time_ns = e->time_ns};
    if (!e->timed || !e->name.data || (place == TD_PROFILE_NONE && t->begun_count == OPEN_MOST)) {
        t->facts->skipped++;
        return TDBG_OK;
    }
    TD_TRY(find_thread(t, e, &thread, error));
    TD_TRY(name_of(t, e, &begun.name, error));
    if (place != TD_PROFILE_NONE) {
        t->begun_free = t->begun[place].below;
    } else {
        if (!td_grow((void **)&t->begun, &t->begun_room, t->begun_count, sizeof *t->begun))
            return td_fail_nomem(error);
        place = (uint32_t)t->begun_count++;
    }
    begun.below = t->threads[thread].open;
    t->begun[place] = begun;
    t->threads[thread].open = place;
    return TDBG_OK;
}

static tdbg_status take_end(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    uint32_t thread;
    TD_TRY(find_thread(t, e, &thread, error));
    uint32_t place = t->threads[thread].open;
    if (place == TD_PROFILE_NONE || !e->timed || e->time_ns < t->begun[place].time_ns) {
        t->facts->skipped++;
        return TDBG_OK;
    }
    struct td_trace_span span = {
        .begin = t->begun[place].time_ns, .end = e->time_ns, .thread = thread, .name = t->begun[place].name};
    t->threads[thread].open = t->begun[place].below;
    t->begun[place].below = t->begun_free;
    t->begun_free = place;
    return add_span(t, &span, error);
}

/* An allocation becomes a span without length, its bytes in the place of the FLOPs. */
static tdbg_status take_memory(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    struct td_trace_span span = {.begin = e->time_ns, .end = e->time_ns, .name = t->memory};
    double bytes, held;
    if (!e->timed || !td_slice_is(e->name, "[memory]"))
        return TDBG_OK;
    if (td_slice_number(td_trace_field(e->args, "Total Allocated"), &held) && held < 1e18 &&
        held > (double)t->profile->peak_bytes)
        t->profile->peak_bytes = (int64_t)held;
    if (!td_slice_number(td_trace_field(e->args, "Bytes"), &bytes) || !(bytes > 0 && bytes < 1e18))
        return TDBG_OK;
    TD_TRY(find_thread(t, e, &span.thread, error));
    span.flops = (float)bytes;
    return td_trace_sort_add(&t->sort, &span, error);
}

static tdbg_status take_event(struct trace *t, const struct td_trace_event *e, struct tdbg_error *error)
{
    switch (e->phase) {
    case 'X':
        return take_whole(t, e, error);
    case 'B':
        return take_begin(t, e, error);
    case 'E':
        return take_end(t, e, error);
    case 'M':
        return name_thread(t, e, error);
    case 'i':
        return take_memory(t, e, error);
    default:
        return TDBG_OK;
    }
}

static tdbg_status read_events(struct trace *t, struct td_trace_text *text, struct tdbg_error *error)
{
    struct td_trace_scan scan;
    struct td_trace_event event;
    bool more;
    TD_TRY(td_trace_scan_begin(&scan, text, error));
    for (;;) {
        TD_TRY(td_trace_scan_next(&scan, &event, &more, error));
        if (!more)
            break;
        TD_TRY(take_event(t, &event, error));
        if ((++t->facts->events & 0xfff) == 0) {
            td_trace_text_told(text, scan.at);
            if (td_job_cancelled(text->job))
                return td_fail(error, TDBG_CANCELLED, "stopped");
        }
    }
    if (td_map_shrunk(text->map.data))
        return td_fail(error, TDBG_IO, "the file became shorter while it was read");
    t->facts->cut = scan.cut;
    t->facts->cut_at = scan.cut_at;
    return TDBG_OK;
}

/* --- Spans to calls ------------------------------------------------------------------------------------- */

static int by_begin(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Steps follow each other: one that begins within another is none. */
static tdbg_status settle_steps(struct trace *t, struct tdbg_error *error)
{
    size_t kept = 0;
    if (t->mark_count)
        qsort(t->marks, t->mark_count, sizeof *t->marks, by_begin);
    for (size_t i = 0; i < t->mark_count; i++)
        if (!kept || t->marks[i].begin >= t->marks[kept - 1].end)
            t->marks[kept++] = t->marks[i];
    t->mark_count = kept;
    TD_TRY(td_profile_set_steps(t->profile, (int64_t)kept, error));
    for (size_t i = 0; i < kept; i++)
        td_profile_step(t->profile, (int64_t)i,
                        &(struct td_profile_step){.number = t->marks[i].number,
                                                  .begin_ns = t->marks[i].begin,
                                                  .end_ns = t->marks[i].end,
                                                  .cpu_ns = -1,
                                                  .rss = -1});
    return TDBG_OK;
}

struct frame {
    int64_t begin, end;
    uint32_t node;
};

struct nest {
    struct frame frames[NEST_MOST];
    size_t depth;
    uint32_t thread, base; /* base: where spans without a parent belong */
    size_t mark;           /* the first step that is not over */
};

static tdbg_status begin_thread(struct trace *t, struct nest *n, uint32_t thread, struct tdbg_error *error)
{
    uint32_t name;
    n->depth = 0;
    n->mark = 0;
    n->thread = thread;
    n->base = TD_PROFILE_ROOT;
    if (!t->threads[thread].device)
        return TDBG_OK;
    TD_TRY(
        td_profile_name(t->profile, t->threads[thread].name, strlen(t->threads[thread].name), &name, error));
    TD_TRY(td_profile_child(t->profile, TD_PROFILE_ROOT, name, &n->base, error));
    if (n->base == TD_PROFILE_NONE)
        n->base = TD_PROFILE_ROOT;
    else
        t->profile->nodes[n->base].device = true;
    return TDBG_OK;
}

/* Leaves the frames that are over, and cuts the span to what is left of it. */
static void fit(struct nest *n, int64_t *begin, int64_t *end)
{
    while (n->depth > 0) {
        const struct frame *top = &n->frames[n->depth - 1];
        if (top->end > *begin) {
            if (*end <= top->end)
                break;
            if (*end - top->end <= top->end - *begin) {
                *end = top->end;
                break;
            }
            *begin = top->end;
        }
        n->depth--;
    }
    if (n->depth > 0 && *begin < n->frames[n->depth - 1].begin)
        *begin = n->frames[n->depth - 1].begin;
    *end = *end < *begin ? *begin : *end;
}

static int64_t step_at(const struct trace *t, struct nest *n, int64_t begin)
{
    while (n->mark < t->mark_count && t->marks[n->mark].end <= begin)
        n->mark++;
    return n->mark < t->mark_count && t->marks[n->mark].begin <= begin ? (int64_t)n->mark : -1;
}

static tdbg_status place(struct trace *t, struct nest *n, const struct td_trace_span *span,
                         struct tdbg_error *error)
{
    struct td_profile_call call = {.begin_ns = span->begin, .end_ns = span->end};
    uint32_t node;
    fit(n, &call.begin_ns, &call.end_ns);
    uint32_t above = n->depth > 0 ? n->frames[n->depth - 1].node : n->base;
    if (span->name == t->memory) {
        td_profile_allocated(t->profile, above, (int64_t)span->flops);
        return TDBG_OK;
    }
    TD_TRY(td_profile_child(t->profile, above, span->name, &node, error));
    if (node == TD_PROFILE_NONE || n->depth == NEST_MOST) {
        t->profile->folded++;
        return TDBG_OK;
    }
    call.step = step_at(t, n, call.begin_ns);
    call.flops = (double)span->flops;
    TD_TRY(td_profile_add(t->profile, node, n->thread, n->depth == 0, &call, error));
    n->frames[n->depth++] = (struct frame){call.begin_ns, call.end_ns, node};
    return TDBG_OK;
}

static tdbg_status nest_spans(struct trace *t, struct td_job *job, struct tdbg_error *error)
{
    struct nest *n = malloc(sizeof *n);
    if (!n)
        return td_fail_nomem(error);
    n->thread = TD_PROFILE_NONE;
    tdbg_status status = TDBG_OK;
    const struct td_trace_span *span;
    while (status == TDBG_OK && (span = td_trace_sort_next(&t->sort))) {
        if (span->thread != n->thread)
            status = begin_thread(t, n, span->thread, error);
        if (status == TDBG_OK)
            status = place(t, n, span, error);
        if (status == TDBG_OK && td_job_cancelled(job))
            status = td_fail(error, TDBG_CANCELLED, "stopped");
    }
    free(n);
    return status;
}

static tdbg_status make_profile(struct trace *t, struct td_trace_text *text, struct tdbg_error *error)
{
    td_trace_sort_init(&t->sort);
    TD_TRY(td_profile_name(t->profile, "\n[memory]", 9, &t->memory, error));
    TD_TRY(read_events(t, text, error));
    TD_TRY(settle_steps(t, error));
    for (size_t i = 0; i < t->thread_count; i++)
        TD_TRY(td_profile_add_thread(t->profile, t->threads[i].name, t->threads[i].device, error));
    TD_TRY(td_trace_sort_merge(&t->sort, error));
    return nest_spans(t, text->job, error);
}

tdbg_status td_trace_profile(struct td_profile *profile, struct td_trace_text *text,
                             struct td_trace_facts *facts, struct tdbg_error *error)
{
    *facts = (struct td_trace_facts){0};
    struct trace t = {.profile = profile, .facts = facts, .begun_free = TD_PROFILE_NONE};
    tdbg_status status = make_profile(&t, text, error);
    td_trace_sort_release(&t.sort);
    free(t.threads);
    free(t.thread_of);
    free(t.marks);
    free(t.begun);
    return status;
}
