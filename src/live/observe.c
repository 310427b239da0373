/* observe.c: what the threads of the model do while somebody debugs them: they look at each tensor and scope
 * before it is recorded, and wait where they are told to. See control_core.h for who holds which lock.
 *
 * One thread is held at a time; another one that meets a breakpoint meanwhile waits for its turn.
 */
#include "live/control_core.h"

#include "base/pattern.h"
#include "kernel/stats.h"
#include "record/lane.h"
#include "session/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What was found out about a tensor, without the lock. */
struct look {
    bool wanted, measured;
    struct tdbg_stats stats;
    size_t call; /* of the tensors of its name in the step, from 1; 0: not known */
    int count;
    struct {
        struct td_earlier_run *run;
        bool differs;
        char why[TD_DIVERGENCE_TEXT];
    } earlier[TD_MOST_EARLIER];
};

/* --- the step and its scopes ---------------------------------------------------------------------------- */

void control_forget(struct td_control *c)
{
    for (size_t i = 0; i < c->seen_count; i++)
        free(c->seen[i].name);
    c->seen_count = 0;
}

static void note_step(struct td_control *c, const struct td_moment *moment)
{
    if (c->stepped && c->step == moment->step)
        return;
    control_forget(c);
    c->step = moment->step;
    c->partial = c->partial && !c->stepped;
    c->stepped = true;
}

static void remember(struct td_control *c, const struct td_moment *moment, const struct td_tensor *tensor,
                     const struct look *look)
{
    if (c->seen_count == c->seen_room) {
        size_t room = c->seen_room ? 2 * c->seen_room : 64;
        struct seen *more = room <= MOST_SEEN ? realloc(c->seen, room * sizeof *more) : NULL;
        if (!more)
            return;
        c->seen = more;
        c->seen_room = room;
    }
    char *name = strdup(moment->name);
    if (name)
        c->seen[c->seen_count++] = (struct seen){.name = name,
                                                 .dtype = tensor->dtype,
                                                 .shape = tensor->shape,
                                                 .measured = look->measured,
                                                 .stats = look->stats};
}

/* From the outermost to the innermost. Those of a held thread stay as they are. */
static void scopes_json(struct td_json *j, const struct td_moment *moment)
{
    const char *names[TD_MAX_SCOPE_DEPTH];
    int count = 0;
    for (const struct td_node *s = moment->scope; s && s->name && count < TD_MAX_SCOPE_DEPTH; s = s->parent)
        names[count++] = s->name;
    td_json_begin_array(j);
    while (count > 0)
        td_json_string(j, names[--count]);
    td_json_end_array(j);
}

/* --- holding -------------------------------------------------------------------------------------------- */

void control_stop_json(struct td_json *j, const struct stop *stop)
{
    const struct td_tensor *t = stop->tensor;
    td_json_field_string(j, "kind", t ? "tensor" : "scope");
    td_json_field_string(j, "name", stop->moment->name);
    td_json_field_int(j, "step", stop->moment->step);
    td_json_field_uint(j, "thread", stop->moment->thread);
    td_json_field_string(j, "reason", stop->reason);
    td_json_field_int(j, "breakpoint", stop->breakpoint);
    td_json_key(j, "scopes");
    scopes_json(j, stop->moment);
    if (!t)
        return;
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    if (stop->measured) {
        td_json_key(j, "stats");
        td_statistics_json(j, &stop->stats);
    }
}

static void tell(struct td_control *c, const char *event, const struct stop *stop)
{
    struct td_buffer line;
    struct td_json j;
    td_buffer_init(&line, 1 << 20);
    td_json_to_buffer(&j, &line);
    td_json_begin_object(&j);
    td_json_field_string(&j, "event", event);
    if (stop)
        control_stop_json(&j, stop);
    td_json_end_object(&j);
    td_json_newline(&j);
    if (td_json_finish(&j))
        control_tell(c, &line);
    td_buffer_release(&line);
}

void control_let_go(struct td_control *c)
{
    if (!c->stop)
        return;
    c->stop = NULL;
    tell(c, "resume", NULL);
    pthread_cond_broadcast(&c->changed);
}

