/* desk_work.c: comparing, on a thread of its own. See desk_core.h.
 *
 * The oldest that is queued comes first. What came out is in the store, document and all, before the entry
 * says that it is done; a comparison that cannot be saved has failed. When the server stops, the one under
 * way stays queued in the store, and begins anew at the next start.
 */
#include "serve/desk_core.h"

#include "base/json.h"
#include "report/diff_json.h"
#include "report/stats_json.h"
#include "serve/settings.h"
#include "serve/uploads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a run leaves behind. */
struct outcome {
    tdbg_status status;
    struct tdbg_error error;
    struct td_opened *opened;
    char stamp[2][TD_STAMP_SIZE];
    struct td_buffer result, summary, first; /* JSON; an empty `first` is none */
    uint64_t generation;
};

static void outcome_init(struct outcome *o)
{
    *o = (struct outcome){.status = TDBG_OK};
    td_buffer_init(&o->result, TD_MAX_METADATA);
    td_buffer_init(&o->summary, TD_MAX_METADATA);
    td_buffer_init(&o->first, TD_MAX_METADATA);
}

static void outcome_release(struct outcome *o)
{
    td_opened_close(o->opened);
    td_buffer_release(&o->result);
    td_buffer_release(&o->summary);
    td_buffer_release(&o->first);
}

/* --- two inputs ----------------------------------------------------------------------------------------- */

static tdbg_status compare(struct td_desk *desk, struct td_entry *e, struct td_opened *out,
                           struct tdbg_error *error)
{
    struct td_settings settings;
    TD_TRY(td_settings_parse(&settings, e->settings, error));
    tdbg_status status = td_diff_run(&out->diff, e->part[0].path, e->part[1].path, &settings.setup,
                                     &(struct td_work){desk->pool, &e->job, NULL}, error);
    td_settings_release(&settings);
    return status;
}

static void put_first(struct td_json *j, const struct td_diff *diff)
{
    const struct td_diagnosis *d = diff->result.first->outcome.diagnosis;
    td_json_begin_object(j);
    td_json_field_uint(j, "index", (uint64_t)(diff->result.first - diff->result.pairs));
    td_json_field_string(j, "name", diff->result.first->name);
    td_json_field_string(j, "kind", d && d->count ? td_mistake_name(d->list[0].kind) : NULL);
    td_json_end_object(j);
}

static bool describe_diff(const struct td_diff *diff, struct outcome *out)
{
    struct td_json j;
    td_json_to_buffer(&j, &out->result);
    td_diff_json(&j, diff, NULL);
    td_json_newline(&j);
    bool written = td_json_finish(&j);
    td_json_to_buffer(&j, &out->summary);
    td_summary_counts_json(&j, &diff->result.summary);
    written = td_json_finish(&j) && written;
    td_json_to_buffer(&j, &out->first);
    if (diff->result.first)
        put_first(&j, diff);
    return td_json_finish(&j) && written;
}

/* --- one input ------------------------------------------------------------------------------------------ */

static void fill_rows(struct td_stats_rows *rows, const struct td_choice *choice)
{
    for (size_t i = 0; i < rows->count; i++)
        rows->rows[i] = (struct td_stats_row){.tensor = choice->one ? &choice->selection.part
                                                                    : td_input_tensor(choice->input, i),
                                              .path = td_input_path(choice->input),
                                              .slice = ""};
}

static void put_explored(struct td_json *j, const struct td_stats_rows *rows, const struct td_choice *choice)
{
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_stats_rows_json(j, rows);
    td_json_key(j, "skipped");
    td_json_begin_array(j);
    td_stats_skips_json(j, rows);
    td_skips_json(j, choice->input);
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
}

static void put_explored_summary(struct td_json *j, const struct td_stats_rows *rows,
                                 const struct td_choice *choice)
{
    uint64_t bytes = 0, nan = 0, inf = 0, unread = td_input_skips(choice->input);
    for (size_t i = 0; i < rows->count; i++) {
        bytes += rows->rows[i].tensor->bytes;
        nan += rows->rows[i].stats.nan > 0;
        inf += rows->rows[i].stats.inf > 0;
        unread += rows->rows[i].error.status != TDBG_OK;
    }
    td_json_begin_object(j);
    td_json_field_uint(j, "tensors", rows->count);
    td_json_field_uint(j, "bytes", bytes);
    td_json_field_uint(j, "with_nan", nan);
    td_json_field_uint(j, "with_inf", inf);
    td_json_field_uint(j, "skipped", unread);
    td_json_end_object(j);
}

