/* follow.c: see follow.h. */
#include "analyse/follow.h"

#include "analyse/series.h"
#include "store/run_state.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Tracks --------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct td_track *)a)->name, ((const struct td_track *)b)->name);
}

static void forget(void *track)
{
    (void)track; /* freed with its list */
}

static void tracks_release(struct td_tracks *t)
{
    tdestroy(t->by_name, forget);
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i]->name);
        free(t->items[i]);
    }
    free(t->items);
}

static struct td_track *new_track(const char *name, size_t points)
{
    struct td_track *track = calloc(1, sizeof *track);
    if (track && !(track->name = strdup(name))) {
        free(track);
        return NULL;
    }
    if (track)
        td_trail_init(&track->trail, points);
    return track;
}

static struct td_track *add_track(struct td_tracks *t, const char *name)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        struct td_track **grown = realloc(t->items, room * sizeof(struct td_track *));
        if (!grown)
            return NULL;
        t->items = grown;
        t->room = room;
    }
    struct td_track *track = new_track(name, t->points);
    if (!track || !tsearch(track, &t->by_name, by_name)) {
        if (track)
            free(track->name);
        free(track);
        return NULL;
    }
    t->items[t->count++] = track;
    return track;
}

/* False when memory ran out. */
static bool tracks_add(struct td_tracks *t, const char *name, int64_t step, double value, uint64_t serial)
{
    struct td_track key = {.name = (char *)(uintptr_t)name};
    struct td_track **node = tfind(&key, &t->by_name, by_name), *track = node ? *node : NULL;
    if (!track && t->count >= t->most) {
        t->left_out++;
        return true;
    }
    if (!track && !(track = add_track(t, name)))
        return false;
    td_trail_add(&track->trail, step, value);
    track->last = value;
    track->last_step = step;
    track->count++;
    track->serial = serial;
    return true;
}

/* --- Rows ----------------------------------------------------------------------------------------------- */

static void newest(struct td_follow *f, int64_t time_ns)
{
    if (time_ns > f->last_ns)
        f->last_ns = time_ns;
}

static bool visit_scalar(void *context, const struct td_run_scalar *row)
{
    struct td_follow *f = context;
    f->nomem = !td_checker_scalar(f->checker, row) ||
               !tracks_add(&f->scalars, row->name, row->step, row->value, f->serial + 1);
    f->after_scalar = row->id;
    f->scalar_rows++;
    newest(f, row->time_ns);
    return !f->nomem;
}

static bool visit_tensor(void *context, const struct td_run_tensor *row)
{
    struct td_follow *f = context;
    f->nomem = !td_checker_tensor(f->checker, row);
    if (td_role_of_tensor(row->name, row->dtype) == TD_ROLE_GRADIENT)
        f->nomem = f->nomem || !tracks_add(&f->gradients, row->name, row->step,
                                           td_root_mean_square(&row->stats), f->serial + 1);
    f->after_tensor = row->id;
    f->tensors++;
    newest(f, row->time_ns);
    return !f->nomem;
}

static bool visit_step(void *context, const struct td_run_step *row)
{
    struct td_follow *f = context;
    f->nomem = !td_checker_step(f->checker, row);
    td_trail_add(&f->seconds, row->number, 1e-9 * (double)(row->end_ns - row->begin_ns));
    td_trail_add(&f->memory, row->number, (double)row->rss);
    f->last = *row;
    f->after_step = row->ordinal;
    f->steps++;
    f->steps_serial = f->serial + 1;
    newest(f, row->end_ns);
    return !f->nomem;
}

static bool visit_note(void *context, const struct td_run_note *row)
{
    struct td_follow *f = context;
    struct td_followed_note *note = &f->notes[f->note_count++ % TD_FOLLOW_NOTES];
    *note = (struct td_followed_note){.id = row->id, .step = row->step, .time_ns = row->time_ns};
    snprintf(note->kind, sizeof note->kind, "%s", row->kind);
    snprintf(note->text, sizeof note->text, "%s", row->text);
    f->after_note = row->id;
    f->notes_serial = f->serial + 1;
    newest(f, row->time_ns);
    return true;
}

/* --- Layers --------------------------------------------------------------------------------------------- */

static bool visit_scope(void *context, const struct td_run_scope *row)
{
    struct td_follow *f = context;
    struct td_layers *l = &f->layers;
    f->after_scope = row->id;
    if (row->id != l->count + 1 || l->count >= TD_FOLLOW_SCOPES) /* those beyond count as left out */
        return true;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct td_layer *grown = realloc(l->items, room * sizeof *grown);
        f->nomem = !grown;
        if (!grown)
            return false;
        l->items = grown;
        l->room = room;
    }
    struct td_layer layer = {.name = strdup(row->name), .parent = row->parent};
    f->nomem = !layer.name;
    if (layer.name)
        l->items[l->count++] = layer;
    return !f->nomem;
}

