/* profile_json.h: a profile as JSON. Times are whole nanoseconds. */
#ifndef TD_REPORT_PROFILE_JSON_H
#define TD_REPORT_PROFILE_JSON_H

#include "analyse/profile_findings.h"
#include "analyse/profile_open.h"
#include "base/json.h"

/* The members of an object that was begun: source, times, steps, threads, scopes in the order of the tree,
 * findings. `series`: also the time of each scope in each kept step. False when memory ran out. */
bool td_profile_json(struct td_json *j, const struct td_profile_source *source,
                     const struct td_findings *findings, bool series);

/* {"count", "p50_ns", …}, or null without values. */
void td_profile_spread_json(struct td_json *j, const char *key, const struct td_spread *spread);

#endif
