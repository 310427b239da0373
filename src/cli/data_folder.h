/* data_folder.h: where `tdbg serve` keeps what it must not forget, and `tdbg console` its history.
 *
 *     DATA/tdbg.db, DATA/uploads, DATA/history
 *                                     DATA: --data, else $XDG_DATA_HOME/tdbg, else ~/.local/share/tdbg
 *     FILE, FILE.uploads              --db FILE
 */
#ifndef TD_CLI_DATA_FOLDER_H
#define TD_CLI_DATA_FOLDER_H

#include "base/status.h"

struct data_folder {
    char *database, *uploads, *history; /* history NULL: with --db there is none */
};

/* Makes the folders above them; either argument may be NULL. */
TD_CHECK tdbg_status data_folder_init(struct data_folder *out, const char *data, const char *database,
                                      struct tdbg_error *error);
void data_folder_release(struct data_folder *folder);

#endif
