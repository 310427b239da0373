/* diff_json.h: a comparison as JSON, for scripts. The shape is part of the contract with users. */
#ifndef TD_REPORT_DIFF_JSON_H
#define TD_REPORT_DIFF_JSON_H

#include "base/json.h"
#include "session/diff.h"

/* Which pairs to list; NULL lists all. */
typedef bool td_pair_filter(const struct td_pair *pair);

void td_diff_json(struct td_json *j, const struct td_diff *diff, td_pair_filter *filter);

/* Its parts, for documents that are made of the same: a member (key and value) of the object under way, … */
void td_input_json(struct td_json *j, const char *key, const struct td_input *input);
void td_summary_json(struct td_json *j, const struct td_summary *summary);
void td_policy_json(struct td_json *j, const struct td_policy *policy, const char *reference);
void td_diagnosis_json(struct td_json *j, const struct td_diagnosis *diagnosis);   /* NULL: an empty list */
void td_item_json(struct td_json *j, const char *key, const struct td_item *item); /* NULL: null */
void td_layout_json(struct td_json *j, const struct td_pair *pair);                /* "layout" */
void td_metrics_json(struct td_json *j, const struct td_pair *pair);               /* "metrics" */
void td_pairing_json(struct td_json *j, const struct td_pair *pair); /* strategy, sure, aliases, … */

/* … a value: the indices of a row-major place, … */
void td_coordinates_json(struct td_json *j, const struct td_shape *shape, int64_t index);

/* … or elements of the array under way. */
void td_summary_counts_json(struct td_json *j, const struct td_summary *summary);
void td_pair_json(struct td_json *j, const struct td_pair *pair, uint64_t index);
void td_skips_json(struct td_json *j, const struct td_input *input);

#endif
