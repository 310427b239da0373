/* desk_entry.c: entries of the registry: made, found, looked after. See desk_core.h. */
#include "serve/desk_core.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *td_phase_name(enum td_phase phase)
{
    static const char *const names[] = {"queued", "running", "done", "failed", "cancelled"};
    return names[phase];
}

/* --- made and freed ------------------------------------------------------------------------------------- */

/* False for no memory. NULL stays NULL. */
static bool keep(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static bool keep_part(struct td_part *out, const struct td_source_row *row)
{
    if (row->stamp)
        strncpy(out->stamp, row->stamp, TD_STAMP_SIZE - 1);
    return keep(&out->name, row->name) && keep(&out->path, row->path) && keep(&out->upload, row->upload);
}

static char *member_text(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

/* {"summary": …, "first": …, "generation": …}, as desk_work.c writes it. */
static void keep_summary(struct td_entry *e, const char *text)
{
    json_t *both = text ? json_loads(text, 0, NULL) : NULL;
    e->summary = member_text(both, "summary");
    e->first = member_text(both, "first");
    e->generation = (uint64_t)json_integer_value(json_object_get(both, "generation"));
    json_decref(both);
}

static enum td_phase phase_of(const char *name)
{
    enum td_phase phase = TD_PHASE_QUEUED;
    while (phase < TD_PHASE_CANCELLED && strcmp(td_phase_name(phase), name) != 0)
        phase++;
    return phase;
}

struct td_entry *td_entry_make(const struct td_comparison_row *row)
{
    struct td_entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    strncpy(e->id, row->id, TD_ID_LENGTH);
    e->created = row->created;
    e->phase = phase_of(row->status);
    e->failure = TDBG_UNSUPPORTED;
    e->revision = 1;
    keep_summary(e, row->summary);
    if (keep(&e->title, row->title) && keep(&e->session, row->session) && keep(&e->settings, row->settings) &&
        keep(&e->error, row->error) && keep_part(&e->part[0], &row->a) && keep_part(&e->part[1], &row->b))
        return e;
    td_entry_free(e);
    return NULL;
}

void td_entry_free(struct td_entry *e)
{
    char *texts[] = {e->title, e->session, e->settings, e->error, e->summary, e->first};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    for (int i = 0; i < 2; i++) {
        free(e->part[i].name);
        free(e->part[i].path);
        free(e->part[i].upload);
    }
    free(e);
}

static struct td_source_row part_row(const struct td_part *p)
{
    return (struct td_source_row){p->name, p->path, p->upload, p->path ? p->stamp : NULL};
}

struct td_comparison_row td_entry_row(const struct td_entry *e, enum td_phase phase)
{
    return (struct td_comparison_row){.id = e->id,
                                      .title = e->title,
                                      .session = e->session,
                                      .status = td_phase_name(phase),
                                      .settings = e->settings,
                                      .a = part_row(&e->part[0]),
                                      .b = part_row(&e->part[1]),
                                      .created = e->created};
}

/* --- found ---------------------------------------------------------------------------------------------- */

static unsigned bucket_of(const char *text)
{
    unsigned hash = 2166136261;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619;
    return (hash ^ hash >> 16) % TD_BUCKETS;
}

void td_entry_link(struct td_desk *desk, struct td_entry *e)
{
    struct td_entry **by_id = &desk->by_id[bucket_of(e->id)];
    struct td_entry **by_session = &desk->by_session[bucket_of(e->session)];
    e->next_by_id = *by_id;
    e->next_by_session = *by_session;
    *by_id = *by_session = e;
    e->older = desk->newest;
    *(desk->newest ? &desk->newest->newer : &desk->oldest) = e;
    desk->newest = e;
}

void td_entry_unlink(struct td_desk *desk, struct td_entry *e)
{
    struct td_entry **at = &desk->by_id[bucket_of(e->id)];
    while (*at != e)
        at = &(*at)->next_by_id;
    *at = e->next_by_id;
    at = &desk->by_session[bucket_of(e->session)];
    while (*at != e)
        at = &(*at)->next_by_session;
    *at = e->next_by_session;
    *(e->newer ? &e->newer->older : &desk->newest) = e->older;
    *(e->older ? &e->older->newer : &desk->oldest) = e->newer;
}

struct td_entry *td_entry_find(const struct td_desk *desk, const char *id)
{
    struct td_entry *e = desk->by_id[bucket_of(id)];
    while (e && strcmp(e->id, id) != 0)
        e = e->next_by_id;
    return e;
}

struct td_entry *td_entry_latest(const struct td_desk *desk, const char *session)
{
    struct td_entry *e = desk->by_session[bucket_of(session)];
    while (e && strcmp(e->session, session) != 0)
        e = e->next_by_session;
    return e ? e : desk->newest;
}

/* --- busy ----------------------------------------------------------------------------------------------- */

tdbg_status td_entry_await(struct td_desk *desk, const char *id, struct td_entry **out,
                           struct tdbg_error *error)
{
    struct td_entry *e;
    while ((e = td_entry_find(desk, id)) && e->busy)
        pthread_cond_wait(&desk->changed, &desk->lock);
    if (!e)
        return td_fail(error, TDBG_NOTFOUND, "no comparison '%.32s'", id);
    *out = e;
    return TDBG_OK;
}

void td_entry_leave(struct td_desk *desk, struct td_entry *e)
{
    e->busy = true;
    pthread_mutex_unlock(&desk->lock);
}

void td_entry_enter(struct td_desk *desk, struct td_entry *e)
{
    pthread_mutex_lock(&desk->lock);
    e->busy = false;
    pthread_cond_broadcast(&desk->changed);
}

/* --- the inputs on disk --------------------------------------------------------------------------------- */

/* Looking takes one part in so many of the time, however large a folder is. */
enum { SPARING = 100 };

/* Nanoseconds beyond which looking is not for a thread that others wait for. */
enum { LARGE = 1000000 };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void td_entry_look(struct td_desk *desk, struct td_entry *e)
{
    char stamp[2][TD_STAMP_SIZE];
    int64_t start = now();
    if (e->phase != TD_PHASE_DONE || e->busy || start < e->next_look)
        return;
    td_entry_leave(desk, e);
    for (int i = 0; i < 2 && e->part[i].path; i++)
        td_stamp_take(stamp[i], e->part[i].path);
    int64_t end = now();
    td_entry_enter(desk, e);
    for (int i = 0; i < 2 && e->part[i].path; i++) {
        struct td_part *p = &e->part[i];
        p->missing = !*stamp[i];
        p->changed = *p->stamp && *stamp[i] && strcmp(p->stamp, stamp[i]) != 0;
    }
    e->look_cost = end - start;
    e->next_look = end + SPARING * e->look_cost;
}

bool td_entry_is_large(const struct td_entry *e)
{
    return e->look_cost > LARGE && now() >= e->next_look;
}
