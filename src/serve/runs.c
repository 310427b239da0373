/* runs.c: see runs.h.
 *
 * Two locks: that of the list (short), and that of a view, which is held while rows are read or the live
 * process is asked. The refreshing thread takes a hold of its own on a view while it works on it, so that
 * views are closed by whoever lets go last and never under somebody's hands. A folder whose index was
 * replaced is opened anew: another epoch.
 */
#include "serve/runs.h"

#include "report/follow_json.h"
#include "serve/streams.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TICK_MS = 50, LINGER_MS = 5000, CONTROL_MS = 200, CONNECT_MS = 1000, ASK_MS = 2000 };

struct td_run_view {
    struct td_run_view *next;
    struct td_runs *runs;
    char *dir;
    int holders; /* guarded by the list's lock, as is `idle_since` */
    int64_t idle_since;

    pthread_mutex_t lock; /* the rest */
    struct td_follow *follow;
    ino_t inode;
    uint64_t epoch;
    struct tdbg_error error;  /* status TDBG_OK: it can be read */
    struct td_client *client; /* NULL: nobody serves it */
    bool attached;
    int64_t next_control;
    char *control; /* JSON of what is known of the live process */
    uint64_t control_serial;
};

struct td_runs {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t refresher;
    struct td_streams *streams;
    struct td_run_view *first;
    bool ending;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- The live process ----------------------------------------------------------------------------------- */

static void set_control(struct td_run_view *v, char *text)
{
    if (text && v->control && strcmp(text, v->control) == 0) {
        free(text);
        return;
    }
    free(v->control);
    v->control = text;
    v->control_serial++;
}

static char *control_text(const struct td_run_view *v, json_t *state, json_t *breakpoints)
{
    json_t *all = json_object();
    if (!all)
        return NULL;
    json_object_set_new(all, "live", json_boolean(v->client != NULL));
    json_object_set_new(all, "attached", json_boolean(v->attached));
    if (state) {
        json_object_set(all, "state", json_object_get(state, "state"));
        json_object_set(all, "step", json_object_get(state, "step"));
        json_object_set(all, "stop", json_object_get(state, "stop"));
    }
    if (breakpoints)
        json_object_set(all, "breakpoints", json_object_get(breakpoints, "breakpoints"));
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static void lose_client(struct td_run_view *v)
{
    td_client_close(&v->client);
    v->attached = false;
}

/* Events say what the next question will show anyway. */
static bool drain_events(struct td_client *client)
{
    json_t *event = NULL;
    for (;;) {
        if (td_client_event(client, 0, &event, NULL) != TDBG_OK)
            return false;
        if (!event)
            return true;
        json_decref(event);
        event = NULL;
    }
}

static void ask_control(struct td_run_view *v)
{
    json_t *state = NULL, *breakpoints = NULL;
    if (!v->client && strcmp(v->follow->state, "running") == 0 &&
        td_client_open(&v->client, v->dir, ASK_MS, NULL) != TDBG_OK)
        v->client = NULL;
    if (v->client &&
        (!drain_events(v->client) || td_client_ask(v->client, "state", NULL, &state, NULL) != TDBG_OK ||
         td_client_ask(v->client, "breakpoints", NULL, &breakpoints, NULL) != TDBG_OK))
        lose_client(v);
    set_control(v, control_text(v, v->client ? state : NULL, v->client ? breakpoints : NULL));
    json_decref(state);
    json_decref(breakpoints);
    v->next_control = now_ms() + (v->client ? CONTROL_MS : CONNECT_MS);
}

tdbg_status td_run_view_ask(struct td_run_view *v, const char *verb, const struct td_parameter *parameters,
                            struct tdbg_error *error)
{
    json_t *answer = NULL;
    tdbg_status status = TDBG_OK;
    bool letting_go = strcmp(verb, "detach") == 0;
    pthread_mutex_lock(&v->lock);
    if (v->error.status != TDBG_OK)
        status = td_fail(error, v->error.status, "%s", v->error.message);
    if (status == TDBG_OK && !v->client)
        status = td_client_open(&v->client, v->dir, ASK_MS, error);
    if (status == TDBG_OK && !v->attached && !letting_go) {
        status = td_client_ask(v->client, "attach", NULL, &answer, error);
        json_decref(answer);
        v->attached = status == TDBG_OK;
        answer = NULL;
    }
    if (status == TDBG_OK && strcmp(verb, "attach") != 0) {
        status = td_client_ask(v->client, verb, parameters, &answer, error);
        json_decref(answer);
    }
    if (status == TDBG_OK && letting_go)
        v->attached = false;
    if (status == TDBG_OK)
        ask_control(v);
    pthread_mutex_unlock(&v->lock);
    return status;
}

/* --- Views ---------------------------------------------------------------------------------------------- */

static ino_t index_inode(const char *dir)
{
    char path[4096];
    struct stat st;
    int length = snprintf(path, sizeof path, "%s/" TD_RUN_INDEX, dir);
    return length > 0 && (size_t)length < sizeof path && stat(path, &st) == 0 ? st.st_ino : 0;
}

/* The view's lock is held, or nobody else knows the view. True when there is anything new. */
static bool refresh(struct td_run_view *v)
{
    const struct td_run_seen before = {v->epoch, v->follow ? v->follow->serial : 0, v->control_serial};
    ino_t inode = index_inode(v->dir);
    tdbg_status status = TDBG_OK;
    if (!v->follow || (inode && inode != v->inode)) {
        td_follow_close(&v->follow);
        v->inode = inode;
        v->epoch++;
        status = td_follow_open(&v->follow, v->dir, &v->error);
    }
    if (status == TDBG_OK)
        status = td_follow_refresh(v->follow, &v->error);
    v->error.status = status;
    if (status == TDBG_OK && now_ms() >= v->next_control)
        ask_control(v);
    return status == TDBG_OK && (v->epoch != before.epoch || v->follow->serial != before.serial ||
                                 v->control_serial != before.control);
}

/* Of a view that others may know; streams hear of it. */
static void look_again(struct td_run_view *v)
{
    pthread_mutex_lock(&v->lock);
    bool news = refresh(v);
    pthread_mutex_unlock(&v->lock);
    if (news)
        td_streams_hurry(v->runs->streams);
}

static void close_view(struct td_run_view *v)
{
    td_follow_close(&v->follow);
    td_client_close(&v->client);
    pthread_mutex_destroy(&v->lock);
    free(v->control);
    free(v->dir);
    free(v);
}

static struct td_run_view *find(struct td_runs *runs, const char *dir)
{
    struct td_run_view *v = runs->first;
    while (v && strcmp(v->dir, dir) != 0)
        v = v->next;
    return v;
}

static tdbg_status new_view(struct td_runs *runs, const char *dir, struct td_run_view **out,
                            struct tdbg_error *error)
{
    struct td_run_view *v = calloc(1, sizeof *v);
    if (!v || !(v->dir = strdup(dir))) {
        free(v);
        return td_fail_nomem(error);
    }
    pthread_mutex_init(&v->lock, NULL);
    v->runs = runs;
    (void)refresh(v);
    if (v->error.status != TDBG_OK) {
        tdbg_status status = v->error.status;
        if (error)
            *error = v->error;
        close_view(v);
        return status;
    }
    *out = v;
    return TDBG_OK;
}

tdbg_status td_runs_take(struct td_runs *runs, const char *dir, struct td_run_view **out,
                         struct tdbg_error *error)
{
    struct td_run_view *fresh = NULL;
    pthread_mutex_lock(&runs->lock);
    struct td_run_view *v = find(runs, dir);
    bool known = v;
    if (!v) {
        pthread_mutex_unlock(&runs->lock);
        TD_TRY(new_view(runs, dir, &fresh, error));
        pthread_mutex_lock(&runs->lock);
        v = find(runs, dir); /* somebody may have been faster */
        if (!v) {
            v = fresh;
            fresh = NULL;
            v->next = runs->first;
            runs->first = v;
            pthread_cond_signal(&runs->wake);
        }
    }
    v->holders++;
    pthread_mutex_unlock(&runs->lock);
    if (fresh)
        close_view(fresh);
    if (known) /* nobody may have held it, and who is not held is not refreshed */
        look_again(v);
    *out = v;
    return TDBG_OK;
}

void td_runs_give_back(struct td_run_view **view)
{
    struct td_run_view *v = *view;
    struct td_runs *runs = v->runs;
    pthread_mutex_lock(&runs->lock);
    v->holders--;
    v->idle_since = now_ms();
    pthread_mutex_unlock(&runs->lock);
    *view = NULL;
}

bool td_run_view_news(struct td_run_view *v, struct td_run_seen *seen, bool patient, struct td_buffer *out)
{
    if (patient)
        pthread_mutex_lock(&v->lock);
    else if (pthread_mutex_trylock(&v->lock) != 0)
        return true;
    bool good = v->error.status == TDBG_OK, anew = seen->epoch != v->epoch;
    if (good && (anew || seen->serial < v->follow->serial || seen->control < v->control_serial)) {
        struct td_json j;
        td_json_to_buffer(&j, out);
        td_json_begin_object(&j);
        td_json_field_string(&j, "path", v->dir);
        td_json_field_uint(&j, "epoch", v->epoch);
        td_follow_json(&j, v->follow, anew ? 0 : seen->serial);
        if (v->control && (anew || seen->control < v->control_serial)) {
            td_json_key(&j, "control");
            td_json_text(&j, v->control);
        }
        td_json_end_object(&j);
        (void)td_json_finish(&j); /* the buffer remembers */
        *seen = (struct td_run_seen){v->epoch, v->follow->serial, v->control_serial};
    }
    pthread_mutex_unlock(&v->lock);
    return good;
}

/* --- The refreshing thread ------------------------------------------------------------------------------ */

/* Takes views out of the list that nobody has wanted for a while; returns them. */
static struct td_run_view *take_idle(struct td_runs *runs)
{
    struct td_run_view *idle = NULL, **link = &runs->first;
    while (*link) {
        struct td_run_view *v = *link;
        if (v->holders > 0 || (!runs->ending && now_ms() - v->idle_since < LINGER_MS)) {
            link = &v->next;
            continue;
        }
        *link = v->next;
        v->next = idle;
        idle = v;
    }
    return idle;
}

static void close_all(struct td_run_view *v)
{
    while (v) {
        struct td_run_view *next = v->next;
        close_view(v);
        v = next;
    }
}

/* The list's lock is held, and let go while a view is worked on; a held view stays in the list. */
static void refresh_all(struct td_runs *runs)
{
    for (struct td_run_view *v = runs->first; v && !runs->ending; v = v->next) {
        if (v->holders == 0)
            continue;
        v->holders++;
        pthread_mutex_unlock(&runs->lock);
        look_again(v);
        pthread_mutex_lock(&runs->lock);
        v->holders--;
    }
}

static void *keep_fresh(void *argument)
{
    struct td_runs *runs = argument;
    pthread_mutex_lock(&runs->lock);
    while (!runs->ending) {
        refresh_all(runs);
        struct td_run_view *idle = take_idle(runs);
        pthread_mutex_unlock(&runs->lock);
        close_all(idle);
        pthread_mutex_lock(&runs->lock);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        while (!runs->ending && runs->first &&
               pthread_cond_timedwait(&runs->wake, &runs->lock, &until) != ETIMEDOUT)
            continue;
        while (!runs->ending && !runs->first)
            pthread_cond_wait(&runs->wake, &runs->lock);
    }
    pthread_mutex_unlock(&runs->lock);
    return NULL;
}

tdbg_status td_runs_open(struct td_runs **out, struct td_streams *streams, struct tdbg_error *error)
{
    struct td_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return td_fail_nomem(error);
    runs->streams = streams;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&runs->refresher, NULL, keep_fresh, runs) != 0) {
        pthread_cond_destroy(&runs->wake);
        pthread_mutex_destroy(&runs->lock);
        free(runs);
        return td_fail(error, TDBG_NOMEM, "cannot start a thread");
    }
    *out = runs;
    return TDBG_OK;
}

void td_runs_close(struct td_runs **slot)
{
    struct td_runs *runs = *slot;
    if (!runs)
        return;
    pthread_mutex_lock(&runs->lock);
    runs->ending = true;
    pthread_cond_signal(&runs->wake);
    pthread_mutex_unlock(&runs->lock);
    pthread_join(runs->refresher, NULL);
    close_all(take_idle(runs));
    pthread_cond_destroy(&runs->wake);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
    *slot = NULL;
}
