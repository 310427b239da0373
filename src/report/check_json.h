/* check_json.h: findings of the rules, and the rules themselves, as JSON. */
#ifndef TD_REPORT_CHECK_JSON_H
#define TD_REPORT_CHECK_JSON_H

#include "analyse/rules.h"
#include "base/json.h"

/* An object: {"rule","kind":"tensor"|"scalar","name","step","ordinal","time_ns","number",…}. A step that is
 * not over has no number yet: null. */
void td_finding_json(struct td_json *j, const struct td_finding *finding);

/* An array of all, in the order of the run. */
void td_findings_json(struct td_json *j, struct td_checker *checker);

/* An array of the rules as they are set. */
void td_rules_json(struct td_json *j, const struct td_rule_setting settings[TD_RULES]);

/* "root mean square 1.2e+05, above 100". Returns `out`. */
const char *td_finding_words(const struct td_finding *finding, char *out, size_t size);

#endif
