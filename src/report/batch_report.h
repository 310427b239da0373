/* batch_report.h: a batch that has run, for scripts and for CI systems. */
#ifndef TD_REPORT_BATCH_REPORT_H
#define TD_REPORT_BATCH_REPORT_H

#include "base/json.h"
#include "session/batch.h"

/* {"version", "comparisons": [{"name", "a", "b", "status": "same|diverged|error", "expected", "ok", "error"?,
 * "first_divergence", "summary"}], "summary": {"comparisons", "same", "diverged", "errors", "unexpected"}} */
void td_batch_json(struct td_json *j, const struct td_batch *batch);

/* One test case for each comparison: a failure when it did not come out as expected. `name` is the suite's.
 */
void td_batch_junit(FILE *out, const char *name, const struct td_batch *batch);

struct td_batch_summary {
    size_t same, diverged, errors;
    size_t unexpected; /* same or diverged, and the other was expected */
};

struct td_batch_summary td_batch_summarise(const struct td_batch *batch);

#endif
