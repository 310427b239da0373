/* api_comparisons.c: the routes of comparisons: begun, followed, configured, forgotten; see docs/api.md.
 *
 * Whatever writes to the store or waits for a comparison does so where waiting is allowed (td_may_wait).
 */
#include "serve/desk.h"
#include "serve/request.h"
#include "serve/settings.h"
#include "serve/uploads.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a title, and of the page's notes on one comparison. */
enum { MAX_TITLE = 400, MAX_STATE = 1 << 20 };

/* Bytes of an answer: a result is at most what the store takes. */
#define MAX_ANSWER TD_MAX_METADATA

/* What came from the store or the queue rather than from an input. */
static void answer_trouble(struct td_exchange *x, const struct tdbg_error *error)
{
    if (error->status == TDBG_LIMIT)
        td_answer_error(x, 429, "%s", error->message);
    else if (error->status == TDBG_IO)
        td_answer_error(x, 507, "the data folder: %s", error->message);
    else
        td_answer_failure(x, error);
}

/* C, as every route that changes a comparison answers it. */
static void answer_comparison(struct td_exchange *x, unsigned status, const char *id)
{
    struct td_buffer body;
    struct tdbg_error error;
    td_buffer_init(&body, MAX_ANSWER);
    if (td_desk_describe(x->desk, id, &body, &error) == TDBG_OK)
        td_answer_json(x, status, &body);
    else
        td_answer_failure(x, &error);
    td_buffer_release(&body);
}

static void list(struct td_exchange *x)
{
    struct td_buffer body;
    struct tdbg_error error;
    if (!td_may_wait(x)) /* for the inputs on their disks */
        return;
    td_buffer_init(&body, MAX_ANSWER);
    if (td_desk_list(x->desk, &body, &error) == TDBG_OK)
        td_answer_json(x, 200, &body);
    else
        td_answer_failure(x, &error);
    td_buffer_release(&body);
}

static void show(struct td_exchange *x)
{
    if (td_may_wait(x))
        answer_comparison(x, 200, x->parameter[0]);
}

/* --- settings ------------------------------------------------------------------------------------------- */

/* The settings as they will be kept, to be freed; NULL: they are refused, and that was answered. */
static char *check_settings(struct td_exchange *x, const json_t *object)
{
    struct td_settings settings;
    struct tdbg_error error;
    char *reference = NULL, *text = NULL;
    if (td_settings_init(&settings, object, &error) != TDBG_OK) {
        if (error.status == TDBG_UNSUPPORTED)
            td_answer_error(x, 403, "%s", error.message);
        else
            td_answer_failure(x, &error);
        return NULL;
    }
    bool allowed = !settings.setup.reference || td_allow_path(x, settings.setup.reference, &reference);
    if (allowed && reference)
        (void)json_object_set_new(settings.root, "reference", json_string(reference));
    if (allowed && !(text = td_settings_print(&settings)))
        td_answer_error(x, 503, "out of memory");
    free(reference);
    td_settings_release(&settings);
    return text;
}

static void configure(struct td_exchange *x)
{
    struct tdbg_error error;
    char *settings;
    if (!td_may_wait(x) || !(settings = check_settings(x, x->body)))
        return;
    if (td_desk_configure(x->desk, x->parameter[0], settings, &error) == TDBG_OK)
        answer_comparison(x, 202, x->parameter[0]);
    else
        answer_trouble(x, &error);
    free(settings);
}

/* --- beginning one -------------------------------------------------------------------------------------- */

/* What a client named as a side, checked. */
struct side {
    char *name, *path, *upload;
};

static void side_release(struct side *s)
{
    free(s->name);
    free(s->path);
    free(s->upload);
}

/* All of an upload, or one tensor of it. */
static bool take_upload(struct td_exchange *x, const char *key, const char *id, const char *tensor,
                        struct side *out)
{
    struct td_uploaded found;
    struct tdbg_error error;
    if (td_uploads_find(x->server->options.uploads, id, &found, &error) != TDBG_OK) {
        td_answer_error(x, 404, "\"%s\": no upload '%.32s'", key, id);
        return false;
    }
    const char *colon = tensor ? ":" : "", *chosen = tensor ? tensor : "";
    out->upload = strdup(found.id);
    if (asprintf(&out->name, "%s%s%s", found.name, colon, chosen) < 0)
        out->name = NULL;
    if (asprintf(&out->path, "%s%s%s", found.path, colon, chosen) < 0)
        out->path = NULL;
    td_uploaded_release(&found);
    return true;
}

