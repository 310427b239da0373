/* desk_open.c: comparisons that lie open, and lending them out. See desk_core.h.
 *
 * This is on the way of every value that a browser asks for. A comparison that lies open is borrowed with one
 * short lock and one look-up, a subject that was asked for before costs an atomic load.
 */
#include "serve/desk_core.h"

#include <stdlib.h>
#include <string.h>

/* --- one of them ---------------------------------------------------------------------------------------- */

struct td_opened *td_opened_make(const char *id)
{
    struct td_opened *o = calloc(1, sizeof *o);
    if (o)
        strncpy(o->id, id, TD_ID_LENGTH);
    return o;
}

tdbg_status td_opened_ready(struct td_opened *o, struct tdbg_error *error)
{
    o->view = (struct td_open_comparison){.id = o->id, .diff = o->diff, .input = o->choice.input};
    o->view.count = o->diff ? o->diff->result.count : o->choice.one ? 1 : td_input_count(o->choice.input);
    o->subjects = calloc(o->view.count + 1, sizeof *o->subjects);
    return o->subjects ? TDBG_OK : td_fail_nomem(error);
}

static void free_subject(struct td_subject *subject)
{
    td_subject_release(subject);
    free(subject);
}

void td_opened_close(struct td_opened *o)
{
    if (!o)
        return;
    for (size_t i = 0; o->subjects && i < o->view.count; i++) {
        struct td_subject *subject = atomic_load_explicit(&o->subjects[i], memory_order_relaxed);
        if (subject)
            free_subject(subject);
    }
    free(o->subjects);
    td_ranking_release(&o->ranking);
    td_diff_close(&o->diff);
    td_choice_close(&o->choice);
    free(o);
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static struct td_opened *disown(struct td_opened **slot)
{
    struct td_opened *o = *slot;
    *slot = NULL;
    o->entry->opened = NULL;
    o->entry = NULL;
    return o->users ? NULL : o;
}

struct td_opened *td_desk_attach(struct td_desk *desk, struct td_entry *e, struct td_opened *o)
{
    struct td_opened **slot = &desk->open[0];
    for (int i = 0; i < TD_MOST_OPEN && *slot; i++)
        if (!desk->open[i] || desk->open[i]->used < (*slot)->used)
            slot = &desk->open[i];
    struct td_opened *closed = *slot ? disown(slot) : NULL;
    *slot = o;
    o->used = ++desk->clock;
    o->entry = e;
    o->view.generation = e->generation;
    e->opened = o;
    return closed;
}

struct td_opened *td_desk_detach(struct td_desk *desk, struct td_entry *e)
{
    for (int i = 0; i < TD_MOST_OPEN; i++)
        if (desk->open[i] && desk->open[i] == e->opened)
            return disown(&desk->open[i]);
    return NULL;
}

/* --- lending -------------------------------------------------------------------------------------------- */

static tdbg_status refuse(const struct td_entry *e, struct tdbg_error *error)
{
    if (e->phase == TD_PHASE_FAILED)
        return td_fail(error, TDBG_MISMATCH, "the comparison failed: %s", e->error ? e->error : "");
    return td_fail(error, TDBG_MISMATCH, "the comparison is %s", td_phase_name(e->phase));
}

static tdbg_status check_inputs(const struct td_entry *e, struct tdbg_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (e->part[i].changed)
            return td_fail(error, TDBG_MISMATCH, "%s: changed since it was compared; compare again",
                           e->part[i].name);
        if (e->part[i].missing && !e->opened)
            return td_fail(error, TDBG_IO, "%s: no longer there", e->part[i].name);
    }
    return TDBG_OK;
}

/* Nobody is busy with it, and it does not lie open. The others who want it wait meanwhile. */
static tdbg_status open_again(struct td_desk *desk, struct td_entry *e, struct tdbg_error *error)
{
    struct td_opened *opened = NULL, *closed = NULL;
    e->job = (struct td_job){0};
    td_entry_leave(desk, e);
    tdbg_status status = td_desk_compare_again(desk, e, &opened, error);
    td_entry_enter(desk, e);
    if (status != TDBG_OK)
        return status;
    closed = td_desk_attach(desk, e, opened);
    if (closed) {
        td_entry_leave(desk, e);
        td_opened_close(closed);
        td_entry_enter(desk, e);
    }
    return TDBG_OK;
}

