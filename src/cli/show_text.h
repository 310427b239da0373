/* show_text.h: values as people read them, in the manner of numpy: nested rows, aligned, the middle left out.
 */
#ifndef TD_CLI_SHOW_TEXT_H
#define TD_CLI_SHOW_TEXT_H

#include "base/job.h"
#include "cli/term.h"
#include "report/values.h"
#include "tensor/view.h"

/* The first elements of the selection as an array of `shape`; `all`: whatever their number. */
TD_CHECK tdbg_status show_text(const struct term *term, struct td_values *values,
                               const struct td_shape *shape, bool all, struct td_job *job,
                               struct tdbg_error *error);

#endif