/* Without the folders: "a.zip", "a.zip:layers.0/w". */
static char *name_of_path(const char *path)
{
    struct td_target target;
    char *name = NULL;
    if (td_target_init(&target, path, NULL) != TDBG_OK)
        return NULL;
    size_t end = strlen(target.path), start;
    while (end > 1 && target.path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && target.path[start - 1] != '/';)
        start--;
    if (asprintf(&name, "%.*s%s", (int)(end - start), target.path + start, path + strlen(target.path)) < 0)
        name = NULL;
    td_target_release(&target);
    return name;
}

static bool take_path(struct td_exchange *x, const char *text, struct side *out)
{
    if (!td_allow_path(x, text, &out->path))
        return false;
    out->name = name_of_path(out->path);
    return true;
}

/* False: it is none, and that was answered. */
static bool take_side(struct td_exchange *x, const char *key, struct side *out)
{
    const json_t *source = json_object_get(x->body, key);
    const char *path = json_string_value(json_object_get(source, "path"));
    const char *upload = json_string_value(json_object_get(source, "upload"));
    const char *tensor = upload ? json_string_value(json_object_get(source, "tensor")) : NULL;
    if (json_object_size(source) != (tensor ? 2 : 1) || (!path && !upload)) {
        td_answer_error(x, 400, "\"%s\" is neither {\"path\": …} nor {\"upload\": …}", key);
        return false;
    }
    if (!(path ? take_path(x, path, out) : take_upload(x, key, upload, tensor, out)))
        return false;
    if (!out->name || !out->path || (upload && !out->upload)) {
        td_answer_error(x, 503, "out of memory");
        return false;
    }
    return true;
}

static bool check_members(struct td_exchange *x)
{
    static const char *const known[] = {"a", "b", "settings", "title"};
    const json_t *title = json_object_get(x->body, "title");
    const char *key;
    json_t *value;
    if (!json_is_object(x->body)) {
        td_answer_error(x, 400, "the body is not an object");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)x->body, key, value)
    {
        size_t i = 0;
        while (i < 4 && strcmp(known[i], key) != 0)
            i++;
        if (i == 4) {
            td_answer_error(x, 400, "no member is called \"%.64s\"", key);
            return false;
        }
    }
    if (title && !json_is_null(title) && (!json_is_string(title) || json_string_length(title) > MAX_TITLE)) {
        td_answer_error(x, 400, "\"title\" is not a text of at most %d bytes", MAX_TITLE);
        return false;
    }
    return true;
}

static void begin(struct td_exchange *x, const struct side *a, const struct side *b, const char *settings)
{
    const char *title = json_string_value(json_object_get(x->body, "title"));
    struct td_order order = {.title = title && *title ? title : NULL,
                             .a = {a->name, a->path, a->upload},
                             .b = {b->name, b->path, b->upload},
                             .settings = settings,
                             .session = x->session};
    struct tdbg_error error;
    char id[TD_ID_LENGTH + 1];
    if (td_desk_start(x->desk, &order, id, &error) == TDBG_OK)
        answer_comparison(x, 202, id);
    else
        answer_trouble(x, &error);
}

static void create(struct td_exchange *x)
{
    struct side a = {0}, b = {0};
    char *settings = NULL;
    if (!td_may_wait(x) || !check_members(x))
        return;
    const json_t *other = json_object_get(x->body, "b");
    bool two = other && !json_is_null(other);
    if (take_side(x, "a", &a) && (!two || take_side(x, "b", &b)) &&
        (settings = check_settings(x, json_object_get(x->body, "settings"))))
        begin(x, &a, &b, settings);
    free(settings);
    side_release(&a);
    side_release(&b);
}

/* --- ending one ----------------------------------------------------------------------------------------- */

static void cancel(struct td_exchange *x)
{
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    if (td_desk_cancel(x->desk, x->parameter[0], &error) == TDBG_OK)
        answer_comparison(x, 200, x->parameter[0]);
    else
        answer_trouble(x, &error);
}

static void forget(struct td_exchange *x)
{
    struct tdbg_error error;
    struct td_buffer nothing;
    if (!td_may_wait(x))
        return;
    td_buffer_init(&nothing, 0);
    if (td_desk_remove(x->desk, x->parameter[0], &error) == TDBG_OK)
        td_answer_json(x, 204, &nothing);
    else
        answer_trouble(x, &error);
}

/* --- following one -------------------------------------------------------------------------------------- */

struct following {
    struct td_desk *desk;
    struct td_news seen;
    char id[TD_ID_LENGTH + 1];
};

