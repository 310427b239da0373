/* diff_self.h: `tdbg diff FILE`: every tensor of one file against every other, row by row as they come. */
#ifndef TD_CLI_DIFF_SELF_H
#define TD_CLI_DIFF_SELF_H

#include "cli/cli.h"
#include "report/diff_json.h"
#include "session/diff_setup.h"

/* `most` pairs at most; negative: all of them, or a first page on a terminal. An exit status. */
int diff_self(struct cli *cli, const char *path, const struct td_diff_setup *setup, int64_t most,
              td_pair_filter *filter);

#endif
