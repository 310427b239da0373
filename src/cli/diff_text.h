/* diff_text.h: a comparison for a person at a terminal: what matters first. */
#ifndef TD_CLI_DIFF_TEXT_H
#define TD_CLI_DIFF_TEXT_H

#include "cli/cli.h"
#include "report/diff_json.h"

/* `filter` NULL: what matters (all of it with -v). False when memory ran out. */
bool diff_text(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter);

#endif