static bool next_event(void *context, struct td_buffer *out)
{
    struct following *f = context;
    struct td_buffer news;
    bool more = false;
    td_buffer_init(&news, MAX_ANSWER);
    bool known = td_desk_news(f->desk, f->id, &f->seen, &news, &more, NULL) == TDBG_OK;
    if (known && news.size) {
        td_buffer_puts(out, "event: change\ndata: ");
        td_buffer_append(out, news.data, news.size);
        td_buffer_puts(out, "\n\n");
    }
    td_buffer_release(&news);
    return known && more;
}

static void follow(struct td_exchange *x)
{
    struct td_buffer news;
    struct tdbg_error error;
    bool more;
    struct following *f = calloc(1, sizeof *f);
    td_buffer_init(&news, MAX_ANSWER);
    if (!f)
        td_answer_error(x, 503, "out of memory");
    else if (td_desk_news(x->desk, x->parameter[0], &(struct td_news){0}, &news, &more, &error) != TDBG_OK)
        td_answer_failure(x, &error);
    else {
        f->desk = x->desk;
        memcpy(f->id, x->parameter[0], sizeof f->id); /* it is known, so it has the length of one */
        td_answer_events(x, &(struct td_events){f, next_event, free});
        f = NULL;
    }
    free(f);
    td_buffer_release(&news);
}

/* --- what came out, and the page's notes ---------------------------------------------------------------- */

static void result(struct td_exchange *x)
{
    struct td_buffer body;
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    td_buffer_init(&body, MAX_ANSWER);
    if (td_desk_result(x->desk, x->parameter[0], &body, &error) == TDBG_OK)
        td_answer_json(x, 200, &body);
    else
        td_answer_failure(x, &error);
    td_buffer_release(&body);
}

static void state(struct td_exchange *x)
{
    struct td_buffer body;
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    td_buffer_init(&body, MAX_ANSWER);
    if (td_desk_state(x->desk, x->parameter[0], &body, &error) == TDBG_OK)
        td_answer_json(x, 200, &body);
    else
        answer_trouble(x, &error);
    td_buffer_release(&body);
}

static void keep_state(struct td_exchange *x)
{
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    char *text = json_is_object(x->body) ? json_dumps(x->body, JSON_COMPACT) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (!json_is_object(x->body))
        td_answer_error(x, 400, "the body is not an object");
    else if (!text)
        td_answer_error(x, 503, "out of memory");
    else if (size > MAX_STATE)
        td_answer_error(x, 413, "notes of %zu bytes; %d are the most", size, MAX_STATE);
    else if (td_desk_put_state(x->desk, x->parameter[0], text, size, &error) == TDBG_OK)
        state(x);
    else
        answer_trouble(x, &error);
    free(text);
}

static void change_state(struct td_exchange *x)
{
    struct tdbg_error error;
    int64_t generation;
    if (!td_may_wait(x) || !td_query_int(x, "generation", 0, INT64_MAX, -1, &generation))
        return;
    if (!json_is_object(x->body))
        td_answer_error(x, 400, "the body is not an object");
    else if (td_desk_patch_state(x->desk, x->parameter[0], generation, x->body, MAX_STATE, &error) == TDBG_OK)
        state(x);
    else if (error.status == TDBG_LIMIT)
        td_answer_error(x, 413, "%s", error.message);
    else
        answer_trouble(x, &error);
}

const struct td_route td_routes_comparisons[] = {
    {"GET", "/api/v1/comparisons", TD_BODY_NONE, list},
    {"POST", "/api/v1/comparisons", TD_BODY_JSON, create},
    {"GET", "/api/v1/comparisons/{}", TD_BODY_NONE, show},
    {"DELETE", "/api/v1/comparisons/{}", TD_BODY_NONE, forget},
    {"POST", "/api/v1/comparisons/{}/cancel", TD_BODY_NONE, cancel},
    {"PUT", "/api/v1/comparisons/{}/settings", TD_BODY_JSON, configure},
    {"GET", "/api/v1/comparisons/{}/result", TD_BODY_NONE, result},
    {"GET", "/api/v1/comparisons/{}/events", TD_BODY_NONE, follow},
    {"GET", "/api/v1/comparisons/{}/state", TD_BODY_NONE, state},
    {"PUT", "/api/v1/comparisons/{}/state", TD_BODY_JSON, keep_state},
    {"PATCH", "/api/v1/comparisons/{}/state", TD_BODY_JSON, change_state},
    {0},
};
