/* run_folder.h: a recorded run as an input like any other.
 *
 * A run folder holds run.db and a .safetensors file for each step; of several ranks each has a folder rank-N.
 * Its tensors are listed in the order they were recorded, by their own names:
 *
 *     layers.0.output                  a run with values of one step
 *     step-3/layers.0.output           of several steps
 *     step-3#2/layers.0.output         when there was a step 3 before, as when each epoch begins at 0
 *     rank-1/step-3/layers.0.output    of several ranks
 *
 * Steps that were not finished when the program died are left out and reported. Tensors of which only
 * statistics were kept have no values to read: they come from the index, when somebody asks.
 */
#ifndef TD_SESSION_RUN_FOLDER_H
#define TD_SESSION_RUN_FOLDER_H

#include "base/status.h"
#include "tensor/tensor.h"

/* The index of a run in an archive. */
struct td_run_index {
    const char *prefix; /* its folder there: "runs/a/", or "" */
    const void *data;
    size_t size;
};

/* Turns what was found at `path` as mere files into what it is, when it is a folder that holds runs, or else
 * when `indexes` were found in archives, which are put in order; *runs says how many. */
TD_CHECK tdbg_status td_run_folder_arrange(struct td_catalog *catalog, const char *path,
                                           struct td_run_index *indexes, size_t count, size_t *runs,
                                           struct tdbg_error *error);

/* A tensor without values. */
struct td_recorded {
    struct td_tensor tensor; /* its name, type and shape */
    struct tdbg_stats stats;
};

struct td_recorded_list {
    struct td_arena arena;
    struct td_recorded *items;
    size_t count;
};

/* Those of which nothing but statistics was kept, in finished steps; none in what is no run. */
TD_CHECK tdbg_status td_recorded_list_init(struct td_recorded_list *out, const char *path,
                                           struct tdbg_error *error);
void td_recorded_list_release(struct td_recorded_list *list);

#endif
