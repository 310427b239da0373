/* outfile.h: a file a command writes, there whole or not at all.
 *
 * Bytes go to a file of another name beside it, which takes its name at the end. "-" is stdout; a device or a
 * pipe is written as it is.
 */
#ifndef TD_CLI_OUTFILE_H
#define TD_CLI_OUTFILE_H

#include "base/status.h"

#include <stdio.h>

struct outfile {
    FILE *file;
    const char *path; /* borrowed */
    char *temporary;  /* NULL when written in place */
};

TD_CHECK tdbg_status outfile_open(struct outfile *out, const char *path, struct tdbg_error *error);

/* Everything written, on the disk's side of the buffers, and in place. The file is closed either way. */
TD_CHECK tdbg_status outfile_commit(struct outfile *out, struct tdbg_error *error);

/* Closes and leaves nothing behind. */
void outfile_discard(struct outfile *out);

#endif
