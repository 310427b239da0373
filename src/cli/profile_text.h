/* profile_text.h: a profile for people: the tree of scopes as a table, then what stands out. */
#ifndef TD_CLI_PROFILE_TEXT_H
#define TD_CLI_PROFILE_TEXT_H

#include "analyse/profile_findings.h"
#include "analyse/profile_open.h"
#include "cli/cli.h"

enum profile_sort { SORT_TOTAL, SORT_SELF, SORT_CALLS, SORT_NAME, SORT_ORDER };

struct profile_view {
    int64_t depth; /* deeper scopes are left out; -1: all */
    int64_t top;   /* rows, the heaviest; 0: all */
    enum profile_sort sort;
    bool flat;   /* by name, wherever it was called */
    bool series; /* with --json: the time of each scope in each step */
};

/* One or two lines on what was recorded. */
void profile_print_head(const struct cli *cli, const char *path, const struct td_profile_source *source);

/* False when memory ran out. */
bool profile_print_table(const struct cli *cli, const struct td_profile *profile,
                         const struct profile_view *view);
void profile_print_findings(const struct cli *cli, const struct td_findings *findings);

#endif
