/* side.h: what the user named as one side of a comparison, opened: all of an input, one tensor of it
 * (PATH:NAME), or a slice of that (PATH:NAME[5, 0:16]). */
#ifndef TD_SESSION_SIDE_H
#define TD_SESSION_SIDE_H

#include "compare/name/item.h"
#include "session/target.h"

struct td_choice {
    struct td_input *input;
    bool one;                      /* only `selection` is meant */
    struct td_selection selection; /* its tensor is borrowed from the input */
};

/* Points into itself: must not be moved. Errors name what was opened. */
TD_CHECK tdbg_status td_choice_open(struct td_choice *out, const char *text, struct td_job *job,
                                    struct tdbg_error *error);
void td_choice_close(struct td_choice *choice);

/* Both borrow the tensors: what they are made from must outlive the side. */
TD_CHECK tdbg_status td_side_of_input(struct td_side *side, const struct td_input *input,
                                      struct tdbg_error *error);
TD_CHECK tdbg_status td_side_of_choice(struct td_side *side, const struct td_choice *choice,
                                       struct tdbg_error *error);

/* Fails when a file of the item was cut short since it was opened. */
TD_CHECK tdbg_status td_item_verify(const struct td_item *item, struct tdbg_error *error);

#endif
