/* side.c: see side.h. */
#include "session/side.h"

#include <stdlib.h>

static tdbg_status select_one(struct td_choice *c, const struct td_target *target, struct tdbg_error *error)
{
    char *slice;
    TD_TRY(td_target_resolve(target, c->input, &c->selection, &slice, error));
    free(slice);
    c->one = true;
    if (!c->selection.whole)
        return td_fail(error, TDBG_UNSUPPORTED, "a slice of a quantised or sparse tensor cannot be compared");
    return TDBG_OK;
}

tdbg_status td_choice_open(struct td_choice *out, const char *text, struct td_job *job,
                           struct tdbg_error *error)
{
    struct td_target target;
    *out = (struct td_choice){0};
    TD_TRY(td_target_init(&target, text, error));
    tdbg_status status = td_input_open(&out->input, target.path, job, error);
    if (status == TDBG_OK && *target.name)
        status = select_one(out, &target, error);
    if (status != TDBG_OK) {
        td_error_prefix(error, target.path);
        td_choice_close(out);
    }
    td_target_release(&target);
    return status;
}

void td_choice_close(struct td_choice *choice)
{
    if (choice->one)
        td_selection_release(&choice->selection);
    choice->one = false;
    td_input_close(&choice->input);
}

tdbg_status td_side_of_choice(struct td_side *side, const struct td_choice *choice, struct tdbg_error *error)
{
    if (!choice->one)
        return td_side_of_input(side, choice->input, error);
    const struct td_tensor *only = &choice->selection.part;
    return td_side_init(side, &only, 1, error);
}

tdbg_status td_side_of_input(struct td_side *side, const struct td_input *input, struct tdbg_error *error)
{
    size_t n = td_input_count(input);
    const struct td_tensor **list = calloc(n + 1, sizeof *list);
    if (!list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < n; i++)
        list[i] = td_input_tensor(input, i);
    tdbg_status status = td_side_init(side, list, n, error);
    free(list);
    return status;
}

tdbg_status td_item_verify(const struct td_item *item, struct tdbg_error *error)
{
    for (int p = 0; p < item->part_count; p++)
        TD_TRY(td_input_verify(item->parts[p], error));
    return TDBG_OK;
}
