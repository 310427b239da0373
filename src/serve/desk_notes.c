/* desk_notes.c: the page's notes on a comparison (notes.h): asked for, written, carried from result to
 * result.
 *
 * `writing` is held from reading the notes to having them written, so that nobody's change is lost between
 * the two. A new result comes into the store together with the notes that fit it. Who writes notes says which
 * result they are about, when he knows: what is about another one is refused.
 */
#include "serve/desk_core.h"

#include "serve/notes.h"

#include <string.h>

tdbg_status td_desk_state(struct td_desk *desk, const char *id, struct td_buffer *out,
                          struct tdbg_error *error)
{
    return td_store_state(desk->store, id, out, error);
}

tdbg_status td_desk_put_state(struct td_desk *desk, const char *id, const char *state, size_t size,
                              struct tdbg_error *error)
{
    pthread_mutex_lock(&desk->writing);
    tdbg_status status = td_store_put_state(desk->store, id, state, size, error);
    pthread_mutex_unlock(&desk->writing);
    TD_TRY(status);
    td_desk_forget_ranking(desk, id);
    return TDBG_OK;
}

tdbg_status td_generation_check(uint64_t shown, int64_t wanted, struct tdbg_error *error)
{
    if (wanted >= 0 && (uint64_t)wanted != shown)
        return td_fail(error, TDBG_MISMATCH, "compared again since; its pairs may be others now");
    return TDBG_OK;
}

static tdbg_status check_generation(struct td_desk *desk, const char *id, int64_t wanted,
                                    struct tdbg_error *error)
{
    tdbg_status status = TDBG_OK;
    pthread_mutex_lock(&desk->lock);
    const struct td_entry *e = td_entry_find(desk, id);
    if (e && wanted >= 0 && e->phase != TD_PHASE_DONE)
        status = td_fail(error, TDBG_MISMATCH, "the comparison is %s", td_phase_name(e->phase));
    else if (e)
        status = td_generation_check(e->generation, wanted, error);
    pthread_mutex_unlock(&desk->lock);
    return status;
}

/* Under `writing`. */
static tdbg_status patch_stored(struct td_desk *desk, const char *id, const json_t *patch, size_t most,
                                struct tdbg_error *error)
{
    struct td_buffer before, after;
    td_buffer_init(&before, SIZE_MAX);
    td_buffer_init(&after, SIZE_MAX);
    tdbg_status status = td_store_state(desk->store, id, &before, error);
    if (status == TDBG_OK)
        status = td_notes_merge(td_buffer_text(&before), patch, &after, error);
    if (status == TDBG_OK && after.size > most)
        status = td_fail(error, TDBG_LIMIT, "notes of %zu bytes; %zu are the most", after.size, most);
    if (status == TDBG_OK)
        status = td_store_put_state(desk->store, id, td_buffer_text(&after), after.size, error);
    td_buffer_release(&before);
    td_buffer_release(&after);
    return status;
}

tdbg_status td_desk_patch_state(struct td_desk *desk, const char *id, int64_t generation, const json_t *patch,
                                size_t most, struct tdbg_error *error)
{
    pthread_mutex_lock(&desk->writing);
    tdbg_status status = check_generation(desk, id, generation, error);
    if (status == TDBG_OK)
        status = patch_stored(desk, id, patch, most, error);
    pthread_mutex_unlock(&desk->writing);
    TD_TRY(status);
    td_desk_forget_ranking(desk, id);
    return TDBG_OK;
}

/* --- a new result --------------------------------------------------------------------------------------- */

/* Under `writing`. Nothing is appended where the notes stay as they are. */
static tdbg_status carry(struct td_desk *desk, const char *id, const char *result, struct td_buffer *out,
                         struct tdbg_error *error)
{
    struct td_buffer notes, before;
    td_buffer_init(&notes, SIZE_MAX);
    td_buffer_init(&before, SIZE_MAX);
    tdbg_status status = td_store_state(desk->store, id, &notes, error);
    if (status == TDBG_OK && td_notes_speak_of_pairs(td_buffer_text(&notes)) &&
        td_store_result(desk->store, id, &before, NULL) == TDBG_OK)
        status = td_notes_carry(td_buffer_text(&notes), td_buffer_text(&before), result, out, error);
    td_buffer_release(&notes);
    td_buffer_release(&before);
    return status;
}

tdbg_status td_desk_finish(struct td_desk *desk, const struct td_comparison_row *row,
                           struct td_buffer *result, struct tdbg_error *error)
{
    struct td_buffer notes;
    td_buffer_init(&notes, SIZE_MAX);
    pthread_mutex_lock(&desk->writing);
    tdbg_status status = carry(desk, row->id, td_buffer_text(result), &notes, error);
    if (status == TDBG_OK)
        status = td_store_finish_comparison(desk->store, row, result->data, result->size,
                                            notes.size ? td_buffer_text(&notes) : NULL, error);
    pthread_mutex_unlock(&desk->writing);
    td_buffer_release(&notes);
    return status;
}
