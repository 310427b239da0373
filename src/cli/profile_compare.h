/* profile_compare.h: `tdbg profile RUN --compare OTHER`. */
#ifndef TD_CLI_PROFILE_COMPARE_H
#define TD_CLI_PROFILE_COMPARE_H

#include "analyse/profile_compare.h"
#include "cli/profile_text.h"

/* `a` is what `b` is held against. The exit status: findings when something in `b` is slower. */
int profile_report_comparison(struct cli *cli, const char *path_a, const struct td_profile *a,
                              const char *path_b, const struct td_profile *b,
                              const struct profile_view *view);

#endif
