/* data_folder.c: see data_folder.h. */
#include "cli/data_folder.h"

#include "io/folder_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tdbg_status default_folder(char **out, struct tdbg_error *error)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int length = -1;
    if (data && data[0] == '/')
        length = asprintf(out, "%s/tdbg", data);
    else if (home && home[0] == '/')
        length = asprintf(out, "%s/.local/share/tdbg", home);
    else
        return td_fail(error, TDBG_MISUSE, "there is no home folder to keep data in (--data names one)");
    return length < 0 ? td_fail_nomem(error) : TDBG_OK;
}

tdbg_status data_folder_init(struct data_folder *out, const char *data, const char *database,
                             struct tdbg_error *error)
{
    struct data_folder folder = {0};
    char *base = NULL;
    tdbg_status status = TDBG_OK;
    if (data || database)
        base = strdup(data ? data : "");
    else
        status = default_folder(&base, error);
    if (status == TDBG_OK && !base)
        status = td_fail_nomem(error);
    if (status == TDBG_OK && base[0]) {
        status = td_folder_make(base, 0700, error);
        if (status != TDBG_OK)
            td_error_prefix(error, base);
    }
    if (status == TDBG_OK && ((database ? asprintf(&folder.database, "%s", database)
                                        : asprintf(&folder.database, "%s/tdbg.db", base)) < 0 ||
                              (base[0] ? asprintf(&folder.uploads, "%s/uploads", base)
                                       : asprintf(&folder.uploads, "%s.uploads", database)) < 0 ||
                              (base[0] && asprintf(&folder.history, "%s/history", base) < 0)))
        status = td_fail_nomem(error);
    free(base);
    if (status == TDBG_OK)
        *out = folder;
    else
        data_folder_release(&folder);
    return status;
}

void data_folder_release(struct data_folder *folder)
{
    free(folder->database);
    free(folder->uploads);
    free(folder->history);
    *folder = (struct data_folder){0};
}
