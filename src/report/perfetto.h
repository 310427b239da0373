/* perfetto.h: a recorded run as a Chrome trace, which ui.perfetto.dev, chrome://tracing and `tdbg profile`
 * read.
 *
 * Scopes are spans on the threads that ran them, with their work as arguments; steps are a track of their
 * own; memory held, the memory of the process and scalars are counters. Streamed: any number of spans.
 */
#ifndef TD_REPORT_PERFETTO_H
#define TD_REPORT_PERFETTO_H

#include "base/job.h"
#include "store/run_store.h"

#include <stdio.h>

/* What the stream could not take is for the caller to find (ferror). */
TD_CHECK tdbg_status td_perfetto_write(FILE *out, struct td_run_store *store, struct td_job *job,
                                       struct tdbg_error *error);

#endif
