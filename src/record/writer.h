/* writer.h: the thread that turns events into rows and files. */
#ifndef TD_RECORD_WRITER_H
#define TD_RECORD_WRITER_H

#include "record/recorder.h"

TD_CHECK tdbg_status td_writer_new(struct td_writer **out, tdbg_run *run, const struct td_run_facts *facts,
                                   struct tdbg_error *error);
void td_writer_free(struct td_writer *writer);

/* The body of the thread; its argument is the run. Ends when the run is closing and everything is written. */
void *td_writer_main(void *run);

#endif
