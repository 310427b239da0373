/* api_runs.c: the routes of recorded runs: which there are, one of them as it stands and as it goes on, and
 * its breakpoints; see docs/api.md. A run is named by its folder, which must lie under a root. */
#include "report/follow_json.h"
#include "serve/request.h"
#include "serve/roots.h"
#include "serve/run_list.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 16 << 20, MAX_EVENT = 3 << 20 };

/* --- The list ------------------------------------------------------------------------------------------- */

static void answer_list(struct td_exchange *x, const struct td_run_list *list)
{
    struct td_buffer body;
    struct td_json json, *j = &json;
    td_buffer_init(&body, MAX_ANSWER);
    td_json_to_buffer(j, &body);
    td_json_begin_object(j);
    td_json_key(j, "runs");
    td_json_begin_array(j);
    for (size_t i = 0; i < list->count; i++) {
        td_json_begin_object(j);
        td_json_field_string(j, "path", list->runs[i].path);
        td_run_facts_json(j, &list->runs[i].facts);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    td_json_field_bool(j, "cut", list->cut);
    td_json_end_object(j);
    (void)td_json_finish(j); /* the buffer remembers */
    td_answer_json(x, 200, &body);
}

static void list(struct td_exchange *x)
{
    const struct td_roots *roots = x->server->options.roots;
    const char *path = td_query(x, "path");
    struct td_run_list found = {0};
    char *folder = NULL;
    bool good = true;
    if (!td_may_wait(x)) /* for many folders */
        return;
    if (path && *path) {
        if (!td_allow_path(x, path, &folder))
            return;
        good = td_run_list_add(&found, folder);
    } else {
        for (size_t i = 0; good && td_roots_at(roots, i); i++)
            good = td_run_list_add(&found, td_roots_at(roots, i));
    }
    td_run_list_sort(&found);
    if (good)
        answer_list(x, &found);
    else
        td_answer_error(x, 503, "out of memory");
    td_run_list_release(&found);
    free(folder);
}

/* --- One run -------------------------------------------------------------------------------------------- */

/* False: it was answered why not. */
static bool take(struct td_exchange *x, const char *path, struct td_run_view **out)
{
    struct tdbg_error error;
    char *folder = NULL;
    if (!path || !*path) {
        td_answer_error(x, 400, "the path of a run is missing");
        return false;
    }
    if (!td_allow_path(x, path, &folder))
        return false;
    bool run = td_run_is(folder);
    tdbg_status status = run ? td_runs_take(x->server->runs, folder, out, &error) : TDBG_NOTFOUND;
    if (!run)
        td_answer_error(x, 404, "no recorded run in %s", path);
    else if (status != TDBG_OK)
        td_answer_failure(x, &error);
    free(folder);
    return status == TDBG_OK;
}

static void answer_view(struct td_exchange *x, struct td_run_view *view)
{
    struct td_run_seen seen = {0};
    struct td_buffer body;
    td_buffer_init(&body, MAX_ANSWER);
    if (td_run_view_news(view, &seen, true, &body))
        td_answer_json(x, 200, &body);
    else
        td_answer_error(x, 422, "the run cannot be read now");
    td_buffer_release(&body);
}

static void show(struct td_exchange *x)
{
    struct td_run_view *view = NULL;
    if (!td_may_wait(x) || !take(x, td_query(x, "path"), &view))
        return;
    answer_view(x, view);
    td_runs_give_back(&view);
}

/* --- Following one -------------------------------------------------------------------------------------- */

/* Times `next` has nothing to say before a line that says just that. It is how a client that left is noticed,
 * and a run that it held must not wait long for it. */
enum { QUIET = 20 };

struct following {
    struct td_run_view *view;
    struct td_run_seen seen;
    int quiet;
};

static bool next_event(void *context, struct td_buffer *out)
{
    struct following *f = context;
    struct td_buffer news;
    td_buffer_init(&news, MAX_EVENT);
    (void)td_run_view_news(f->view, &f->seen, false, &news); /* what cannot be read now may be later */
    if (news.size) {
        td_buffer_puts(out, "event: run\ndata: ");
        td_buffer_append(out, news.data, news.size);
        td_buffer_puts(out, "\n\n");
        f->quiet = 0;
    } else if (++f->quiet >= QUIET) {
        td_buffer_puts(out, ":\n\n");
        f->quiet = 0;
    }
    bool good = !news.failed;
    td_buffer_release(&news);
    return good;
}

static void end_following(void *context)
{
    struct following *f = context;
    td_runs_give_back(&f->view);
    free(f);
}

static void follow(struct td_exchange *x)
{
    struct td_run_view *view = NULL;
    if (!td_may_wait(x) || !take(x, td_query(x, "path"), &view))
        return;
    struct following *f = calloc(1, sizeof *f);
    if (!f) {
        td_runs_give_back(&view);
        td_answer_error(x, 503, "out of memory");
        return;
    }
    f->view = view;
    td_answer_events(x, &(struct td_events){f, next_event, end_following});
}

/* --- The live process ----------------------------------------------------------------------------------- */

static const char *text_of(const struct td_exchange *x, const char *key)
{
    return json_string_value(json_object_get(x->body, key));
}

static bool is_verb(const char *verb)
{
    static const char *const verbs[] = {"attach", "detach", "continue", "step",   "next",
                                        "break",  "delete", "enable",   "disable"};
    for (size_t i = 0; verb && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verb, verbs[i]) == 0)
            return true;
    return false;
}

static void control(struct td_exchange *x)
{
    struct td_run_view *view = NULL;
    struct tdbg_error error;
    const char *verb = text_of(x, "do");
    if (!is_verb(verb)) {
        td_answer_error(x, 400,
                        "\"do\" is none of attach, detach, continue, step, next, break, delete, enable, "
                        "disable");
        return;
    }
    if (!td_may_wait(x) || !take(x, text_of(x, "path"), &view))
        return;
    const struct td_parameter parameters[] = {{"pattern", text_of(x, "pattern")},
                                              {"when", text_of(x, "when")},
                                              {"number", text_of(x, "number")},
                                              {0}};
    tdbg_status status = td_run_view_ask(view, verb, parameters, &error);
    if (status == TDBG_OK)
        answer_view(x, view);
    else if (status == TDBG_NOTFOUND)
        td_answer_error(x, 409, "%s", error.message);
    else
        td_answer_failure(x, &error);
    td_runs_give_back(&view);
}

const struct td_route td_routes_runs[] = {
    {"GET", "/api/v1/runs", TD_BODY_NONE, list},
    {"GET", "/api/v1/run", TD_BODY_NONE, show},
    {"GET", "/api/v1/run/events", TD_BODY_NONE, follow},
    {"POST", "/api/v1/run/control", TD_BODY_JSON, control},
    {0},
};
