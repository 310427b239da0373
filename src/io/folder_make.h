/* folder_make.h: a new folder on disk. */
#ifndef TD_IO_FOLDER_MAKE_H
#define TD_IO_FOLDER_MAKE_H

#include "base/status.h"

#include <sys/types.h>

/* The folder and those missing above it. One that is there already is as good. */
TD_CHECK tdbg_status td_folder_make(const char *path, mode_t mode, struct tdbg_error *error);

#endif