/* Under the lock. */
static tdbg_status find_open(struct td_desk *desk, const char *id, struct td_opened **out,
                             struct tdbg_error *error)
{
    for (;;) {
        struct td_entry *e = td_entry_find(desk, id);
        if (!e)
            return td_fail(error, TDBG_NOTFOUND, "no comparison '%.32s'", id);
        if (e->phase != TD_PHASE_DONE)
            return refuse(e, error);
        if (!e->opened && e->busy) {
            pthread_cond_wait(&desk->changed, &desk->lock);
            continue;
        }
        td_entry_look(desk, e);
        if (e->phase != TD_PHASE_DONE)
            continue;
        TD_TRY(check_inputs(e, error));
        if (e->opened) {
            *out = e->opened;
            return TDBG_OK;
        }
        TD_TRY(open_again(desk, e, error));
    }
}

static const struct td_open_comparison *lend(struct td_desk *desk, struct td_opened *o)
{
    o->users++;
    o->used = ++desk->clock;
    return &o->view;
}

tdbg_status td_desk_borrow(struct td_desk *desk, const char *id, const struct td_open_comparison **out,
                           struct tdbg_error *error)
{
    struct td_opened *opened = NULL;
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = find_open(desk, id, &opened, error);
    if (status == TDBG_OK)
        *out = lend(desk, opened);
    pthread_mutex_unlock(&desk->lock);
    return status;
}

bool td_desk_borrow_now(struct td_desk *desk, const char *id, const struct td_open_comparison **out)
{
    pthread_mutex_lock(&desk->lock);
    struct td_entry *e = td_entry_find(desk, id);
    bool open = e && e->opened && !td_entry_is_large(e);
    if (open)
        td_entry_look(desk, e);
    open = open && e->opened && check_inputs(e, NULL) == TDBG_OK;
    if (open)
        *out = lend(desk, e->opened);
    pthread_mutex_unlock(&desk->lock);
    return open;
}

void td_desk_return(struct td_desk *desk, const struct td_open_comparison **view)
{
    if (!*view)
        return;
    struct td_opened *o = (struct td_opened *)(uintptr_t)*view;
    pthread_mutex_lock(&desk->lock);
    bool last = --o->users == 0 && !o->entry;
    pthread_mutex_unlock(&desk->lock);
    if (last)
        td_opened_close(o);
    *view = NULL;
}

static tdbg_status make_subject(const struct td_opened *o, size_t index, struct td_subject **out,
                                struct tdbg_error *error)
{
    struct td_subject *subject = calloc(1, sizeof *subject);
    if (!subject)
        return td_fail_nomem(error);
    const struct td_tensor *tensor = o->diff         ? NULL
                                     : o->choice.one ? &o->choice.selection.part
                                                     : td_input_tensor(o->choice.input, index);
    tdbg_status status = o->diff ? td_subject_of_sides(subject, &o->diff->result.pairs[index], error)
                                 : td_subject_of_tensor(subject, tensor, error);
    if (status == TDBG_OK)
        *out = subject;
    else
        free(subject);
    return status;
}

tdbg_status td_desk_sides(struct td_desk *desk, const struct td_open_comparison *view, size_t index,
                          const struct td_subject **out, struct tdbg_error *error)
{
    const struct td_opened *o = (const struct td_opened *)view;
    if (index >= view->count)
        return td_fail(error, TDBG_NOTFOUND, "no pair %zu; there are %zu", index, view->count);
    struct td_subject *subject = atomic_load_explicit(&o->subjects[index], memory_order_acquire);
    if (!subject) {
        struct td_subject *other = NULL;
        TD_TRY(make_subject(o, index, &subject, error));
        subject->gallery = desk->gallery;
        if (!atomic_compare_exchange_strong(&o->subjects[index], &other, subject)) {
            free_subject(subject); /* another thread was faster */
            subject = other;
        }
    }
    *out = subject;
    return TDBG_OK;
}

tdbg_status td_desk_subject(struct td_desk *desk, const struct td_open_comparison *view, size_t index,
                            const struct td_subject **out, struct tdbg_error *error)
{
    const struct td_subject *subject;
    TD_TRY(td_desk_sides(desk, view, index, &subject, error));
    TD_TRY(td_subject_check(subject, error));
    *out = subject;
    return TDBG_OK;
}
