/* profile_json.h: a profile as JSON. Times are whole nanoseconds. */
#ifndef TD_REPORT_PROFILE_JSON_H
#define TD_REPORT_PROFILE_JSON_H

#include "analyse/profile_findings.h"
#include "analyse/profile_open.h"
#include "base/json.h"

/* What is told of the scopes: nothing, the tree, or with it the time of each scope in each kept step. */
enum td_profile_scopes { TD_PROFILE_NO_SCOPES, TD_PROFILE_TREE, TD_PROFILE_SERIES };

/* The members of an object that was begun: source, times, steps, threads, scopes in the order of the tree,
 * findings. False when memory ran out. */
bool td_profile_json(struct td_json *j, const struct td_profile_source *source,
                     const struct td_findings *findings, enum td_profile_scopes scopes);

#endif
