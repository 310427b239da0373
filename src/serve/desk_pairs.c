/* desk_pairs.c: pairs that people make by hand: held against what the inputs hold, and added.
 *
 * A list of pairs is typed or imported, and may name what is not there. That is found out before anything is
 * given up for it: a comparison that is done keeps its result when it is told to compare with such a list.
 */
#include "serve/desk_core.h"

#include "serve/settings.h"
#include "serve/uploads.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* --- are they there? ------------------------------------------------------------------------------------ */

/* Pairing in earnest tells; by a strategy that is quick, since what it leaves over matters to nobody. */
static tdbg_status check_names(const struct td_side *a, const struct td_side *b,
                               const struct td_diff_setup *setup, struct tdbg_error *error)
{
    struct td_match_options options = {
        .strategy = "exact", .manual = setup->manual, .manual_count = setup->manual_count};
    struct tdbg_error why;
    struct td_matches matches;
    tdbg_status status = td_match_sides(&matches, a, b, &options, NULL, &why);
    if (status == TDBG_OK)
        td_matches_release(&matches);
    else /* no tensor of that name: the list is wrong, the comparison is there */
        return td_fail(error, status == TDBG_NOTFOUND ? TDBG_MISUSE : status, "%s", why.message);
    return TDBG_OK;
}

static tdbg_status check_choices(const struct td_choice *choices, const struct td_diff_setup *setup,
                                 struct tdbg_error *error)
{
    struct td_side a, b;
    TD_TRY(td_side_of_choice(&a, &choices[0], error));
    tdbg_status status = td_side_of_choice(&b, &choices[1], error);
    if (status == TDBG_OK) {
        status = check_names(&a, &b, setup, error);
        td_side_release(&b);
    }
    td_side_release(&a);
    return status;
}

tdbg_status td_desk_check_pairs(const struct td_desk *desk, const struct td_entry *e,
                                const struct td_diff_setup *setup, struct tdbg_error *error)
{
    struct td_choice choices[2] = {{0}, {0}};
    struct td_job job = {.prepared = desk->uploads ? td_uploads_folder(desk->uploads) : NULL,
                         .bound = desk->bound};
    if (setup->manual_count == 0 || !e->part[1].path)
        return TDBG_OK;
    /* What cannot be opened is no fault of the list: comparing will say what is wrong with it. */
    tdbg_status status = TDBG_OK;
    if (td_choice_open(&choices[0], e->part[0].path, &job, NULL) == TDBG_OK &&
        td_choice_open(&choices[1], e->part[1].path, &job, NULL) == TDBG_OK)
        status = check_choices(choices, setup, error);
    td_choice_close(&choices[0]);
    td_choice_close(&choices[1]);
    return status;
}

tdbg_status td_desk_recheck_pairs(struct td_desk *desk, struct td_entry *e, const struct td_diff_setup *setup,
                                  struct tdbg_error *error)
{
    bool changed = e->part[0].changed || e->part[1].changed;
    struct td_opened *o = e->opened && e->opened->diff && !changed ? e->opened : NULL;
    const struct td_open_comparison *held = o ? &o->view : NULL;
    if (setup->manual_count == 0)
        return TDBG_OK;
    if (o)
        o->users++;
    td_entry_leave(desk, e);
    /* An input may have changed unnoticed: nothing is refused before it has been looked at as it is now. */
    tdbg_status status = TDBG_OK;
    if (!o || check_names(&o->diff->side_a, &o->diff->side_b, setup, NULL) != TDBG_OK)
        status = td_desk_check_pairs(desk, e, setup, error);
    td_desk_return(desk, &held);
    td_entry_enter(desk, e);
    return status;
}

/* --- one more ------------------------------------------------------------------------------------------- */

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
    return td_desk_wait(desk, id, error);
}
