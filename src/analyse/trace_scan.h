/* trace_scan.h: the events of a Chrome trace, one by one.
 *
 *     [ {"ph":"X","name":"aten::mm","pid":1,"tid":7,"ts":12.5,"dur":3,"args":{…}}, … ]
 *     {"schemaVersion":1, …, "traceEvents":[ … ], …}
 *
 * The array may lack its end: whoever writes it may have been killed, and the format allows it. An event is
 * borrowed from the window of the text and lives until the next one is asked for. Values nobody asks for are
 * passed over; only their brackets and strings are looked at.
 */
#ifndef TD_ANALYSE_TRACE_SCAN_H
#define TD_ANALYSE_TRACE_SCAN_H

#include "analyse/trace_text.h"

/* The text of a value: a string without its quotes and with its escapes, anything else as it stands. */
struct td_slice {
    const char *data; /* NULL: not there */
    size_t size;
};

struct td_trace_event {
    char phase; /* 0: not there */
    struct td_slice name, category, pid, tid, args;
    int64_t time_ns, duration_ns;
    bool timed;   /* has a time */
    bool unknown; /* a time is there, but not known: null */
};

struct td_trace_scan {
    struct td_trace_text *text; /* borrowed */
    size_t at;                  /* in the window */
    bool ended;
    bool cut; /* the text ends within an event */
    uint64_t cut_at;
};

/* Finds the array of events. */
TD_CHECK tdbg_status td_trace_scan_begin(struct td_trace_scan *scan, struct td_trace_text *text,
                                         struct tdbg_error *error);

/* `*more` false: there is none left. */
TD_CHECK tdbg_status td_trace_scan_next(struct td_trace_scan *scan, struct td_trace_event *event, bool *more,
                                        struct tdbg_error *error);

/* The value of `key` in an object, as `args` holds it; NULL data when it is not there. */
struct td_slice td_trace_field(struct td_slice object, const char *key);

/* A string without its escapes. Returns its length; cut at `room` - 1, ends with a NUL. */
size_t td_trace_unescape(struct td_slice text, char *out, size_t room);

bool td_slice_is(struct td_slice slice, const char *text);
bool td_slice_begins(struct td_slice slice, const char *text);

/* A plain number; false for anything else. */
bool td_slice_number(struct td_slice slice, double *out);

#endif
