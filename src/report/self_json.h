/* self_json.h: an input against itself as JSON, written as the pairs come: the members of diff_json.h, but
 * the summary after the pairs.
 *
 *     {"version", "a", "b", "policy", "first_divergence": null, "pairs": […],
 *      "summary", "self": {"total", "unlike", "complete"}, "skipped"}
 *
 * `total` is N choose 2, `unlike` counts the pairs passed over because their shapes do not line up.
 */
#ifndef TD_REPORT_SELF_JSON_H
#define TD_REPORT_SELF_JSON_H

#include "report/diff_json.h"
#include "session/self.h"

void td_self_json_begin(struct td_json *j, const struct td_self *self);
/* td_pair_json for each */
void td_self_json_end(struct td_json *j, const struct td_self *self, const struct td_summary *summary,
                      bool complete);

#endif
