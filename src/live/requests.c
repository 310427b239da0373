/* requests.c: what a client may ask of a live run: a table of verbs. docs/console.md is their manual.
 *
 * A request is one line, {"id": 7, "do": "break", "pattern": "layers.*", "when": "nan"}, and its answer one
 * line, {"id": 7, "ok": true, …} or {"id": 7, "ok": false, "error": "…"}. Parameters are text.
 */
#include "live/control_core.h"

#include "kernel/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    struct td_control *control;
    struct client *client;
    const json_t *parameters;
    struct td_json *j; /* members of the answer */
    int file;          /* to go with it; -1: none */
};

/* --- parameters ----------------------------------------------------------------------------------------- */

static const char *text_of(const struct request *r, const char *key)
{
    return json_string_value(json_object_get(r->parameters, key));
}

static tdbg_status need_text(const struct request *r, const char *key, const char **out,
                             struct tdbg_error *error)
{
    *out = text_of(r, key);
    return *out ? TDBG_OK : td_fail(error, TDBG_MISUSE, "the parameter \"%s\" is missing", key);
}

static tdbg_status need_number(const struct request *r, long *out, struct tdbg_error *error)
{
    const char *text = text_of(r, "number");
    char *end;
    *out = text ? strtol(text, &end, 10) : (long)json_integer_value(json_object_get(r->parameters, "number"));
    if ((text && (end == text || *end)) || *out <= 0)
        return td_fail(error, TDBG_MISUSE, "the number of a breakpoint or a watch is missing");
    return TDBG_OK;
}

static bool is_always(const struct request *r)
{
    const char *hold = text_of(r, "hold");
    return hold && strcmp(hold, "always") == 0;
}

/* --- what is going on ----------------------------------------------------------------------------------- */

static tdbg_status do_state(struct request *r, struct tdbg_error *error)
{
    const struct td_control *c = r->control;
    (void)error;
    td_json_field_string(r->j, "state", c->stop ? "stopped" : "running");
    td_json_field_int(r->j, "pid", c->process);
    td_json_field_int(r->j, "attached", c->attached);
    if (c->stepped)
        td_json_field_int(r->j, "step", c->step);
    if (c->stop) {
        td_json_key(r->j, "stop");
        td_json_begin_object(r->j);
        control_stop_json(r->j, c->stop);
        td_json_end_object(r->j);
    }
    return TDBG_OK;
}

static tdbg_status do_attach(struct request *r, struct tdbg_error *error)
{
    if (!r->client->attached) {
        r->client->attached = true;
        r->control->attached++;
        control_observe(r->control);
    }
    return do_state(r, error);
}

static tdbg_status do_detach(struct request *r, struct tdbg_error *error)
{
    struct td_control *c = r->control;
    (void)error;
    if (text_of(r, "clear"))
        breakpoints_clear(c);
    if (r->client->attached) {
        r->client->attached = false;
        c->attached--;
    }
    if (c->attached == 0) {
        c->plan = (struct plan){0};
        control_let_go(c);
    }
    control_observe(c);
    return TDBG_OK;
}

static tdbg_status do_seen(struct request *r, struct tdbg_error *error)
{
    const struct td_control *c = r->control;
    (void)error;
    if (c->stepped)
        td_json_field_int(r->j, "step", c->step);
    td_json_key(r->j, "tensors");
    td_json_begin_array(r->j);
    for (size_t i = 0; i < c->seen_count; i++) {
        const struct seen *s = &c->seen[i];
        td_json_begin_object(r->j);
        td_json_field_string(r->j, "name", s->name);
        td_json_field_string(r->j, "dtype", td_dtype_name(s->dtype));
        td_json_key(r->j, "shape");
        td_json_ints(r->j, s->shape.size, (size_t)s->shape.ndim);
        if (s->measured) {
            td_json_key(r->j, "stats");
            td_statistics_json(r->j, &s->stats);
        }
        td_json_end_object(r->j);
    }
    td_json_end_array(r->j);
    return TDBG_OK;
}

/* The stopped thread cannot go on before this one has answered: see control_core.h. */
static tdbg_status do_fetch(struct request *r, struct tdbg_error *error)
{
    struct td_control *c = r->control;
    const char *slice = text_of(r, "slice");
    if (!c->stop || !c->stop->tensor)
        return td_fail(error, TDBG_MISUSE,
                       c->stop ? "the run is stopped at a scope: 'step' goes to a tensor"
                               : "the run is not stopped");
    const struct stop *stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    tdbg_status status = control_copy(&r->file, stop->moment->name, stop->tensor, slice ? slice : "", error);
    pthread_mutex_lock(&c->lock);
    if (status == TDBG_OK)
        td_json_field_string(r->j, "name", stop->moment->name);
    return status;
}

