/* stats_json.h: statistics as JSON, for scripts. The shape is part of the contract with users. */
#ifndef TD_REPORT_STATS_JSON_H
#define TD_REPORT_STATS_JSON_H

#include "base/json.h"
#include "session/stats_rows.h"

/* Members of the object under way: "count" to "norm". */
void td_stats_members_json(struct td_json *j, const struct tdbg_stats *stats);

/* The member "tensors": the rows that were measured. */
void td_stats_rows_json(struct td_json *j, const struct td_stats_rows *rows);

/* Elements of the array "skipped": the rows that were not. */
void td_stats_skips_json(struct td_json *j, const struct td_stats_rows *rows);

#endif
