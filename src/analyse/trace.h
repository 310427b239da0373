/* trace.h: traces of other profilers as a profile: torch.profiler (Kineto and before it), ONNX Runtime, and
 * whatever else writes Chrome's trace events. Plain or compressed, any size, in bounded memory.
 */
#ifndef TD_ANALYSE_TRACE_H
#define TD_ANALYSE_TRACE_H

#include "analyse/profile.h"
#include "analyse/trace_text.h"

/* The category of the events that mark steps in traces of our own: "step 12". */
#define TD_TRACE_STEP "tdbg_step"

struct td_trace_facts {
    uint64_t events;  /* all of them */
    uint64_t spans;   /* those that took time and count */
    uint64_t skipped; /* spans without a name or time, ends without a beginning */
    bool cut;         /* the trace stops too early; what was before counts */
    uint64_t cut_at;
};

/* Fills a profile that was only initialised; the caller finishes it. */
TD_CHECK tdbg_status td_trace_profile(struct td_profile *profile, struct td_trace_text *text,
                                      struct td_trace_facts *facts, struct tdbg_error *error);

#endif