static tdbg_status explore(struct td_desk *desk, struct td_entry *e, const struct td_choice *choice,
                           struct outcome *out)
{
    struct td_stats_rows rows;
    struct td_json j;
    TD_TRY(td_stats_rows_init(&rows, choice->one ? 1 : td_input_count(choice->input), 0, &out->error));
    fill_rows(&rows, choice);
    atomic_fetch_add(&e->job.total, td_stats_rows_bytes(&rows));
    tdbg_status status = td_stats_rows_measure(&rows, desk->pool, &e->job, &out->error);
    if (status == TDBG_OK) {
        td_json_to_buffer(&j, &out->result);
        put_explored(&j, &rows, choice);
        bool written = td_json_finish(&j);
        td_json_to_buffer(&j, &out->summary);
        put_explored_summary(&j, &rows, choice);
        if (!td_json_finish(&j) || !written)
            status = td_fail(&out->error, TDBG_LIMIT, "a result too large to be stored");
    }
    td_stats_rows_release(&rows);
    return status;
}

/* --- either --------------------------------------------------------------------------------------------- */

/* Puts the name of the upload in front of the message, where its path stands. The path may have been cut
 * short to leave room for the reason; its folder, which no other upload has, tells whose it is. */
static void name_upload(const struct td_part *p, const struct td_target *target, struct tdbg_error *error)
{
    const char *slash = strrchr(target->path, '/');
    size_t chosen = strlen(p->path) - strlen(target->path); /* what follows the file: ":layers.0/w" */
    size_t folder = slash ? (size_t)(slash - target->path) + 1 : 0, same = 0, name = strlen(p->name);
    while (target->path[same] && error->message[same] == target->path[same])
        same++;
    if (same <= folder || error->message[same] != ':' || name < chosen)
        return;
    char rest[sizeof error->message];
    snprintf(rest, sizeof rest, "%s", error->message + same);
    snprintf(error->message, sizeof error->message, "%.*s%.300s", (int)(name - chosen), p->name, rest);
}

/* An upload is known by its name: where we keep it is nobody's business. */
static void call_by_name(const struct td_entry *e, struct tdbg_error *error)
{
    for (int i = 0; i < 2; i++) {
        struct td_target target;
        if (!e->part[i].upload || td_target_init(&target, e->part[i].path, NULL) != TDBG_OK)
            continue;
        name_upload(&e->part[i], &target, error);
        td_target_release(&target);
    }
}

tdbg_status td_desk_compare_again(struct td_desk *desk, struct td_entry *e, struct td_opened **out,
                                  struct tdbg_error *error)
{
    struct td_opened *o = td_opened_make(e->id);
    if (!o)
        return td_fail_nomem(error);
    e->job.prepared = desk->uploads ? td_uploads_folder(desk->uploads) : NULL;
    e->job.bound = desk->bound;
    tdbg_status status = e->part[1].path ? compare(desk, e, o, error)
                                         : td_choice_open(&o->choice, e->part[0].path, &e->job, error);
    if (status == TDBG_OK)
        status = td_opened_ready(o, error);
    if (status == TDBG_OK) {
        *out = o;
    } else {
        call_by_name(e, error);
        td_opened_close(o);
    }
    return status;
}

static tdbg_status run(struct td_desk *desk, struct td_entry *e, struct outcome *out)
{
    /* Before they are opened: what changes from now on shows. */
    for (int i = 0; i < 2 && e->part[i].path; i++)
        td_stamp_take(out->stamp[i], e->part[i].path);
    TD_TRY(td_desk_compare_again(desk, e, &out->opened, &out->error));
    if (!out->opened->diff)
        return explore(desk, e, &out->opened->choice, out);
    if (!describe_diff(out->opened->diff, out))
        return td_fail(&out->error, TDBG_LIMIT, "a result too large to be stored");
    return TDBG_OK;
}

/* Never the same again, also when the server was started anew in between: milliseconds since 1970. */
static uint64_t next_generation(uint64_t last)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t milliseconds = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return milliseconds > last ? milliseconds : last + 1;
}

