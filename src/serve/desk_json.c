/* desk_json.c: comparisons as JSON: C of docs/api.md, the list, what is new, and results. */
#include "serve/desk_core.h"

#include "base/json.h"

static void put_text(struct td_json *j, const char *key, const char *json)
{
    td_json_key(j, key);
    json ? td_json_text(j, json) : td_json_null(j);
}

static void put_part(struct td_json *j, const char *key, const struct td_part *p)
{
    td_json_key(j, key);
    if (!p->path) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_field_string(j, "name", p->name);
    td_json_field_string(j, "path", p->path);
    td_json_field_string(j, "upload", p->upload);
    td_json_field_bool(j, "changed", p->changed);
    td_json_field_bool(j, "missing", p->missing);
    td_json_end_object(j);
}

/* Work is announced piece by piece, and a pair that needs a second look counts twice: what is done may run
 * ahead of the total, which nobody wants to see. */
static void put_progress(struct td_json *j, const struct td_entry *e)
{
    uint64_t done = atomic_load_explicit(&e->job.done, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&e->job.total, memory_order_relaxed);
    td_json_key(j, "progress");
    td_json_begin_object(j);
    td_json_field_uint(j, "done", done < total ? done : total);
    td_json_field_uint(j, "total", total);
    td_json_end_object(j);
}

static void put_entry(struct td_json *j, const struct td_entry *e)
{
    td_json_begin_object(j);
    td_json_field_string(j, "id", e->id);
    td_json_field_string(j, "title", e->title);
    td_json_field_string(j, "status", td_phase_name(e->phase));
    td_json_field_string(j, "error", e->phase == TD_PHASE_FAILED ? e->error : NULL);
    td_json_field_int(j, "created", e->created);
    td_json_field_string(j, "kind", e->part[1].path ? "diff" : "explore");
    put_part(j, "a", &e->part[0]);
    put_part(j, "b", &e->part[1]);
    put_text(j, "settings", e->settings);
    put_progress(j, e);
    put_text(j, "summary", e->summary);
    put_text(j, "first", e->first);
    td_json_field_uint(j, "generation", e->generation);
    td_json_end_object(j);
}

static tdbg_status finish(struct td_json *j, struct tdbg_error *error)
{
    return td_json_finish(j) ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status no_such(const char *id, struct tdbg_error *error)
{
    return td_fail(error, TDBG_NOTFOUND, "no comparison '%.32s'", id);
}

tdbg_status td_desk_describe(struct td_desk *desk, const char *id, struct td_buffer *out,
                             struct tdbg_error *error)
{
    struct td_json j;
    td_json_to_buffer(&j, out);
    pthread_mutex_lock(&desk->lock);
    struct td_entry *e = td_entry_find(desk, id);
    if (e) {
        td_entry_look(desk, e);
        put_entry(&j, e);
    }
    pthread_mutex_unlock(&desk->lock);
    return e ? finish(&j, error) : no_such(id, error);
}

tdbg_status td_desk_list(struct td_desk *desk, struct td_buffer *out, struct tdbg_error *error)
{
    struct td_json j;
    td_json_to_buffer(&j, out);
    td_json_begin_object(&j);
    td_json_key(&j, "comparisons");
    td_json_begin_array(&j);
    pthread_mutex_lock(&desk->lock);
    for (struct td_entry *e = desk->newest; e; e = e->older) {
        td_entry_look(desk, e); /* which keeps e where it is while the lock is free */
        put_entry(&j, e);
    }
    pthread_mutex_unlock(&desk->lock);
    td_json_end_array(&j);
    td_json_end_object(&j);
    return finish(&j, error);
}

tdbg_status td_desk_news(struct td_desk *desk, const char *id, struct td_news *seen, struct td_buffer *out,
                         bool *more, struct tdbg_error *error)
{
    struct td_json j;
    td_json_to_buffer(&j, out);
    pthread_mutex_lock(&desk->lock);
    const struct td_entry *e = td_entry_find(desk, id);
    if (e) {
        struct td_news now = {e->revision, atomic_load_explicit(&e->job.done, memory_order_relaxed)};
        if (now.revision != seen->revision || now.done != seen->done)
            put_entry(&j, e);
        *seen = now;
        *more = !td_phase_rests(e->phase) && !desk->stopping;
    }
    pthread_mutex_unlock(&desk->lock);
    return e ? finish(&j, error) : no_such(id, error);
}

tdbg_status td_desk_result(struct td_desk *desk, const char *id, struct td_buffer *out,
                           struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    pthread_mutex_lock(&desk->lock);
    const struct td_entry *e = td_entry_find(desk, id);
    if (!e)
        status = no_such(id, error);
    else if (e->phase == TD_PHASE_FAILED)
        status = td_fail(error, TDBG_MISMATCH, "the comparison failed: %s", e->error ? e->error : "");
    else if (e->phase != TD_PHASE_DONE)
        status = td_fail(error, TDBG_MISMATCH, "the comparison is %s", td_phase_name(e->phase));
    pthread_mutex_unlock(&desk->lock);
    return status == TDBG_OK ? td_store_result(desk->store, id, out, error) : status;
}