/* Under the lock, which it leaves while it waits. */
static void hold(struct td_control *c, struct stop *stop)
{
    char note[TD_DIVERGENCE_TEXT + 256];
    snprintf(note, sizeof note, "%.200s: %s", stop->moment->name, stop->reason);
    pthread_mutex_unlock(&c->lock);
    td_run_note(c->run, "break", note);
    pthread_mutex_lock(&c->lock);
    while (c->stop && !c->closing)
        pthread_cond_wait(&c->changed, &c->lock);
    if (c->closing || (c->attached == 0 && !stop->always))
        return;
    c->stop = stop;
    c->plan = (struct plan){0};
    tell(c, "stop", stop);
    while (c->stop == stop && !c->closing)
        pthread_cond_wait(&c->changed, &c->lock);
}

/* --- deciding ------------------------------------------------------------------------------------------- */

static bool planned(const struct td_control *c, const struct td_moment *moment, bool tensor)
{
    const struct plan *p = &c->plan;
    if (p->kind == PLAN_NONE || (!p->any_thread && p->thread != moment->thread))
        return false;
    if (p->kind == PLAN_STEP)
        return tensor;
    return moment->depth <= p->depth;
}

/* The breakpoint stops here, and why. */
static bool meets(const struct breakpoint *b, const struct look *look, char *reason, size_t size)
{
    const struct td_condition *when = &b->condition;
    int used = snprintf(reason, size, "breakpoint %d", b->number);
    const struct td_test *test = look->measured ? td_condition_meet(when, &look->stats) : NULL;
    if (test)
        snprintf(reason + used, size - (size_t)used, ": %s %.6g %c %g", td_statistic_name(test->statistic),
                 td_statistic_value(test->statistic, &look->stats), test->kind == TD_TEST_LESS ? '<' : '>',
                 test->limit);
    if (test || when->count == 0)
        return true;
    for (int i = 0; i < when->count; i++)
        for (int k = 0; when->tests[i].kind == TD_TEST_DIVERGES && k < look->count; k++)
            if (look->earlier[k].run == b->earlier[i] && look->earlier[k].differs) {
                snprintf(reason + used, size - (size_t)used, ": %s", look->earlier[k].why);
                return true;
            }
    return false;
}

/* Whether to stop; counts the hits. A scope meets only breakpoints without a condition. */
static bool decide(struct td_control *c, const struct look *look, struct stop *stop)
{
    bool stops = planned(c, stop->moment, stop->tensor != NULL);
    if (stops) {
        snprintf(stop->reason, sizeof stop->reason, "step");
        stop->always = c->plan.always;
        c->plan = (struct plan){0};
    }
    for (int i = 0; i < c->breakpoint_count; i++) {
        struct breakpoint *b = c->breakpoints[i];
        char reason[sizeof stop->reason];
        if (!b->enabled || !td_pattern_fits(b->pattern, stop->moment->name) ||
            (!stop->tensor && b->condition.count > 0) || !meets(b, look, reason, sizeof reason))
            continue;
        b->hits++;
        stop->always = stop->always || b->always;
        if (stop->breakpoint == 0) {
            stop->breakpoint = b->number;
            memcpy(stop->reason, reason, sizeof reason);
        }
        stops = true;
        if (b->once)
            breakpoint_remove(c, i--);
    }
    return stops;
}

/* --- looking -------------------------------------------------------------------------------------------- */

static void want_earlier(struct look *look, struct td_earlier_run *run)
{
    for (int i = 0; i < look->count; i++)
        if (look->earlier[i].run == run)
            return;
    if (run && look->count < TD_MOST_EARLIER)
        look->earlier[look->count++].run = run;
}

static size_t count_calls(const struct td_control *c, const char *name)
{
    size_t calls = 1;
    for (size_t i = 0; i < c->seen_count; i++)
        calls += strcmp(c->seen[i].name, name) == 0;
    return c->partial ? 0 : calls;
}

/* What must be known of a tensor of this name. */
static void ask(const struct td_control *c, const char *name, struct look *look)
{
    const char *slice;
    look->wanted = c->attached > 0;
    for (int i = 0; i < c->breakpoint_count; i++) {
        const struct breakpoint *b = c->breakpoints[i];
        if (!b->enabled || !td_pattern_fits(b->pattern, name))
            continue;
        look->wanted = look->wanted || td_condition_needs_stats(&b->condition);
        for (int k = 0; k < b->condition.count; k++)
            want_earlier(look, b->earlier[k]);
    }
    for (int i = 0; i < c->watch_count; i++)
        look->wanted = look->wanted || (td_watch_fits(&c->watches[i]->watch, name, &slice) && !*slice);
    if (look->count > 0)
        look->call = count_calls(c, name);
}

