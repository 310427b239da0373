/* run_folders.h: the run folders that a path stands for: itself, or rank-0, rank-1, … in it. */
#ifndef TD_STORE_RUN_FOLDERS_H
#define TD_STORE_RUN_FOLDERS_H

#include "base/status.h"

struct td_run_folders {
    char **paths; /* by rank */
    size_t count; /* 0: no run */
};

TD_CHECK tdbg_status td_run_folders_init(struct td_run_folders *out, const char *dir,
                                         struct tdbg_error *error);
void td_run_folders_release(struct td_run_folders *folders);

#endif
