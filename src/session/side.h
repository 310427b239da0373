/* side.h: an opened input as one side of a comparison. */
#ifndef TD_SESSION_SIDE_H
#define TD_SESSION_SIDE_H

#include "compare/item.h"
#include "session/input.h"

/* Borrows the tensors: the input must outlive the side. */
TD_CHECK tdbg_status td_side_of_input(struct td_side *side, const struct td_input *input,
                                      struct tdbg_error *error);

#endif
