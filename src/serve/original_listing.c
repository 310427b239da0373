/* original_listing.c: a comparison as the original API numbers it. See original.h. */
#include "serve/original.h"

#include <string.h>
#include <strings.h>

/* Matches of one input with itself in one answer. A page shows each of them at once, with a slider for every
 * axis: more would be no use to anybody. `tdbg diff FILE` goes through all. */
enum { MAX_SELF_MATCHES = 5000 };

const char *const td_upload_mode_names[TD_UPLOAD_MODES] = {
    [TD_DUAL_ARCHIVE] = "dual_archive",
    [TD_DUAL_PTH] = "dual_pth",
    [TD_SINGLE_FILE] = "single_file",
    [TD_MIXED] = "mixed",
};

static bool ends_with_one_of(const char *name, const char *const *endings)
{
    size_t length = strlen(name);
    for (; *endings; endings++) {
        size_t size = strlen(*endings);
        if (length > size && strcasecmp(name + length - size, *endings) == 0)
            return true;
    }
    return false;
}

enum td_upload_mode td_upload_mode_of(const char *name1, const char *name2)
{
    static const char *const files[] = {".pth", ".pt", ".safetensors", NULL};
    static const char *const archives[] = {".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.zst", NULL};
    if (ends_with_one_of(name1, files) && ends_with_one_of(name2, files))
        return TD_DUAL_PTH;
    bool both = ends_with_one_of(name1, archives) && ends_with_one_of(name2, archives);
    return both ? TD_DUAL_ARCHIVE : TD_MIXED;
}

/* --- one input with itself ------------------------------------------------------------------------------ */

static tdbg_status list_self(struct td_listing *l, struct tdbg_error *error)
{
    static const struct td_diff_setup setup = TD_DIFF_SETUP;
    struct td_policy policy;
    l->mode = TD_SINGLE_FILE;
    TD_TRY(td_diff_setup_policy(&policy, &setup, error));
    TD_TRY(td_self_over(&l->self, l->opened->input, &policy, &(struct td_work){0}, error));
    uint64_t total = td_self_total(l->self);
    l->count = total < MAX_SELF_MATCHES ? (size_t)total : MAX_SELF_MATCHES;
    return TDBG_OK;
}

/* --- two inputs ----------------------------------------------------------------------------------------- */

static void list_pairs(struct td_listing *l)
{
    const struct td_diff *diff = l->opened->diff;
    l->mode = td_upload_mode_of(td_input_path(diff->a), td_input_path(diff->b));
    l->count = diff->result.count;
    if (l->mode == TD_DUAL_PTH)
        l->count -= diff->result.summary.only_a + diff->result.summary.only_b;
}

/* --- all ------------------------------------------------------------------------------------------------ */

static tdbg_status list(struct td_listing *l, struct tdbg_error *error)
{
    if (!l->opened->diff)
        return list_self(l, error);
    list_pairs(l);
    return TDBG_OK;
}

bool td_listing_open(struct td_listing *l, struct td_exchange *x)
{
    struct tdbg_error error;
    *l = (struct td_listing){.desk = x->desk};
    tdbg_status status = td_desk_latest(x->desk, x->session, l->id, &error);
    if (status == TDBG_OK && !td_desk_borrow_now(x->desk, l->id, &l->opened)) {
        if (!td_may_wait(x))
            return false;
        status = td_desk_borrow(x->desk, l->id, &l->opened, &error);
    }
    if (status == TDBG_OK && !l->opened->diff &&
        !td_may_wait(x)) { /* what one input shows is measured anew */
        td_listing_close(l);
        return false;
    }
    if (status == TDBG_OK)
        status = list(l, &error);
    if (status == TDBG_OK)
        return true;
    td_listing_close(l);
    td_answer_failure(x, &error);
    return false;
}

void td_listing_close(struct td_listing *l)
{
    td_subject_release(&l->own);
    td_self_close(&l->self);
    td_desk_return(l->desk, &l->opened);
}

/* Where a match of two inputs lies in the order of all pairs, and its pair. Who goes through all of them goes
 * on where he was. */
static tdbg_status find_pair(struct td_listing *l, size_t position, size_t *place, size_t *index,
                             struct tdbg_error *error)
{
    const struct td_diff *diff = l->opened->diff;
    if (l->count == diff->result.count) {
        *place = position;
        return td_desk_ranked(l->desk, l->opened, position, index, error);
    }
    if (position < l->passed)
        l->place = l->passed = 0;
    for (;; l->place++) {
        TD_TRY(td_desk_ranked(l->desk, l->opened, l->place, index, error));
        if (!diff->result.pairs[*index].a || !diff->result.pairs[*index].b)
            continue;
        if (l->passed == position) {
            *place = l->place;
            return TDBG_OK;
        }
        l->passed++;
    }
}

tdbg_status td_listing_pair(struct td_listing *l, size_t position, const struct td_pair **out,
                            struct tdbg_error *error)
{
    if (l->self) {
        const struct td_self_pair *found;
        TD_TRY(td_self_at(l->self, position, &found, error));
        *out = &found->pair;
        return TDBG_OK;
    }
    size_t place, index;
    TD_TRY(find_pair(l, position, &place, &index, error));
    *out = &l->opened->diff->result.pairs[index];
    return TDBG_OK;
}

tdbg_status td_listing_subject(struct td_listing *l, size_t position, const struct td_subject **out,
                               struct tdbg_error *error)
{
    if (l->self) {
        const struct td_pair *pair;
        TD_TRY(td_listing_pair(l, position, &pair, error));
        td_subject_release(&l->own);
        TD_TRY(td_subject_of_pair(&l->own, pair, error));
        *out = &l->own;
        return TDBG_OK;
    }
    size_t place, index;
    TD_TRY(find_pair(l, position, &place, &index, error));
    return td_desk_subject(l->desk, l->opened, index, out, error);
}

tdbg_status td_listing_move(struct td_listing *l, size_t from, size_t to, struct tdbg_error *error)
{
    size_t places[2], index;
    if (l->self)
        return td_fail(error, TDBG_MISMATCH, "the pairs of one file have no order of their own");
    TD_TRY(find_pair(l, from, &places[0], &index, error));
    TD_TRY(find_pair(l, to, &places[1], &index, error));
    l->place = l->passed = 0;
    return td_desk_move(l->desk, l->opened, places[0], places[1], error);
}