static bool visit_spans(void *context, int64_t id, int64_t step, const struct td_run_span *spans,
                        size_t count)
{
    struct td_follow *f = context;
    struct td_layers *l = &f->layers;
    (void)step;
    for (size_t i = 0; i < count; i++) {
        const struct td_run_span *s = &spans[i];
        if (s->scope == 0 || s->scope > l->count) {
            l->left_out++;
            continue;
        }
        struct td_layer *layer = &l->items[s->scope - 1];
        layer->calls++;
        layer->total_ns += s->end_ns - s->begin_ns;
        if (layer->parent > 0 && layer->parent <= l->count)
            l->items[layer->parent - 1].children_ns += s->end_ns - s->begin_ns;
        newest(f, s->end_ns);
    }
    l->calls += count;
    l->serial = f->serial + 1;
    f->after_spans = id;
    return true;
}

/* Children on other threads can take longer than the scope that waits for them. */
int64_t td_layer_self_ns(const struct td_layer *layer)
{
    return layer->total_ns > layer->children_ns ? layer->total_ns - layer->children_ns : 0;
}

/* --- Following ------------------------------------------------------------------------------------------ */

tdbg_status td_follow_open(struct td_follow **out, const char *dir, struct tdbg_error *error)
{
    struct td_rule_setting settings[TD_RULES];
    struct td_follow *f = calloc(1, sizeof *f);
    if (!f)
        return td_fail_nomem(error);
    f->scalars.most = TD_FOLLOW_SCALARS;
    f->scalars.points = TD_TRAIL_POINTS;
    f->gradients.most = TD_FOLLOW_GRADIENTS;
    f->gradients.points = TD_TRAIL_POINTS / 4; /* there are many, and they are drawn small */
    f->after_step = f->after_scope = f->after_spans = f->after_tensor = f->after_scalar = f->after_note = -1;
    td_trail_init(&f->seconds, TD_TRAIL_POINTS);
    td_trail_init(&f->memory, TD_TRAIL_POINTS);
    td_rules_default(settings);
    tdbg_status status = td_run_store_open(&f->store, dir, error);
    if (status == TDBG_OK)
        status = td_checker_open(&f->checker, settings, error);
    if (status == TDBG_OK)
        *out = f;
    else
        td_follow_close(&f);
    return status;
}

void td_follow_close(struct td_follow **follow)
{
    struct td_follow *f = *follow;
    if (!f)
        return;
    tracks_release(&f->scalars);
    tracks_release(&f->gradients);
    for (size_t i = 0; i < f->layers.count; i++)
        free(f->layers.items[i].name);
    free(f->layers.items);
    td_checker_close(&f->checker);
    td_run_store_close(&f->store);
    free(f);
    *follow = NULL;
}

static void take_facts(struct td_follow *f, const struct td_run_facts *facts)
{
    const char *state = td_run_state(facts);
    bool same = f->state && strcmp(f->state, state) == 0 && strcmp(f->facts.capture, facts->capture) == 0 &&
                f->facts.ended_ns == facts->ended_ns;
    f->facts = *facts;
    f->state = state;
    if (!same)
        f->facts_serial = f->serial + 1;
}

static tdbg_status read_rows(struct td_follow *f, struct tdbg_error *error)
{
    struct td_run_facts facts;
    TD_TRY(td_run_facts(f->store, &facts, error));
    take_facts(f, &facts);
    TD_TRY(td_run_each_scalar(f->store, f->after_scalar, visit_scalar, f, error));
    TD_TRY(td_run_each_tensor(f->store, f->after_tensor, visit_tensor, f, error));
    TD_TRY(td_run_each_scope(f->store, f->after_scope, visit_scope, f, error));
    TD_TRY(td_run_each_spans(f->store, f->after_spans, visit_spans, f, error));
    TD_TRY(td_run_each_note(f->store, f->after_note, visit_note, f, error));
    TD_TRY(td_run_each_step(f->store, f->after_step, visit_step, f, error));
    return f->nomem ? td_fail_nomem(error) : TDBG_OK;
}

/* A step that ends gives its number to what was found in it. */
static void notice_alerts(struct td_follow *f)
{
    uint64_t offences = 0;
    for (size_t i = 0; i < td_checker_count(f->checker); i++)
        offences += td_checker_finding(f->checker, i)->times;
    if (offences != f->offences || (offences && f->steps_serial > f->serial))
        f->alerts_serial = f->serial + 1;
    f->offences = offences;
}

tdbg_status td_follow_refresh(struct td_follow *f, struct tdbg_error *error)
{
    uint64_t rows = f->scalar_rows + f->tensors + f->steps + f->layers.calls + f->note_count;
    TD_TRY(td_run_begin(f->store, error));
    tdbg_status status = read_rows(f, error);
    tdbg_status ended = td_run_commit(f->store, status == TDBG_OK ? error : NULL);
    if (status != TDBG_OK || ended != TDBG_OK)
        return status != TDBG_OK ? status : ended;
    notice_alerts(f);
    if (rows != f->scalar_rows + f->tensors + f->steps + f->layers.calls + f->note_count ||
        f->facts_serial > f->serial)
        f->serial++;
    return TDBG_OK;
}
