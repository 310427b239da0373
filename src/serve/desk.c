/* desk.c: see desk.h; desk_core.h has the rules of the lock. Here: opening and closing, and what people
 * order. */
#include "serve/desk_core.h"

#include "serve/settings.h"
#include "serve/uploads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* --- opening and closing -------------------------------------------------------------------------------- */

/* What the store gives, newest first, as a stack: the oldest is on top. */
struct loading {
    struct td_entry *top;
    bool failed;
};

static void load_row(void *context, const struct td_comparison_row *row)
{
    struct loading *l = context;
    struct td_entry *e = td_entry_make(row);
    l->failed = l->failed || !e;
    if (e) {
        e->older = l->top;
        l->top = e;
    }
}

static tdbg_status load(struct td_desk *desk, struct tdbg_error *error)
{
    struct loading l = {0};
    tdbg_status status = td_store_each_comparison(desk->store, load_row, &l, error);
    for (struct td_entry *e; (e = l.top);) {
        l.top = e->older;
        td_entry_link(desk, e);
        desk->waiting += e->phase == TD_PHASE_QUEUED;
    }
    return status == TDBG_OK && l.failed ? td_fail_nomem(error) : status;
}

tdbg_status td_desk_open(struct td_desk **out, struct td_store *store, struct td_uploads *uploads,
                         const struct td_bound *bound, struct tdbg_error *error)
{
    struct td_desk *desk = calloc(1, sizeof *desk);
    if (!desk)
        return td_fail_nomem(error);
    desk->store = store;
    desk->uploads = uploads;
    desk->bound = bound;
    pthread_mutex_init(&desk->lock, NULL);
    pthread_mutex_init(&desk->writing, NULL);
    pthread_cond_init(&desk->changed, NULL);
    tdbg_status status = td_pool_open(&desk->pool, 0, error);
    if (status == TDBG_OK)
        status = td_gallery_open(&desk->gallery, error);
    if (status == TDBG_OK)
        status = load(desk, error);
    if (status == TDBG_OK && pthread_create(&desk->worker, NULL, td_desk_work, desk) != 0)
        status = td_fail(error, TDBG_NOMEM, "cannot start a thread");
    desk->works = status == TDBG_OK;
    if (status == TDBG_OK)
        *out = desk;
    else
        td_desk_close(&desk);
    return status;
}

void td_desk_stop(struct td_desk *desk)
{
    if (!desk->works)
        return;
    desk->works = false;
    pthread_mutex_lock(&desk->lock);
    desk->stopping = true;
    for (struct td_entry *e = desk->newest; e; e = e->older)
        atomic_store(&e->job.cancelled, true);
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->lock);
    pthread_join(desk->worker, NULL);
}

void td_desk_close(struct td_desk **desk_place)
{
    struct td_desk *desk = *desk_place;
    if (!desk)
        return;
    td_desk_stop(desk);
    for (struct td_entry *e; (e = desk->newest);) {
        td_opened_close(td_desk_detach(desk, e));
        td_entry_unlink(desk, e);
        td_entry_free(e);
    }
    td_gallery_close(&desk->gallery);
    td_pool_close(&desk->pool);
    pthread_cond_destroy(&desk->changed);
    pthread_mutex_destroy(&desk->writing);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
    *desk_place = NULL;
}

/* --- ordering ------------------------------------------------------------------------------------------- */

