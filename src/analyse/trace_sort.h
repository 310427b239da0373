/* trace_sort.h: any number of spans, put in the order in which they nest, in bounded memory.
 *
 * Traces are written as spans end, or by kind, or in no order. Spans gather in a buffer; a full buffer is
 * sorted and written to a file without a name. At the end the sorted runs are merged as they are read:
 *
 *     add, add, add … -> buffer (16 MiB) -> sort -> run 0 | run 1 | run 2 … (spill)
 *                                                      \------ merge ------/ -> next, next, next …
 *
 * Order: by thread, then by begin, then the longer first: a span comes right after those that hold it.
 */
#ifndef TD_ANALYSE_TRACE_SORT_H
#define TD_ANALYSE_TRACE_SORT_H

#include "io/spill.h"

struct td_trace_span {
    int64_t begin, end;
    uint32_t thread, name;
    float flops;
    uint32_t order; /* as they came: ends ties */
};

struct td_trace_run {
    const struct td_trace_span *at, *end;
};

struct td_trace_sort {
    struct td_trace_span *buffer;
    size_t count, room; /* of the buffer */
    uint64_t total;
    struct td_budget budget;
    struct td_spill spill;
    struct td_trace_run *runs; /* a heap by their first span, once they are merged */
    size_t run_count, run_room;
};

void td_trace_sort_init(struct td_trace_sort *s);
void td_trace_sort_release(struct td_trace_sort *s);

TD_CHECK tdbg_status td_trace_sort_add(struct td_trace_sort *s, const struct td_trace_span *span,
                                       struct tdbg_error *error);

/* No more are added. */
TD_CHECK tdbg_status td_trace_sort_merge(struct td_trace_sort *s, struct tdbg_error *error);

/* The next in order; NULL at the end. */
const struct td_trace_span *td_trace_sort_next(struct td_trace_sort *s);

#endif
