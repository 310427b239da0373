/* memory_trace.c: see memory_trace.h. */
#include "analyse/memory_trace.h"

#include <stdlib.h>

/* --- Records -------------------------------------------------------------------------------------------- */

/* A larger dict is something else; looking for keys in it again and again could take forever. */
enum { LARGEST_RECORD = 64 };

bool td_trace_is_list(const struct td_pickle_value *value)
{
    return value && (value->kind == TD_PICKLE_LIST || value->kind == TD_PICKLE_TUPLE);
}

bool td_trace_is_record(const struct td_pickle_value *value)
{
    return value->kind == TD_PICKLE_DICT && value->count <= 2 * LARGEST_RECORD;
}

const struct td_pickle_value *td_trace_list(const struct td_pickle_value *record, const char *key)
{
    const struct td_pickle_value *value = td_trace_is_record(record) ? td_pickle_get(record, key) : NULL;
    return td_trace_is_list(value) ? value : NULL;
}

uint64_t td_trace_number(const struct td_pickle_value *record, const char *key, uint64_t otherwise)
{
    const struct td_pickle_value *value = td_pickle_get(record, key);
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

bool td_trace_says(const struct td_pickle_value *record, const char *key, const char *text)
{
    const struct td_pickle_value *value = td_pickle_get(record, key);
    return value && td_pickle_is(value, TD_PICKLE_STR, text);
}

const struct td_pickle_value *td_trace_frames(const struct td_pickle_value *record)
{
    const struct td_pickle_value *frames = td_trace_list(record, "frames");
    const struct td_pickle_value *history = frames ? NULL : td_trace_list(record, "history");
    if (history && history->count)
        frames = td_trace_list(history->items[history->count - 1], "frames");
    return frames;
}

/* --- Traces --------------------------------------------------------------------------------------------- */

tdbg_status td_traces_init(struct td_traces *t, struct td_arena *texts, struct tdbg_error *error)
{
    *t = (struct td_traces){.error = error};
    return td_frames_init(&t->frames, texts, error);
}

void td_traces_release(struct td_traces *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->traces[i].events);
    free(t->traces);
    td_frames_release(&t->frames);
    *t = (struct td_traces){0};
}

const struct td_trace *td_traces_of(const struct td_traces *t, const struct td_pickle_value *list)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->traces[i].list == list)
            return &t->traces[i];
    return NULL;
}

/* The trace of a list, a new one if need be; NULL when there are too many, or no memory. */
static struct td_trace *trace_of(struct td_traces *t, const struct td_pickle_value *list)
{
    if (t->count && t->traces[t->last].list == list)
        return &t->traces[t->last];
    for (size_t i = 0; i < t->count; i++)
        if (t->traces[i].list == list) {
            t->last = i;
            return &t->traces[i];
        }
    if (t->count == TD_TRACE_DEVICES)
        return NULL;
    struct td_trace *larger = realloc(t->traces, (t->count + 1) * sizeof *larger);
    if (!larger) {
        t->status = td_fail_nomem(t->error);
        return NULL;
    }
    t->traces = larger;
    t->last = t->count++;
    t->traces[t->last] = (struct td_trace){.list = list};
    return &t->traces[t->last];
}

static struct td_trace_event *add_event(struct td_traces *t, struct td_trace *trace)
{
    if (trace->count == trace->capacity) {
        size_t capacity = trace->capacity ? trace->capacity + trace->capacity / 2 : 64;
        struct td_trace_event *larger = realloc(trace->events, capacity * sizeof *larger);
        if (!larger) {
            t->status = td_fail_nomem(t->error);
            return NULL;
        }
        trace->events = larger;
        trace->capacity = capacity;
    }
    return &trace->events[trace->count++];
}

static enum td_trace_action action_of(const struct td_pickle_value *name)
{
    static const struct {
        const char *name;
        enum td_trace_action action;
    } actions[] = {
        {"alloc", TD_TRACE_ALLOC},
        {"free_completed", TD_TRACE_FREE},
        {"free", TD_TRACE_FREE},
        {"segment_alloc", TD_TRACE_GROW},
        {"segment_map", TD_TRACE_GROW},
        {"segment_free", TD_TRACE_SHRINK},
        {"segment_unmap", TD_TRACE_SHRINK},
        {"snapshot", TD_TRACE_SNAPSHOT},
        {"oom", TD_TRACE_OOM},
    };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (td_pickle_is(name, TD_PICKLE_STR, actions[i].name))
            return actions[i].action;
    return TD_TRACE_OTHER;
}

bool td_traces_take(void *context, const struct td_pickle_value *list, const struct td_pickle_value *dict)
{
    struct td_traces *t = context;
    const struct td_pickle_value *name = td_trace_is_record(dict) ? td_pickle_get(dict, "action") : NULL;
    struct td_trace *trace = name && t->status == TDBG_OK ? trace_of(t, list) : NULL;
    if (!trace)
        return false;
    enum td_trace_action action = action_of(name);
    if (action == TD_TRACE_OTHER)
        return true; /* "free_requested" among them: the memory is still in use */
    uint32_t owner = 0;
    if (action == TD_TRACE_ALLOC)
        t->status = td_frames_owner(&t->frames, td_trace_frames(dict), &owner, t->error);
    struct td_trace_event *event = t->status == TDBG_OK ? add_event(t, trace) : NULL;
    if (!event)
        return false;
    *event = (struct td_trace_event){
        .address = td_trace_number(dict, action == TD_TRACE_OOM ? "device_free" : "addr", 0),
        .bytes = td_trace_number(dict, "size", 0),
        .time_us = td_trace_number(dict, "time_us", TD_TRACE_NO_TIME),
        .owner = owner,
        .action = action,
    };
    return true;
}
