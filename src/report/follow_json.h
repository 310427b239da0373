/* follow_json.h: a run that is followed, as the dashboard gets it: parts that changed since a serial. */
#ifndef TD_REPORT_FOLLOW_JSON_H
#define TD_REPORT_FOLLOW_JSON_H

#include "analyse/follow.h"
#include "base/json.h"

/* Members of an object that was begun; `since` 0: all of them. See docs/api.md. */
void td_follow_json(struct td_json *j, struct td_follow *follow, uint64_t since);

/* {"program","host","pid","rank","world","started","state","ended_ns"}: members of an object that was begun.
 */
void td_run_facts_json(struct td_json *j, const struct td_run_facts *facts);

#endif
