/* earlier_run.h: an earlier run that a live one is held against, tensor by tensor: `diverges-from`.
 *
 * Partners have the same name and belong to the step of the same number; where a step has a name several
 * times (a module that is called twice), the n-th goes with the n-th. They are judged as `tdbg diff` does, by
 * the noise floor of their place in the model; only partners whose values were recorded can be judged. The
 * files of one step of the earlier run are open at a time.
 */
#ifndef TD_LIVE_EARLIER_RUN_H
#define TD_LIVE_EARLIER_RUN_H

#include "base/status.h"
#include "tensor/tensor.h"

#include <stdbool.h>

struct td_earlier_run;

enum { TD_DIVERGENCE_TEXT = 256 };

/* True when the tensor is not what it was in the earlier run; `why` says how. `call` counts the tensors of
 * that name in the step, from 1; 0: not known, and then a name that the step has twice is not judged. Any
 * number of threads may ask; they take turns. */
bool td_earlier_run_differs(struct td_earlier_run *run, const struct td_tensor *tensor, int64_t step,
                            const char *name, size_t call, char why[TD_DIVERGENCE_TEXT]);

/* Those in use by one control; a run that is named twice is opened once. Kept until the end. */
enum { TD_MOST_EARLIER = 8 };

struct td_earlier_runs {
    struct td_earlier_run *list[TD_MOST_EARLIER];
    int count;
};

TD_CHECK tdbg_status td_earlier_runs_find(struct td_earlier_runs *runs, const char *dir,
                                          struct td_earlier_run **out, struct tdbg_error *error);
void td_earlier_runs_release(struct td_earlier_runs *runs);

#endif
