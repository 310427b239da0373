/* checked.h: one run or input that `tdbg check` has gone through, and how each is gone through. */
#ifndef TD_CLI_CHECKED_H
#define TD_CLI_CHECKED_H

#include "analyse/rules.h"
#include "cli/cli.h"
#include "kernel/range.h"

/* What a tensor would lose in another type. */
struct fit {
    char *name;
    const char *dtype;
    uint64_t count;
    struct td_range_counts counts;
};

struct checked {
    char *path;
    bool partial; /* some tensors could not be read, and that was printed */
    bool run;     /* recorded; else an input whose tensors have no steps */
    struct td_checker *checker;
    struct fit *fits; /* NULL unless a type was asked for */
    size_t fit_count;
};

/* Both print what fails, and return the exit status: EXIT_FINDINGS when there is something to tell. `out` is
 * filled unless it is EXIT_TROUBLE. */
int checked_run(const char *path, const struct td_rule_setting settings[TD_RULES], struct checked *out);

/* `as`: a floating type, TD_DTYPES for none. Rules about the first step of a training do not apply. */
int checked_input(struct cli *cli, const char *operand, const struct td_rule_setting settings[TD_RULES],
                  enum td_dtype as, struct checked *out);
void checked_release(struct checked *c);

#endif
