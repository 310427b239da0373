/* trace_flops.h: the work of a call, as far as a trace tells it. */
#ifndef TD_ANALYSE_TRACE_FLOPS_H
#define TD_ANALYSE_TRACE_FLOPS_H

#include "analyse/trace_scan.h"

/* FLOPs of torch's matrix products (mm, addmm, bmm, baddbmm) from the shapes of their inputs, recorded with
 * record_shapes=True. 0 for anything else: other operators do little work beside these. */
double td_trace_flops(const struct td_trace_event *event);

#endif