/* {"summary": …, "first": …, "generation": …} */
static bool join_summary(struct td_buffer *out, const struct outcome *o)
{
    struct td_json j;
    td_json_to_buffer(&j, out);
    td_json_begin_object(&j);
    td_json_key(&j, "summary");
    td_json_text(&j, td_buffer_text(&o->summary));
    td_json_key(&j, "first");
    o->first.size ? td_json_text(&j, td_buffer_text(&o->first)) : td_json_null(&j);
    td_json_field_uint(&j, "generation", o->generation);
    td_json_end_object(&j);
    return td_json_finish(&j);
}

static enum td_phase phase_after(const struct outcome *o)
{
    return o->status == TDBG_OK          ? TD_PHASE_DONE
           : o->status == TDBG_CANCELLED ? TD_PHASE_CANCELLED
                                         : TD_PHASE_FAILED;
}

static tdbg_status save(struct td_desk *desk, const struct td_entry *e, struct outcome *o,
                        struct tdbg_error *error)
{
    struct td_comparison_row row = td_entry_row(e, phase_after(o));
    row.error = o->status == TDBG_OK ? NULL : o->error.message;
    row.a.stamp = o->stamp[0];
    row.b.stamp = row.b.path ? o->stamp[1] : NULL;
    if (o->status != TDBG_OK)
        return td_store_put_comparison(desk->store, &row, error);
    struct td_buffer summary;
    td_buffer_init(&summary, TD_MAX_METADATA);
    o->generation = next_generation(e->generation);
    tdbg_status status = join_summary(&summary, o) ? TDBG_OK : td_fail_nomem(error);
    row.summary = td_buffer_text(&summary);
    if (status == TDBG_OK)
        status = td_desk_finish(desk, &row, &o->result, error);
    td_buffer_release(&summary);
    return status;
}

/* A failure that cannot be saved either is told all the same, and is tried again at the next start. */
static void save_or_fail(struct td_desk *desk, const struct td_entry *e, struct outcome *o)
{
    struct tdbg_error error;
    tdbg_status status = save(desk, e, o, &error);
    if (status == TDBG_OK || o->status != TDBG_OK)
        return;
    o->status = status;
    o->error = error;
    td_error_prefix(&o->error, "cannot save the result");
    (void)!save(desk, e, o, &error);
}

/* Under the lock. */
static void conclude(struct td_entry *e, struct outcome *o)
{
    e->phase = phase_after(o);
    e->revision++;
    e->next_look = 0;
    if (o->status == TDBG_OK) {
        e->generation = o->generation;
        e->summary = td_buffer_take(&o->summary);
        e->first = o->first.size ? td_buffer_take(&o->first) : NULL;
    } else {
        e->error = strdup(o->error.message);
        e->failure = o->status;
    }
    for (int i = 0; i < 2; i++) {
        memcpy(e->part[i].stamp, o->stamp[i], TD_STAMP_SIZE);
        e->part[i].changed = e->part[i].missing = false;
    }
}

/* Under the lock, which it lets go. */
static void work_on(struct td_desk *desk, struct td_entry *e)
{
    struct outcome o;
    struct td_opened *closed = NULL;
    outcome_init(&o);
    e->phase = TD_PHASE_RUNNING;
    e->job = (struct td_job){0};
    e->revision++;
    desk->waiting--;
    pthread_cond_broadcast(&desk->changed);
    td_entry_leave(desk, e);
    o.status = run(desk, e, &o);
    pthread_mutex_lock(&desk->lock);
    bool interrupted = desk->stopping && o.status == TDBG_CANCELLED;
    pthread_mutex_unlock(&desk->lock);
    if (!interrupted)
        save_or_fail(desk, e, &o);
    td_entry_enter(desk, e);
    conclude(e, &o);
    if (o.status == TDBG_OK) {
        closed = td_desk_attach(desk, e, o.opened);
        o.opened = NULL;
    }
    pthread_mutex_unlock(&desk->lock);
    td_opened_close(closed);
    outcome_release(&o);
    pthread_mutex_lock(&desk->lock);
}

static struct td_entry *next_queued(const struct td_desk *desk)
{
    struct td_entry *e = desk->oldest;
    while (e && (e->phase != TD_PHASE_QUEUED || e->busy))
        e = e->newer;
    return e;
}

void *td_desk_work(void *context)
{
    struct td_desk *desk = context;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stopping) {
        struct td_entry *e = desk->waiting ? next_queued(desk) : NULL;
        if (e)
            work_on(desk, e);
        else
            pthread_cond_wait(&desk->changed, &desk->lock);
    }
    pthread_mutex_unlock(&desk->lock);
    return NULL;
}
