/* diff.h: two inputs compared: opened, handed to td_compare, and held while its result is read.
 *
 * Nothing in it changes after td_diff_open.
 */
#ifndef TD_SESSION_DIFF_H
#define TD_SESSION_DIFF_H

#include "compare/compare.h"
#include "session/side.h"

struct td_diff_options {
    struct td_compare_options compare;
    const char *reference; /* a third input, more precise; NULL: none */
};

struct td_diff {
    struct td_choice choice_a, choice_b;
    struct td_input *a, *b; /* of the choices */
    struct td_side side_a, side_b;
    struct td_policy policy;
    char *reference;             /* its path; NULL: none */
    struct td_comparison result; /* borrows the sides */
};

/* The result keeps what it needs itself: an arena of `work` is not used. */
TD_CHECK tdbg_status td_diff_open(struct td_diff **out, const char *path_a, const char *path_b,
                                  const struct td_diff_options *options, const struct td_work *work,
                                  struct tdbg_error *error);
void td_diff_close(struct td_diff **diff);

#endif
