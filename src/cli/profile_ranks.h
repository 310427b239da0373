/* profile_ranks.h: `tdbg profile` of a folder of ranks: side by side, with those that hold the others up. */
#ifndef TD_CLI_PROFILE_RANKS_H
#define TD_CLI_PROFILE_RANKS_H

#include "cli/profile_text.h"

/* `ranks`: the numbers of the folders rank-N in `path`. */
int profile_report_ranks(struct cli *cli, const char *path, const int *ranks, size_t count,
                         const struct profile_view *view);

#endif
