/* follow_json.c: see follow_json.h. Points of a series are rounded to float32, which is finer than any
 * screen; what is written out in words (`last`) is not. */
#include "report/follow_json.h"

#include "report/check_json.h"
#include "store/run_state.h"

#include <math.h>
#include <stdlib.h>

/* Rows of tables sent at most: more than anybody reads. */
enum { MOST_LAYERS = 400, MOST_ALERTS = 200, LONGEST_PATH = 1024 };

static void put_short(struct td_json *j, double value)
{
    td_json_float(j, (double)(float)value, &td_float32);
}

/* [step, value], or [step, low, high, last] where a point stands for many. `brief`: the greatest of them, or
 * what is not finite. */
static void put_trail(struct td_json *j, const char *key, const struct td_trail *t, bool brief)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; i < t->count; i++) {
        const struct td_trail_point *p = &t->points[i];
        td_json_begin_array(j);
        td_json_int(j, p->step);
        if (t->stride > 1 && !brief) {
            put_short(j, p->low);
            put_short(j, p->high);
        }
        put_short(j, brief && isfinite(p->last) ? p->high : p->last);
        td_json_end_array(j);
    }
    td_json_end_array(j);
}

static void put_tracks(struct td_json *j, const char *key, const struct td_tracks *t, uint64_t since,
                       bool brief)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; i < t->count; i++) {
        const struct td_track *track = t->items[i];
        if (track->serial <= since)
            continue;
        td_json_begin_object(j);
        td_json_field_string(j, "name", track->name);
        td_json_field_number(j, "last", track->last);
        td_json_field_int(j, "step", track->last_step);
        td_json_field_uint(j, "count", track->count);
        put_trail(j, "points", &track->trail, brief);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

/* --- Facts ---------------------------------------------------------------------------------------------- */

void td_run_facts_json(struct td_json *j, const struct td_run_facts *facts)
{
    td_json_field_string(j, "program", facts->program);
    td_json_field_string(j, "host", facts->host);
    td_json_field_int(j, "pid", facts->pid);
    td_json_field_int(j, "rank", facts->rank);
    td_json_field_int(j, "world", facts->world);
    td_json_field_int(j, "started", facts->started);
    td_json_field_int(j, "ended_ns", facts->ended_ns);
    td_json_field_string(j, "state", td_run_state(facts));
    td_json_field_string(j, "capture", facts->capture);
}

static void put_progress(struct td_json *j, const struct td_follow *f)
{
    td_json_key(j, "progress");
    td_json_begin_object(j);
    td_json_field_uint(j, "steps", f->steps);
    td_json_key(j, "step");
    if (f->steps)
        td_json_int(j, f->last.number);
    else
        td_json_null(j);
    td_json_field_int(j, "step_ns", f->last.end_ns - f->last.begin_ns);
    td_json_field_int(j, "rss", f->last.rss);
    td_json_field_uint(j, "tensors", f->tensors);
    td_json_field_uint(j, "scalars", f->scalar_rows);
    td_json_field_int(j, "last_ns", f->last_ns);
    td_json_end_object(j);
}

/* --- Layers --------------------------------------------------------------------------------------------- */

static void put_path(struct td_buffer *out, const struct td_layers *l, uint32_t id)
{
    uint32_t way[64];
    size_t depth = 0;
    for (; id > 0 && id <= l->count && depth < sizeof way / sizeof *way; id = l->items[id - 1].parent)
        way[depth++] = id;
    while (depth-- > 0) {
        td_buffer_puts(out, l->items[way[depth] - 1].name);
        td_buffer_puts(out, depth ? "/" : "");
    }
}

struct ranked {
    int64_t self_ns;
    uint32_t id;
};

static int slowest_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->self_ns != y->self_ns)
        return x->self_ns > y->self_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void put_layer(struct td_json *j, const struct td_layers *l, const struct ranked *r)
{
    struct td_buffer path;
    td_buffer_init(&path, LONGEST_PATH);
    put_path(&path, l, r->id);
    td_json_begin_object(j);
    td_json_field_string(j, "path", td_buffer_text(&path));
    td_json_field_uint(j, "calls", l->items[r->id - 1].calls);
    td_json_field_int(j, "total_ns", l->items[r->id - 1].total_ns);
    td_json_field_int(j, "self_ns", r->self_ns);
    td_json_end_object(j);
    td_buffer_release(&path);
}

static void put_layers(struct td_json *j, const struct td_layers *l)
{
    struct ranked *ranked = calloc(l->count + 1, sizeof *ranked);
    int64_t all = 0;
    for (uint32_t i = 0; ranked && i < l->count; i++) {
        ranked[i] = (struct ranked){td_layer_self_ns(&l->items[i]), i + 1};
        all += ranked[i].self_ns;
    }
    if (ranked)
        qsort(ranked, l->count, sizeof *ranked, slowest_first);
    td_json_key(j, "layers");
    td_json_begin_object(j);
    td_json_field_uint(j, "count", l->count);
    td_json_field_int(j, "self_ns", all);
    td_json_key(j, "rows");
    td_json_begin_array(j);
    for (size_t i = 0; ranked && i < l->count && i < MOST_LAYERS; i++)
        if (l->items[ranked[i].id - 1].calls)
            put_layer(j, l, &ranked[i]);
    td_json_end_array(j);
    td_json_end_object(j);
    free(ranked);
}

/* --- Alerts and notes ----------------------------------------------------------------------------------- */

static void put_alerts(struct td_json *j, struct td_follow *f)
{
    size_t count = td_checker_count(f->checker);
    td_json_key(j, "alerts");
    td_json_begin_object(j);
    td_json_field_uint(j, "count", count);
    td_json_key(j, "rows");
    td_json_begin_array(j);
    for (size_t i = 0; i < count && i < MOST_ALERTS; i++)
        td_finding_json(j, td_checker_finding(f->checker, i));
    td_json_end_array(j);
    td_json_end_object(j);
}

static void put_notes(struct td_json *j, const struct td_follow *f)
{
    uint64_t first = f->note_count > TD_FOLLOW_NOTES ? f->note_count - TD_FOLLOW_NOTES : 0;
    td_json_key(j, "notes");
    td_json_begin_array(j);
    for (uint64_t i = first; i < f->note_count; i++) {
        const struct td_followed_note *note = &f->notes[i % TD_FOLLOW_NOTES];
        td_json_begin_object(j);
        td_json_field_string(j, "kind", note->kind);
        td_json_field_string(j, "text", note->text);
        td_json_field_int(j, "step", note->step);
        td_json_field_int(j, "time_ns", note->time_ns);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

void td_follow_json(struct td_json *j, struct td_follow *f, uint64_t since)
{
    td_json_field_uint(j, "serial", f->serial);
    if (f->facts_serial > since) {
        td_json_key(j, "facts");
        td_json_begin_object(j);
        td_run_facts_json(j, &f->facts);
        td_json_end_object(j);
    }
    put_progress(j, f);
    put_tracks(j, "scalars", &f->scalars, since, false);
    put_tracks(j, "gradients", &f->gradients, since, true);
    if (f->steps_serial > since || since == 0) {
        td_json_key(j, "steps");
        td_json_begin_object(j);
        put_trail(j, "seconds", &f->seconds, false);
        put_trail(j, "memory", &f->memory, false);
        td_json_end_object(j);
    }
    if (f->layers.serial > since || since == 0)
        put_layers(j, &f->layers);
    if (f->alerts_serial > since || since == 0)
        put_alerts(j, f);
    if (f->notes_serial > since || since == 0)
        put_notes(j, f);
}