/* --- breakpoints ---------------------------------------------------------------------------------------- */

static tdbg_status do_break(struct request *r, struct tdbg_error *error)
{
    const char *pattern;
    int number;
    TD_TRY(need_text(r, "pattern", &pattern, error));
    TD_TRY(breakpoint_add(r->control, pattern, text_of(r, "when"), text_of(r, "once") != NULL, is_always(r),
                          &number, error));
    control_observe(r->control);
    td_json_field_int(r->j, "number", number);
    return TDBG_OK;
}

static tdbg_status do_breakpoints(struct request *r, struct tdbg_error *error)
{
    (void)error;
    td_json_key(r->j, "breakpoints");
    td_json_begin_array(r->j);
    for (int i = 0; i < r->control->breakpoint_count; i++)
        breakpoint_json(r->j, r->control->breakpoints[i]);
    td_json_end_array(r->j);
    return TDBG_OK;
}

static tdbg_status find_breakpoint(const struct request *r, int *index, struct tdbg_error *error)
{
    long number;
    TD_TRY(need_number(r, &number, error));
    for (int i = 0; i < r->control->breakpoint_count; i++)
        if (r->control->breakpoints[i]->number == number) {
            *index = i;
            return TDBG_OK;
        }
    return td_fail(error, TDBG_NOTFOUND, "no breakpoint %ld", number);
}

static tdbg_status set_enabled(struct request *r, bool enabled, struct tdbg_error *error)
{
    int index;
    TD_TRY(find_breakpoint(r, &index, error));
    r->control->breakpoints[index]->enabled = enabled;
    return TDBG_OK;
}

static tdbg_status do_enable(struct request *r, struct tdbg_error *error)
{
    return set_enabled(r, true, error);
}

static tdbg_status do_disable(struct request *r, struct tdbg_error *error)
{
    return set_enabled(r, false, error);
}

static tdbg_status do_delete(struct request *r, struct tdbg_error *error)
{
    int index;
    TD_TRY(find_breakpoint(r, &index, error));
    breakpoint_remove(r->control, index);
    control_observe(r->control);
    return TDBG_OK;
}

/* --- watches and capture -------------------------------------------------------------------------------- */

static tdbg_status do_watch(struct request *r, struct tdbg_error *error)
{
    struct td_control *c = r->control;
    const char *text;
    TD_TRY(need_text(r, "watch", &text, error));
    if (c->watch_count == MOST_WATCHES)
        return td_fail(error, TDBG_LIMIT, "there are %d watches already", MOST_WATCHES);
    struct watched *w = calloc(1, sizeof *w);
    if (!w)
        return td_fail_nomem(error);
    tdbg_status status = td_watch_init(&w->watch, text, error);
    if (status != TDBG_OK) {
        free(w);
        return status;
    }
    w->number = ++c->watch_number;
    c->watches[c->watch_count++] = w;
    control_observe(c);
    td_json_field_int(r->j, "number", w->number);
    return TDBG_OK;
}

static tdbg_status do_watches(struct request *r, struct tdbg_error *error)
{
    (void)error;
    td_json_key(r->j, "watches");
    td_json_begin_array(r->j);
    for (int i = 0; i < r->control->watch_count; i++) {
        td_json_begin_object(r->j);
        td_json_field_int(r->j, "number", r->control->watches[i]->number);
        td_json_field_string(r->j, "watch", r->control->watches[i]->watch.text);
        td_json_end_object(r->j);
    }
    td_json_end_array(r->j);
    return TDBG_OK;
}

static tdbg_status do_unwatch(struct request *r, struct tdbg_error *error)
{
    struct td_control *c = r->control;
    long number;
    TD_TRY(need_number(r, &number, error));
    for (int i = 0; i < c->watch_count; i++) {
        if (c->watches[i]->number != number)
            continue;
        td_watch_release(&c->watches[i]->watch);
        free(c->watches[i]);
        c->watch_count--;
        memmove(&c->watches[i], &c->watches[i + 1], (size_t)(c->watch_count - i) * sizeof *c->watches);
        control_observe(c);
        return TDBG_OK;
    }
    return td_fail(error, TDBG_NOTFOUND, "no watch %ld", number);
}

