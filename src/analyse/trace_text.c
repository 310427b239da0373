/* trace_text.c: see trace_text.h. The window of a compressed trace begins with 1 MiB and doubles when a
 * record does not fit. */
#include "analyse/trace_text.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1 << 20, WINDOW_MOST = 16 << 20 };

static tdbg_status begin(struct td_trace_text *t, const uint8_t *data, size_t size, struct tdbg_error *error)
{
    enum td_packing packing = td_packing_of(data, size);
    if (packing == TD_PACKING_NONE) {
        t->data = size ? (const char *)data : "";
        t->size = size;
        t->last = true;
        return TDBG_OK;
    }
    t->data = "";
    t->room = WINDOW;
    t->buffer = malloc(t->room);
    if (!t->buffer)
        return td_fail_nomem(error);
    TD_TRY(td_decoder_open(&t->decoder, packing, data, size, error));
    return td_trace_text_more(t, 0, error);
}

tdbg_status td_trace_text_memory(struct td_trace_text *out, const void *data, size_t size,
                                 struct tdbg_error *error)
{
    struct td_trace_text t = {0};
    tdbg_status status = begin(&t, data, size, error);
    if (status == TDBG_OK)
        *out = t;
    else
        td_trace_text_close(&t);
    return status;
}

tdbg_status td_trace_text_open(struct td_trace_text *out, const char *path, struct td_job *job,
                               struct tdbg_error *error)
{
    struct td_trace_text t = {.job = job};
    TD_TRY(td_map_open(&t.map, path, error));
    tdbg_status status = begin(&t, t.map.data, t.map.size, error);
    if (status == TDBG_OK)
        *out = t;
    else
        td_trace_text_close(&t);
    return status;
}

void td_trace_text_close(struct td_trace_text *t)
{
    td_decoder_close(&t->decoder);
    td_map_close(&t->map);
    free(t->buffer);
    *t = (struct td_trace_text){0};
}

static tdbg_status make_room(struct td_trace_text *t, struct tdbg_error *error)
{
    if (t->size < t->room)
        return TDBG_OK;
    if (t->room == WINDOW_MOST)
        return td_fail_at(error, TDBG_LIMIT, t->offset, "one event of more than %d MiB", WINDOW_MOST >> 20);
    char *bigger = realloc(t->buffer, t->room * 2);
    if (!bigger)
        return td_fail_nomem(error);
    t->buffer = bigger;
    t->room *= 2;
    return TDBG_OK;
}

tdbg_status td_trace_text_more(struct td_trace_text *t, size_t done, struct tdbg_error *error)
{
    if (td_job_cancelled(t->job))
        return td_fail(error, TDBG_CANCELLED, "stopped");
    size_t left = t->size - done, made = 0;
    memmove(t->buffer, t->buffer + done, left);
    t->size = left;
    t->offset += done;
    TD_TRY(make_room(t, error));
    uint64_t before = t->decoder->consumed;
    TD_TRY(t->decoder->read(t->decoder, (uint8_t *)t->buffer + left, t->room - left, &made, error));
    t->data = t->buffer;
    t->size = left + made;
    t->last = t->decoder->ended;
    t->cut = t->decoder->cut;
    td_job_advance(t->job, t->decoder->consumed - before);
    return TDBG_OK;
}

void td_trace_text_told(struct td_trace_text *t, size_t done)
{
    if (!t->decoder && done > t->told) {
        td_job_advance(t->job, done - t->told);
        t->told = done;
    }
}
