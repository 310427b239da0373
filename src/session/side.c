/* side.c: see side.h. */
#include "session/side.h"

#include <stdlib.h>

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