static bool draw_id(char id[TD_ID_LENGTH + 1])
{
    unsigned char bytes[TD_ID_LENGTH / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* A place in the queue, or LIMIT. */
static tdbg_status take_place(struct td_desk *desk, struct tdbg_error *error)
{
    if (desk->waiting >= TD_MOST_WAITING)
        return td_fail(error, TDBG_LIMIT, "%d comparisons wait already; try again later", TD_MOST_WAITING);
    desk->waiting++;
    return TDBG_OK;
}

static char *make_title(const struct td_order *order)
{
    char *title = NULL;
    int length = order->title    ? asprintf(&title, "%s", order->title)
                 : order->b.path ? asprintf(&title, "%s against %s", order->a.name, order->b.name)
                                 : asprintf(&title, "%s", order->a.name);
    return length < 0 ? NULL : title;
}

static struct td_source_row side_row(const struct td_order_side *side)
{
    return (struct td_source_row){side->name, side->path, side->upload, side->path ? "" : NULL};
}

static tdbg_status make_entry(struct td_entry **out, const struct td_order *order,
                              const struct td_settings *settings, struct tdbg_error *error)
{
    char id[TD_ID_LENGTH + 1];
    char *title = make_title(order), *text = td_settings_print(settings);
    if (title && text && draw_id(id))
        *out = td_entry_make(&(struct td_comparison_row){.id = id,
                                                         .title = title,
                                                         .session = order->session ? order->session : "",
                                                         .status = td_phase_name(TD_PHASE_QUEUED),
                                                         .settings = text,
                                                         .a = side_row(&order->a),
                                                         .b = side_row(&order->b),
                                                         .created = (int64_t)time(NULL)});
    free(title);
    free(text);
    return *out ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status enqueue(struct td_desk *desk, struct td_entry *e, struct tdbg_error *error)
{
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = take_place(desk, error);
    pthread_mutex_unlock(&desk->lock);
    TD_TRY(status);
    struct td_comparison_row row = td_entry_row(e, TD_PHASE_QUEUED);
    status = td_store_put_comparison(desk->store, &row, error);
    pthread_mutex_lock(&desk->lock);
    if (status == TDBG_OK)
        td_entry_link(desk, e);
    else
        desk->waiting--;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->lock);
    return status;
}

tdbg_status td_desk_start(struct td_desk *desk, const struct td_order *order, char id[TD_ID_LENGTH + 1],
                          struct tdbg_error *error)
{
    struct td_settings settings;
    struct td_entry *e = NULL;
    TD_TRY(td_settings_parse(&settings, order->settings, error));
    tdbg_status status = make_entry(&e, order, &settings, error);
    if (status == TDBG_OK)
        status = td_desk_check_pairs(desk, e, &settings.setup, error);
    td_settings_release(&settings);
    if (status != TDBG_OK) {
        if (e)
            td_entry_free(e);
        return status;
    }
    char name[TD_ID_LENGTH + 1];
    memcpy(name, e->id, sizeof name); /* once linked, it may be removed at any moment */
    status = enqueue(desk, e, error);
    if (status == TDBG_OK)
        memcpy(id, name, sizeof name);
    else
        td_entry_free(e);
    return status;
}

/* --- again ---------------------------------------------------------------------------------------------- */

static void forget_outcome(struct td_entry *e)
{
    free(e->error);
    free(e->summary);
    free(e->first);
    e->error = e->summary = e->first = NULL;
}

/* Under the lock: one at rest that nobody is busy with. */
static tdbg_status find_resting(struct td_desk *desk, const char *id, struct td_entry **out,
                                struct tdbg_error *error)
{
    struct td_entry *e = td_entry_find(desk, id);
    if (e && td_phase_rests(e->phase))
        TD_TRY(td_entry_await(desk, id, &e, error));
    if (!e)
        return td_fail(error, TDBG_NOTFOUND, "no comparison '%.32s'", id);
    if (!td_phase_rests(e->phase))
        return td_fail(error, TDBG_MISMATCH, "the comparison is %s", td_phase_name(e->phase));
    *out = e;
    return TDBG_OK;
}

/* Under the lock, which it lets go meanwhile. `text` is the settings, and taken over on success. */
static tdbg_status requeue(struct td_desk *desk, const char *id, const struct td_settings *settings,
                           char *text, struct td_opened **closed, struct tdbg_error *error)
{
    struct td_entry *e;
    TD_TRY(find_resting(desk, id, &e, error));
    TD_TRY(td_desk_recheck_pairs(desk, e, &settings->setup, error));
    TD_TRY(find_resting(desk, id, &e, error)); /* another may have been faster */
    TD_TRY(take_place(desk, error));
    td_entry_leave(desk, e);
    struct td_comparison_row row = td_entry_row(e, TD_PHASE_QUEUED);
    row.settings = text;
    tdbg_status status = td_store_put_comparison(desk->store, &row, error);
    td_entry_enter(desk, e);
    if (status != TDBG_OK) {
        desk->waiting--;
        return status;
    }
    forget_outcome(e);
    free(e->settings);
    e->settings = text;
    e->phase = TD_PHASE_QUEUED;
    e->job = (struct td_job){0};
    e->revision++;
    *closed = td_desk_detach(desk, e);
    return TDBG_OK;
}

tdbg_status td_desk_configure(struct td_desk *desk, const char *id, const char *text,
                              struct tdbg_error *error)
{
    struct td_settings settings;
    struct td_opened *closed = NULL;
    TD_TRY(td_settings_parse(&settings, text, error));
    char *printed = td_settings_print(&settings);
    tdbg_status status = printed ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        pthread_mutex_lock(&desk->lock);
        status = requeue(desk, id, &settings, printed, &closed, error);
        pthread_mutex_unlock(&desk->lock);
    }
    td_settings_release(&settings);
    td_opened_close(closed);
    if (status != TDBG_OK)
        free(printed);
    return status;
}

/* --- stopping and forgetting ---------------------------------------------------------------------------- */

/* Under the lock. What runs is told to stop and waited for; what is queued leaves the queue. */
static tdbg_status bring_to_rest(struct td_desk *desk, const char *id, struct td_entry **out,
                                 struct tdbg_error *error)
{
    struct td_entry *e = td_entry_find(desk, id);
    if (e && e->busy)
        atomic_store(&e->job.cancelled, true);
    TD_TRY(td_entry_await(desk, id, &e, error));
    if (e->phase == TD_PHASE_QUEUED) {
        desk->waiting--;
        e->phase = TD_PHASE_CANCELLED;
        e->revision++;
        td_entry_leave(desk, e);
        struct td_comparison_row row = td_entry_row(e, TD_PHASE_CANCELLED);
        tdbg_status status = td_store_put_comparison(desk->store, &row, error);
        td_entry_enter(desk, e);
        TD_TRY(status);
    }
    *out = e;
    return TDBG_OK;
}

tdbg_status td_desk_cancel(struct td_desk *desk, const char *id, struct tdbg_error *error)
{
    struct td_entry *e;
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = bring_to_rest(desk, id, &e, error);
    pthread_mutex_unlock(&desk->lock);
    return status;
}

static bool upload_in_use(const struct td_desk *desk, const char *upload)
{
    for (const struct td_entry *e = desk->newest; e; e = e->older)
        for (int i = 0; i < 2; i++)
            if (e->part[i].upload && strcmp(e->part[i].upload, upload) == 0)
                return true;
    return false;
}

/* A comparison that takes up the upload at this very moment keeps it: the store removes nothing in use. */
static void drop_uploads(struct td_desk *desk, const struct td_entry *e)
{
    for (int i = 0; i < 2; i++) {
        const char *upload = e->part[i].upload;
        if (!upload || (i == 1 && e->part[0].upload && strcmp(upload, e->part[0].upload) == 0))
            continue;
        pthread_mutex_lock(&desk->lock);
        bool used = upload_in_use(desk, upload);
        pthread_mutex_unlock(&desk->lock);
        if (!used)
            (void)!td_uploads_remove(desk->uploads, upload, NULL);
    }
}

/* Under the lock, which it lets go meanwhile. The entry is the caller's afterwards. */
static tdbg_status take_out(struct td_desk *desk, const char *id, struct td_entry **out,
                            struct td_opened **closed, struct tdbg_error *error)
{
    struct td_entry *e;
    TD_TRY(bring_to_rest(desk, id, &e, error));
    td_entry_leave(desk, e);
    tdbg_status status = td_store_remove_comparison(desk->store, id, error);
    td_entry_enter(desk, e);
    TD_TRY(status);
    *closed = td_desk_detach(desk, e);
    td_entry_unlink(desk, e);
    *out = e;
    return TDBG_OK;
}

tdbg_status td_desk_remove(struct td_desk *desk, const char *id, struct tdbg_error *error)
{
    struct td_entry *e = NULL;
    struct td_opened *closed = NULL;
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = take_out(desk, id, &e, &closed, error);
    pthread_mutex_unlock(&desk->lock);
    TD_TRY(status);
    td_opened_close(closed);
    drop_uploads(desk, e);
    td_entry_free(e);
    return TDBG_OK;
}

/* --- asking --------------------------------------------------------------------------------------------- */

tdbg_status td_desk_wait(struct td_desk *desk, const char *id, struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    struct td_entry *e;
    pthread_mutex_lock(&desk->lock);
    while ((e = td_entry_find(desk, id)) && !td_phase_rests(e->phase) && !desk->stopping)
        pthread_cond_wait(&desk->changed, &desk->lock);
    if (!e)
        status = td_fail(error, TDBG_NOTFOUND, "no comparison '%.32s'", id);
    else if (e->phase == TD_PHASE_FAILED)
        status = td_fail(error, e->failure, "%s", e->error ? e->error : "out of memory");
    else if (e->phase != TD_PHASE_DONE)
        status = td_fail(error, TDBG_CANCELLED, "stopped");
    pthread_mutex_unlock(&desk->lock);
    return status;
}

tdbg_status td_desk_latest(struct td_desk *desk, const char *session, char id[TD_ID_LENGTH + 1],
                           struct tdbg_error *error)
{
    pthread_mutex_lock(&desk->lock);
    const struct td_entry *e = td_entry_latest(desk, session);
    if (e)
        memcpy(id, e->id, sizeof e->id);
    pthread_mutex_unlock(&desk->lock);
    return e ? TDBG_OK : td_fail(error, TDBG_NOTFOUND, "nothing has been compared yet");
}