static void find_out(struct look *look, const struct td_moment *moment, const struct td_tensor *tensor)
{
    if (look->wanted)
        look->measured = td_stats(tensor, NULL, NULL, &look->stats, NULL) == TDBG_OK;
    for (int i = 0; i < look->count; i++)
        look->earlier[i].differs = td_earlier_run_differs(look->earlier[i].run, tensor, moment->step,
                                                          moment->name, look->call, look->earlier[i].why);
}

static void tell_watch(struct td_control *c, const struct watched *w, const struct td_moment *moment,
                       const struct tdbg_stats *stats)
{
    struct td_buffer line;
    struct td_json j;
    td_buffer_init(&line, 1 << 16);
    td_json_to_buffer(&j, &line);
    td_json_begin_object(&j);
    td_json_field_string(&j, "event", "watch");
    td_json_field_int(&j, "number", w->number);
    td_json_field_string(&j, "watch", w->watch.text);
    td_json_field_string(&j, "name", moment->name);
    td_json_field_int(&j, "step", moment->step);
    td_json_field_number(&j, "value", td_statistic_value(w->watch.statistic, stats));
    td_json_end_object(&j);
    td_json_newline(&j);
    if (td_json_finish(&j))
        control_tell(c, &line);
    td_buffer_release(&line);
}

/* A slice that does not fit this tensor shows nothing. Slices are small: they are measured under the lock. */
static void show_watches(struct td_control *c, const struct td_moment *moment, const struct td_tensor *tensor,
                         const struct look *look)
{
    for (int i = 0; i < c->watch_count; i++) {
        const char *slice;
        struct td_selection part;
        struct tdbg_stats stats;
        if (!td_watch_fits(&c->watches[i]->watch, moment->name, &slice))
            continue;
        if (!*slice && look->measured)
            tell_watch(c, c->watches[i], moment, &look->stats);
        if (!*slice || td_selection_init(&part, tensor, slice, NULL) != TDBG_OK)
            continue;
        if (td_stats(&part.part, NULL, NULL, &stats, NULL) == TDBG_OK)
            tell_watch(c, c->watches[i], moment, &stats);
        td_selection_release(&part);
    }
}

/* Whoever comes to look finds the statistics of a stop, also where nobody needed them to decide. */
static void complete(struct td_control *c, struct look *look, struct stop *stop)
{
    if (stop->measured)
        return;
    look->wanted = true;
    pthread_mutex_unlock(&c->lock);
    find_out(look, stop->moment, stop->tensor);
    pthread_mutex_lock(&c->lock);
    stop->measured = look->measured;
    stop->stats = look->stats;
    for (size_t i = c->seen_count; i-- > 0;)
        if (strcmp(c->seen[i].name, stop->moment->name) == 0) {
            c->seen[i].measured = look->measured;
            c->seen[i].stats = look->stats;
            return;
        }
}

/* A forked child has neither the control thread, which could let it go, nor a lock it can trust. */
static bool is_child(const struct td_control *c)
{
    return getpid() != c->process;
}

static void leave(struct td_control *c)
{
    c->inside--;
    if (c->closing)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void control_on_tensor(void *context, const struct td_moment *moment, const struct td_tensor *tensor)
{
    struct td_control *c = context;
    struct look look = {0};
    if (is_child(c))
        return;
    pthread_mutex_lock(&c->lock);
    c->inside++;
    note_step(c, moment);
    ask(c, moment->name, &look);
    pthread_mutex_unlock(&c->lock);
    find_out(&look, moment, tensor);
    pthread_mutex_lock(&c->lock);
    remember(c, moment, tensor, &look);
    show_watches(c, moment, tensor, &look);
    struct stop stop = {.moment = moment, .tensor = tensor, .measured = look.measured, .stats = look.stats};
    if (!c->closing && decide(c, &look, &stop)) {
        look.count = 0;
        complete(c, &look, &stop);
        hold(c, &stop);
        control_observe(c);
    }
    leave(c);
}

void control_on_scope(void *context, const struct td_moment *moment, bool begins)
{
    struct td_control *c = context;
    struct look nothing = {0};
    struct stop stop = {.moment = moment};
    if (is_child(c))
        return;
    pthread_mutex_lock(&c->lock);
    c->inside++;
    note_step(c, moment);
    if (begins && !c->closing && decide(c, &nothing, &stop)) {
        hold(c, &stop);
        control_observe(c);
    }
    leave(c);
}
