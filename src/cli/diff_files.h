/* diff_files.h: the reports of a comparison that go to files. */
#ifndef TD_CLI_DIFF_FILES_H
#define TD_CLI_DIFF_FILES_H

#include "session/diff.h"

struct diff_files {
    const char *html, *junit, *csv, *pairs; /* NULL: not wanted */
};

/* Each file is written whole or not at all. An exit status. */
int diff_files_write(const struct td_diff *diff, const struct diff_files *files);

#endif
