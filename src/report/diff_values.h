/* diff_values.h: the values around the worst element of a pair, for a page that shows them in colour. */
#ifndef TD_REPORT_DIFF_VALUES_H
#define TD_REPORT_DIFF_VALUES_H

#include "base/json.h"
#include "compare/pair.h"

/* {"slice": "[3, 4:13, 0:16]", "rows": [4, …], "columns": [0, …], "worst": [row, column],
 *  "a": [[…]], "b": [[…]], "difference": [[…]]}, {"error": "…"} when they cannot be read, null without a
 * pair that was measured. The difference is b - a: what B has too much. */
void td_values_json(struct td_json *j, const struct td_pair *pair);

#endif
