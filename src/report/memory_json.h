/* memory_json.h: what `tdbg memory` found, as JSON; described in docs/memory.md. */
#ifndef TD_REPORT_MEMORY_JSON_H
#define TD_REPORT_MEMORY_JSON_H

#include "analyse/memory_story.h"
#include "base/json.h"

/* The member "memory": an array of stories; at most `top` owners in each list. */
void td_memory_book_json(struct td_json *j, const struct td_memory_book *book, size_t top);

/* The groups of a story with the largest `key`, in the order of it; to be freed. *count: those that are not
 * zero, at most `top`. NULL when memory ran out. */
typedef uint64_t td_memory_key(const struct td_memory_group *group);

uint32_t *td_memory_largest(const struct td_memory_report *r, td_memory_key *key, size_t top, size_t *count);

/* What the lists of a report are ordered by. */
td_memory_key td_memory_by_peak, td_memory_by_end, td_memory_by_change;
extern td_memory_key *const td_memory_pins[TD_MOMENTS];

extern const char *const td_memory_moment_names[TD_MOMENTS]; /* "peak", "worst", "end" */

#endif
