/* memory_trace.h: the events of a snapshot's traces, taken out of the pickle while it is read.
 *
 * And how records of a snapshot are looked at, here and in memory_snapshot.c: a record is a small dict, and
 * what is missing in it or of another kind than expected is absent.
 */
#ifndef TD_ANALYSE_MEMORY_TRACE_H
#define TD_ANALYSE_MEMORY_TRACE_H

#include "analyse/memory_frames.h"

enum { TD_TRACE_DEVICES = 1024 };

enum td_trace_action {
    TD_TRACE_OTHER,
    TD_TRACE_ALLOC,
    TD_TRACE_FREE,
    TD_TRACE_GROW,   /* memory taken from the device */
    TD_TRACE_SHRINK, /* and given back to it */
    TD_TRACE_OOM,    /* address: bytes that were free on the device */
    TD_TRACE_SNAPSHOT
};

#define TD_TRACE_NO_TIME UINT64_MAX

struct td_trace_event {
    uint64_t address, bytes, time_us;
    uint32_t owner;
    uint32_t action; /* enum td_trace_action */
};

struct td_trace {
    const struct td_pickle_value *list; /* that the events were in */
    struct td_trace_event *events;
    size_t count, capacity;
};

struct td_traces {
    struct td_frames frames;
    struct td_trace *traces;
    size_t count, last; /* last: the one that got an event last */
    tdbg_status status; /* the first thing that went wrong while taking */
    struct tdbg_error *error;
};

/* Names of owners go to the arena. */
TD_CHECK tdbg_status td_traces_init(struct td_traces *t, struct td_arena *texts, struct tdbg_error *error);
void td_traces_release(struct td_traces *t);

/* For struct td_pickle_taker; the context is the traces. */
bool td_traces_take(void *context, const struct td_pickle_value *list, const struct td_pickle_value *dict);

/* NULL when nothing was taken from the list. */
const struct td_trace *td_traces_of(const struct td_traces *t, const struct td_pickle_value *list);

bool td_trace_is_list(const struct td_pickle_value *value);
bool td_trace_is_record(const struct td_pickle_value *value);
const struct td_pickle_value *td_trace_list(const struct td_pickle_value *record, const char *key);

/* A whole number that is not negative, or `otherwise`. */
uint64_t td_trace_number(const struct td_pickle_value *record, const char *key, uint64_t otherwise);
bool td_trace_says(const struct td_pickle_value *record, const char *key, const char *text);

/* The frames of a block or an event: its own, or those of the last allocation in its history. */
const struct td_pickle_value *td_trace_frames(const struct td_pickle_value *record);

#endif
