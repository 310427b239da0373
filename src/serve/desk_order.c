/* desk_order.c: what people change by hand in a finished comparison: the order of its pairs, and the pairs.
 *
 * The order is part of the state (ranking.h), which lies in the store. Looking at a value must not ask the
 * store, so what was read from the state is kept with the open comparison until the state is written again.
 * `notes` counts those writes: an order that was read before one of them is used by nobody who comes after.
 */
#include "serve/desk_core.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* --- the order -------------------------------------------------------------------------------------------
 */

/* Under the lock. */
static void forget_ranking(struct td_opened *o)
{
    o->notes++;
    td_ranking_release(&o->ranking);
}

void td_desk_forget_ranking(struct td_desk *desk, const char *id)
{
    pthread_mutex_lock(&desk->lock);
    const struct td_entry *e = td_entry_find(desk, id);
    if (e && e->opened)
        forget_ranking(e->opened);
    pthread_mutex_unlock(&desk->lock);
}

static tdbg_status read_ranking(struct td_desk *desk, const struct td_opened *o, struct td_ranking *out,
                                struct tdbg_error *error)
{
    struct td_buffer state;
    td_buffer_init(&state, SIZE_MAX);
    tdbg_status status = td_store_state(desk->store, o->id, &state, error);
    if (status == TDBG_OK)
        status = td_ranking_init(out, td_buffer_text(&state), o->view.count, error);
    td_buffer_release(&state);
    return status;
}

/* Under the lock, which it lets go to read. */
static tdbg_status ensure_ranking(struct td_desk *desk, struct td_opened *o, struct tdbg_error *error)
{
    while (!o->ranking.pairs) {
        uint64_t notes = o->notes;
        struct td_ranking read = {0};
        pthread_mutex_unlock(&desk->lock);
        tdbg_status status = read_ranking(desk, o, &read, error);
        pthread_mutex_lock(&desk->lock);
        TD_TRY(status);
        if (!o->ranking.pairs && o->notes == notes)
            o->ranking = read;
        else
            td_ranking_release(&read);
    }
    return TDBG_OK;
}

tdbg_status td_desk_ranked(struct td_desk *desk, const struct td_open_comparison *view, size_t position,
                           size_t *index, struct tdbg_error *error)
{
    struct td_opened *o = (struct td_opened *)(uintptr_t)view;
    if (position >= view->count)
        return td_fail(error, TDBG_NOTFOUND, "no position %zu; there are %zu pairs", position, view->count);
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = ensure_ranking(desk, o, error);
    if (status == TDBG_OK)
        *index = o->ranking.pairs[position];
    pthread_mutex_unlock(&desk->lock);
    return status;
}

/* The entry is busy: nobody else moves anything in it. */
static tdbg_status move_stored(struct td_desk *desk, const struct td_opened *o, size_t from, size_t to,
                               struct tdbg_error *error)
{
    struct td_buffer before, after;
    struct td_ranking ranking = {0};
    td_buffer_init(&before, SIZE_MAX);
    td_buffer_init(&after, SIZE_MAX);
    tdbg_status status = td_store_state(desk->store, o->id, &before, error);
    if (status == TDBG_OK)
        status = td_ranking_init(&ranking, td_buffer_text(&before), o->view.count, error);
    if (status == TDBG_OK) {
        td_ranking_move(&ranking, from, to);
        status = td_ranking_store(&ranking, td_buffer_text(&before), &after, error);
    }
    if (status == TDBG_OK)
        status = td_store_put_state(desk->store, o->id, td_buffer_text(&after), after.size, error);
    td_ranking_release(&ranking);
    td_buffer_release(&before);
    td_buffer_release(&after);
    return status;
}

tdbg_status td_desk_move(struct td_desk *desk, const struct td_open_comparison *view, size_t from, size_t to,
                         struct tdbg_error *error)
{
    struct td_opened *o = (struct td_opened *)(uintptr_t)view;
    struct td_entry *e;
    if (from >= view->count || to >= view->count)
        return td_fail(error, TDBG_NOTFOUND, "no position %zu; there are %zu pairs", from > to ? from : to,
                       view->count);
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = td_entry_await(desk, o->id, &e, error);
    if (status == TDBG_OK) {
        td_entry_leave(desk, e);
        status = move_stored(desk, o, from, to, error);
        td_entry_enter(desk, e);
        forget_ranking(o);
    }
    pthread_mutex_unlock(&desk->lock);
    return status;
}

/* --- pairs -----------------------------------------------------------------------------------------------
 */

static bool names(const json_t *pair, const char *key, const char *name)
{
    const char *text = json_string_value(json_object_get(pair, key));
    return text && strcmp(text, name) == 0;
}

/* The settings with one more pair, in place of those that pair one of the two otherwise; NULL: no memory. */
static char *add_pair(const char *settings, const char *a, const char *b)
{
    json_t *root = json_loads(settings, 0, NULL), *pairs = json_array();
    const json_t *before = json_object_get(root, "pairs");
    bool good = root && pairs;
    for (size_t i = 0; good && i < json_array_size(before); i++) {
        json_t *pair = json_array_get(before, i);
        if (!names(pair, "a", a) && !names(pair, "b", b))
            good = json_array_append(pairs, pair) == 0;
    }
    good = good && json_array_append_new(pairs, json_pack("{ssss}", "a", a, "b", b)) == 0 &&
           json_object_set(root, "pairs", pairs) == 0;
    char *text = good ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(pairs);
    json_decref(root);
    return text;
}

/* Other pairs, other numbers: an order of the old ones says nothing any more. */
static tdbg_status forget_order(struct td_desk *desk, const char *id, struct tdbg_error *error)
{
    struct td_buffer before, after;
    td_buffer_init(&before, SIZE_MAX);
    td_buffer_init(&after, SIZE_MAX);
    tdbg_status status = td_store_state(desk->store, id, &before, error);
    if (status == TDBG_OK)
        status = td_ranking_store(NULL, td_buffer_text(&before), &after, error);
    if (status == TDBG_OK)
        status = td_desk_put_state(desk, id, td_buffer_text(&after), after.size, error);
    td_buffer_release(&before);
    td_buffer_release(&after);
    return status;
}

tdbg_status td_desk_pair(struct td_desk *desk, const char *id, const char *a, const char *b,
                         struct tdbg_error *error)
{
    struct td_entry *e;
    char *settings = NULL;
    pthread_mutex_lock(&desk->lock);
    tdbg_status status = td_entry_await(desk, id, &e, error);
    if (status == TDBG_OK)
        settings = add_pair(e->settings, a, b);
    pthread_mutex_unlock(&desk->lock);
    if (status == TDBG_OK && !settings)
        status = td_fail_nomem(error);
    if (status == TDBG_OK)
        status = td_desk_configure(desk, id, settings, error);
    free(settings);
    TD_TRY(status);
    TD_TRY(forget_order(desk, id, error));
    return td_desk_wait(desk, id, error);
}
