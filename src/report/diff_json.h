/* diff_json.h: a comparison as JSON, for scripts. The shape is part of the contract with users. */
#ifndef TD_REPORT_DIFF_JSON_H
#define TD_REPORT_DIFF_JSON_H

#include "base/json.h"
#include "session/diff.h"

/* Which pairs to list; NULL lists all. */
typedef bool td_pair_filter(const struct td_pair *pair);

void td_diff_json(struct td_json *j, const struct td_diff *diff, td_pair_filter *filter);

#endif
