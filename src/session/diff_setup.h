/* diff_setup.h: a comparison as the user asks for it: options as text, from a command line, a batch file or a
 * browser. */
#ifndef TD_SESSION_DIFF_SETUP_H
#define TD_SESSION_DIFF_SETUP_H

#include "session/diff.h"

struct td_diff_setup {
    const char *match, *pairs, *names, *policy, *reference, *layout; /* NULL: not given */
    double threshold, coverage;                                      /* negative: the default */
    double rtol, atol;                                               /* negative: not given */
    int64_t top;
    const struct td_name_pair *manual; /* pairs by hand that are in no file, instead of `pairs` */
    size_t manual_count;
    const struct td_name_rule *rules; /* names of an engine that are in no file, instead of `names` */
    size_t rule_count;
};

/* Worst elements of one pair: more than anybody reads, and a page can show. */
enum { TD_MOST_TOP = 1000 };

#define TD_DIFF_SETUP                                                     \
    {                                                                     \
        .threshold = -1, .coverage = -1, .rtol = -1, .atol = -1, .top = 5 \
    }

/* The rule that the options ask for. */
TD_CHECK tdbg_status td_diff_setup_policy(struct td_policy *out, const struct td_diff_setup *setup,
                                          struct tdbg_error *error);

/* What can be told wrong without looking at any file. */
TD_CHECK tdbg_status td_diff_setup_check(const struct td_diff_setup *setup, struct tdbg_error *error);

/* Checks the options, reads the files of pairs and names, compares. */
TD_CHECK tdbg_status td_diff_run(struct td_diff **out, const char *a, const char *b,
                                 const struct td_diff_setup *setup, const struct td_work *work,
                                 struct tdbg_error *error);

#endif
