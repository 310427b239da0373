/* desk_order.c: the order of the pairs of a finished comparison, which people change by hand.
 *
 * The order is part of the state (ranking.h), which lies in the store. Looking at a value must not ask the
 * store, so what was read from the state is kept with the open comparison until the state is written again.
 * `notes` counts those writes: an order that was read before one of them is used by nobody who comes after.
 */
#include "serve/desk_core.h"

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
    pthread_mutex_lock(&desk->writing);
    tdbg_status status = td_store_state(desk->store, o->id, &before, error);
    if (status == TDBG_OK)
        status = td_ranking_init(&ranking, td_buffer_text(&before), o->view.count, error);
    if (status == TDBG_OK) {
        td_ranking_move(&ranking, from, to);
        status = td_ranking_store(&ranking, td_buffer_text(&before), &after, error);
    }
    if (status == TDBG_OK)
        status = td_store_put_state(desk->store, o->id, td_buffer_text(&after), after.size, error);
    pthread_mutex_unlock(&desk->writing);
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
    if (status == TDBG_OK)
        status = td_generation_check(e->generation, (int64_t)view->generation, error);
    if (status == TDBG_OK) {
        td_entry_leave(desk, e);
        status = move_stored(desk, o, from, to, error);
        td_entry_enter(desk, e);
        forget_ranking(o);
    }
    pthread_mutex_unlock(&desk->lock);
    return status;
}
