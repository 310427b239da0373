/* archive_library.h: libarchive, loaded by the first tar, zstd or bzip2 stream (base/library.h). */
#ifndef TD_IO_ARCHIVE_LIBRARY_H
#define TD_IO_ARCHIVE_LIBRARY_H

#include "base/library.h"

#include <archive.h>
#include <archive_entry.h>

/* clang-format off */
#define TD_ARCHIVE_CALLS(CALL) \
    CALL(archive_, entry_filetype) \
    CALL(archive_, entry_hardlink) \
    CALL(archive_, entry_pathname) \
    CALL(archive_, entry_pathname_utf8) \
    CALL(archive_, entry_size) \
    CALL(archive_, entry_symlink) \
    CALL(archive_, error_string) \
    CALL(archive_, filter_bytes) \
    CALL(archive_, read_append_filter) \
    CALL(archive_, read_data_block) \
    CALL(archive_, read_free) \
    CALL(archive_, read_header_position) \
    CALL(archive_, read_new) \
    CALL(archive_, read_next_header) \
    CALL(archive_, read_open) \
    CALL(archive_, read_open_memory) \
    CALL(archive_, read_support_format_empty) \
    CALL(archive_, read_support_format_raw) \
    CALL(archive_, read_support_format_tar)
/* clang-format on */

TD_LIBRARY_CALLS(td_archive_calls, TD_ARCHIVE_CALLS);

/* Its functions, once td_archive_library_load said so. */
extern struct td_archive_calls td_la;

TD_CHECK tdbg_status td_archive_library_load(struct tdbg_error *error);

#endif
