/* progress.h: a line on the terminal that says how far a job is. Only where a person looks at stderr, and
 * only when the work takes long enough to wonder. */
#ifndef TD_CLI_PROGRESS_H
#define TD_CLI_PROGRESS_H

#include "cli/cli.h"

struct progress;

/* Starts watching cli->job, which is set back to zero of `total` bytes (0: not known). `what` is shown and
 * borrowed. NULL where nobody looks; progress_stop takes that too. */
struct progress *progress_start(struct cli *cli, const char *what, uint64_t total);

/* Wipes the line. */
void progress_stop(struct progress **progress);

#endif
