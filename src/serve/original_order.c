/* original_order.c: matches put into another order, grouped, or made by hand. */
#include "serve/original.h"

#include <string.h>

static tdbg_status put_order(struct td_json *j, struct td_listing *l, struct tdbg_error *error)
{
    td_json_key(j, "new_order");
    td_json_begin_array(j);
    for (size_t i = 0; i < l->count; i++) {
        const struct td_pair *pair;
        char stage[TD_STAGE_TEXT];
        TD_TRY(td_listing_pair(l, i, &pair, error));
        td_match_stage(stage, pair);
        td_json_string(j, stage);
    }
    td_json_end_array(j);
    return TDBG_OK;
}

static tdbg_status put_moved(struct td_json *j, struct td_listing *l, size_t from, size_t to,
                             struct tdbg_error *error)
{
    char message[96];
    TD_TRY(td_listing_move(l, from, to, error));
    snprintf(message, sizeof message, "Moved match %zu to position %zu", from, to);
    td_json_begin_object(j);
    td_json_field_bool(j, "success", true);
    td_json_field_string(j, "message", message);
    TD_TRY(put_order(j, l, error));
    td_json_end_object(j);
    return TDBG_OK;
}

void td_original_reorder(struct td_exchange *x)
{
    struct td_listing listing;
    int64_t from, to;
    if (!td_may_wait(x) || !td_body_is_object(x) || !td_listing_open(&listing, x))
        return;
    int64_t last = (int64_t)listing.count - 1;
    if (td_body_int(x, "old_index", 0, last, NULL, &from) &&
        td_body_int(x, "new_index", 0, last, NULL, &to)) {
        struct tdbg_error error;
        struct td_buffer body;
        struct td_json j;
        td_buffer_init(&body, SIZE_MAX);
        td_json_to_buffer(&j, &body);
        tdbg_status status = put_moved(&j, &listing, (size_t)from, (size_t)to, &error);
        td_answer_written(x, &j, &body, status, &error);
    }
    td_listing_close(&listing);
}

/* Its page groups by itself and only tells. */
void td_original_regroup(struct td_exchange *x)
{
    const char *group = td_body_is_object(x) ? td_body_string(x, "group_by", "layer") : NULL;
    struct td_buffer body, message;
    struct td_json j;
    if (!group)
        return;
    td_buffer_init(&body, SIZE_MAX);
    td_buffer_init(&message, SIZE_MAX);
    td_buffer_printf(&message, "Grouped by %s", group);
    td_json_to_buffer(&j, &body);
    td_json_begin_object(&j);
    td_json_field_bool(&j, "success", true);
    td_json_field_string(&j, "message", td_buffer_text(&message));
    td_json_field_string(&j, "group_by", group);
    td_json_end_object(&j);
    td_buffer_release(&message);
    td_answer_written(x, &j, &body, TDBG_OK, NULL);
}

/* --- a pair by hand ------------------------------------------------------------------------------------- */

/* The number of the match that pairs the two names; count when there is none. */
static tdbg_status find_match(struct td_listing *l, const char *name1, const char *name2, size_t *out,
                              struct tdbg_error *error)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct td_pair *p;
        TD_TRY(td_listing_pair(l, i, &p, error));
        if (p->a && p->b && strcmp(p->a->name, name1) == 0 && strcmp(p->b->name, name2) == 0) {
            *out = i;
            return TDBG_OK;
        }
    }
    return td_fail(error, TDBG_NOTFOUND, "'%.100s' and '%.100s' were not paired", name1, name2);
}

static size_t find_item(const struct td_side *side, const char *name)
{
    size_t i = 0;
    while (i < side->count && strcmp(side->items[i].name, name) != 0)
        i++;
    return i;
}

/* Of one input every two tensors are a match already. */
static tdbg_status find_self(struct td_listing *l, const char *name1, const char *name2, size_t *out,
                             struct tdbg_error *error)
{
    const struct td_side *side = td_self_side(l->self);
    size_t i = find_item(side, name1), j = find_item(side, name2);
    if (i == side->count || j == side->count)
        return td_fail(error, TDBG_NOTFOUND, "no tensor '%.200s'", i == side->count ? name1 : name2);
    if (i == j)
        return td_fail(error, TDBG_MISUSE, "'%.200s' is no match of itself", name1);
    uint64_t number = td_self_number(l->self, i < j ? i : j, i < j ? j : i);
    if (number >= l->count)
        return td_fail(error, TDBG_LIMIT, "only the first %zu matches can be shown", l->count);
    *out = (size_t)number;
    return TDBG_OK;
}

static void answer_match(struct td_exchange *x, const char *name1, const char *name2)
{
    struct td_listing listing;
    struct tdbg_error error;
    struct td_buffer body;
    struct td_json j;
    size_t position;
    if (!td_listing_open(&listing, x))
        return;
    td_buffer_init(&body, SIZE_MAX);
    td_json_to_buffer(&j, &body);
    tdbg_status status = (listing.self ? find_self : find_match)(&listing, name1, name2, &position, &error);
    if (status == TDBG_OK) {
        td_json_begin_object(&j);
        td_json_field_bool(&j, "success", true);
        td_json_key(&j, "match");
        status = td_match_put(&j, &listing, position, &error);
        td_json_end_object(&j);
    }
    td_answer_written(x, &j, &body, status, &error);
    td_listing_close(&listing);
}

/* Compares again with the pair. What names no tensor is refused before anything changes. */
static tdbg_status make_pair(const struct td_listing *l, const char *name1, const char *name2,
                             struct tdbg_error *error)
{
    const struct td_diff *diff = l->opened->diff;
    if (find_item(&diff->side_a, name1) == diff->side_a.count)
        return td_fail(error, TDBG_NOTFOUND, "no tensor '%.200s' in model 1", name1);
    if (find_item(&diff->side_b, name2) == diff->side_b.count)
        return td_fail(error, TDBG_NOTFOUND, "no tensor '%.200s' in model 2", name2);
    return td_desk_pair(l->desk, l->id, name1, name2, error);
}

void td_original_pair(struct td_exchange *x)
{
    const char *name1, *name2;
    struct td_listing listing;
    struct tdbg_error error;
    if (!td_may_wait(x) || !td_body_is_object(x) || !(name1 = td_body_string(x, "model1_file", NULL)) ||
        !(name2 = td_body_string(x, "model2_file", NULL)) || !td_listing_open(&listing, x))
        return;
    tdbg_status status = listing.self ? TDBG_OK : make_pair(&listing, name1, name2, &error);
    td_listing_close(&listing);
    if (status == TDBG_OK)
        answer_match(x, name1, name2);
    else
        td_answer_failure(x, &error);
}
