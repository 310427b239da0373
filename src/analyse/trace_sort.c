/* trace_sort.c: sorting with a spill. A run that comes in order already costs one look at each span; torch
 * writes long ordered stretches. */
#include "analyse/trace_sort.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_FIRST = 1 << 10, BUFFER = 1 << 19 }; /* spans: 16 MiB at most */

_Static_assert(sizeof(struct td_trace_span) == 32, "half a cache line");

static int by_nesting(const void *left, const void *right)
{
    const struct td_trace_span *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void td_trace_sort_init(struct td_trace_sort *s)
{
    *s = (struct td_trace_sort){0};
    td_budget_init(&s->budget);
    td_spill_init(&s->spill, &s->budget);
}

void td_trace_sort_release(struct td_trace_sort *s)
{
    td_spill_release(&s->spill);
    free(s->buffer);
    free(s->runs);
    *s = (struct td_trace_sort){0};
}

static void sort_buffer(struct td_trace_sort *s)
{
    for (size_t i = 1; i < s->count; i++)
        if (by_nesting(&s->buffer[i - 1], &s->buffer[i]) > 0) {
            qsort(s->buffer, s->count, sizeof *s->buffer, by_nesting);
            return;
        }
}

static tdbg_status add_run(struct td_trace_sort *s, const struct td_trace_span *at, size_t count,
                           struct tdbg_error *error)
{
    if (s->run_count == s->run_room) {
        size_t room = s->run_room ? s->run_room * 2 : 16;
        struct td_trace_run *bigger = realloc(s->runs, room * sizeof *bigger);
        if (!bigger)
            return td_fail_nomem(error);
        s->runs = bigger;
        s->run_room = room;
    }
    s->runs[s->run_count++] = (struct td_trace_run){at, at + count};
    return TDBG_OK;
}

static tdbg_status spill_buffer(struct td_trace_sort *s, struct tdbg_error *error)
{
    void *place;
    size_t bytes = s->count * sizeof *s->buffer;
    sort_buffer(s);
    TD_TRY(td_spill_alloc(&s->spill, bytes, &place, error));
    memcpy(place, s->buffer, bytes);
    TD_TRY(add_run(s, place, s->count, error));
    s->count = 0;
    return TDBG_OK;
}

tdbg_status td_trace_sort_add(struct td_trace_sort *s, const struct td_trace_span *span,
                              struct tdbg_error *error)
{
    if (s->count == BUFFER)
        TD_TRY(spill_buffer(s, error));
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : BUFFER_FIRST;
        struct td_trace_span *bigger = realloc(s->buffer, room * sizeof *bigger);
        if (!bigger)
            return td_fail_nomem(error);
        s->buffer = bigger;
        s->room = room;
    }
    s->buffer[s->count] = *span;
    s->buffer[s->count++].order = (uint32_t)s->total++;
    return TDBG_OK;
}

static bool before(const struct td_trace_run *a, const struct td_trace_run *b)
{
    return by_nesting(a->at, b->at) < 0;
}

static void sift(struct td_trace_sort *s, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < s->run_count; child++)
            if (before(&s->runs[child], &s->runs[least]))
                least = child;
        if (least == at)
            return;
        struct td_trace_run moved = s->runs[at];
        s->runs[at] = s->runs[least];
        s->runs[least] = moved;
        at = least;
    }
}

tdbg_status td_trace_sort_merge(struct td_trace_sort *s, struct tdbg_error *error)
{
    sort_buffer(s);
    if (s->count)
        TD_TRY(add_run(s, s->buffer, s->count, error));
    for (size_t i = s->run_count / 2; i-- > 0;)
        sift(s, i);
    return TDBG_OK;
}

const struct td_trace_span *td_trace_sort_next(struct td_trace_sort *s)
{
    if (!s->run_count)
        return NULL;
    const struct td_trace_span *span = s->runs[0].at++;
    if (s->runs[0].at == s->runs[0].end)
        s->runs[0] = s->runs[--s->run_count];
    sift(s, 0);
    return span;
}