static tdbg_status do_capture(struct request *r, struct tdbg_error *error)
{
    const char *rules;
    TD_TRY(need_text(r, "rules", &rules, error));
    return td_run_set_capture(r->control->run, rules, error);
}

/* --- going on ------------------------------------------------------------------------------------------- */

static tdbg_status do_continue(struct request *r, struct tdbg_error *error)
{
    (void)error;
    r->control->plan = (struct plan){0};
    control_let_go(r->control);
    control_observe(r->control);
    return TDBG_OK;
}

/* Of the thread that is held; of any where none is. */
static tdbg_status go(struct request *r, enum plan_kind kind, struct tdbg_error *error)
{
    struct td_control *c = r->control;
    if (c->attached == 0 && !is_always(r))
        return td_fail(error, TDBG_MISUSE, "nobody is attached: attach, or say \"hold\": \"always\"");
    struct plan plan = {.kind = PLAN_STEP, .any_thread = true, .always = is_always(r)};
    if (c->stop)
        plan = (struct plan){.kind = kind,
                             .always = plan.always,
                             .thread = c->stop->moment->thread,
                             .depth = c->stop->moment->depth};
    c->plan = plan;
    control_let_go(c);
    control_observe(c);
    return TDBG_OK;
}

static tdbg_status do_step(struct request *r, struct tdbg_error *error)
{
    return go(r, PLAN_STEP, error);
}

static tdbg_status do_next(struct request *r, struct tdbg_error *error)
{
    return go(r, PLAN_NEXT, error);
}

/* --- the table ------------------------------------------------------------------------------------------ */

static const struct {
    const char *verb;
    tdbg_status (*run)(struct request *r, struct tdbg_error *error);
} verbs[] = {
    {"attach", do_attach},
    {"detach", do_detach},
    {"state", do_state},
    {"seen", do_seen},
    {"fetch", do_fetch},
    {"break", do_break},
    {"breakpoints", do_breakpoints},
    {"enable", do_enable},
    {"disable", do_disable},
    {"delete", do_delete},
    {"watch", do_watch},
    {"watches", do_watches},
    {"unwatch", do_unwatch},
    {"capture", do_capture},
    {"continue", do_continue},
    {"step", do_step},
    {"next", do_next},
};

static tdbg_status perform(struct request *r, struct tdbg_error *error)
{
    const char *verb = text_of(r, "do");
    if (!verb)
        return td_fail(error, TDBG_MISUSE, "a request is an object with the member \"do\"");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].verb, verb) == 0)
            return verbs[i].run(r, error);
    return td_fail(error, TDBG_MISUSE, "no request '%.40s'", verb);
}

/* An object under way is thrown away when the request fails: its members would be half an answer. */
static void write_answer(struct request *r, struct td_buffer *out)
{
    struct td_json json;
    struct tdbg_error error;
    int64_t id = json_integer_value(json_object_get(r->parameters, "id"));
    r->j = &json;
    td_json_to_buffer(&json, out);
    td_json_begin_object(&json);
    td_json_field_int(&json, "id", id);
    td_json_field_bool(&json, "ok", true);
    if (perform(r, &error) != TDBG_OK) {
        td_buffer_clear(out);
        td_json_to_buffer(&json, out);
        td_json_begin_object(&json);
        td_json_field_int(&json, "id", id);
        td_json_field_bool(&json, "ok", false);
        td_json_field_string(&json, "error", error.message);
    }
    td_json_end_object(&json);
    td_json_newline(&json);
    if (!td_json_finish(&json))
        out->failed = true;
}

void control_answer(struct td_control *c, struct client *client, const char *line, size_t length)
{
    json_t *parameters = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    struct request r = {.control = c, .client = client, .parameters = parameters, .file = -1};
    struct td_buffer answer;
    td_buffer_init(&answer, client->out.limit);
    write_answer(&r, &answer);
    if (r.file >= 0 && (client->file >= 0 || answer.failed)) { /* it does not read what it asks for */
        close(r.file);
        client->doomed = true;
    } else if (r.file >= 0) {
        client->file = r.file;
        client->file_at = client->out.size;
    }
    td_buffer_append(&client->out, answer.data, answer.size);
    if (answer.failed)
        client->doomed = true;
    td_buffer_release(&answer);
    json_decref(parameters);
}
