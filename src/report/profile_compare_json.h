/* profile_compare_json.h: two profiles compared, and ranks side by side, as JSON. */
#ifndef TD_REPORT_PROFILE_COMPARE_JSON_H
#define TD_REPORT_PROFILE_COMPARE_JSON_H

#include "analyse/profile_compare.h"
#include "base/json.h"

/* The members "summary" and "scopes" of an object that was begun. */
void td_profile_comparison_json(struct td_json *j, const struct td_profile_comparison *comparison,
                                const struct td_profile *a, const struct td_profile *b);

/* The member "stragglers". `ranks` are the numbers of the profiles. */
void td_profile_stragglers_json(struct td_json *j, const struct td_profile *const *profiles, const int *ranks,
                                const struct td_straggler *stragglers, size_t count);

#endif
