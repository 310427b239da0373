/* run_folders.h: the run folders that a path stands for: itself, or rank-0, rank-1, … in it. */
#ifndef TD_STORE_RUN_FOLDERS_H
#define TD_STORE_RUN_FOLDERS_H

#include "base/status.h"

#include <stdbool.h>

#define TD_RUN_CONTROL "control" /* the socket of a live run */

struct td_run_folders {
    char **paths; /* by rank */
    size_t count; /* 0: no run */
};

TD_CHECK tdbg_status td_run_folders_init(struct td_run_folders *out, const char *dir,
                                         struct tdbg_error *error);
void td_run_folders_release(struct td_run_folders *folders);

/* A name that the recorder gives to a file of a run: its index, the values of a step, the socket. */
bool td_run_owns(const char *name);

/* One of these that is a file of values, whole and named. */
bool td_run_is_values(const char *name);

#endif
