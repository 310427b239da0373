/* folder_make.c: see folder_make.h. */
#include "io/folder_make.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

tdbg_status td_folder_make(const char *path, mode_t mode, struct tdbg_error *error)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return td_fail(error, TDBG_MISUSE, length ? "path too long" : "an empty path");
    for (size_t i = 1; i <= length; i++)
        if (path[i] == '/' || path[i] == 0) {
            memcpy(part, path, i);
            part[i] = 0;
            if (mkdir(part, mode) != 0 && errno != EEXIST)
                return td_fail_errno(error, "cannot make the folder");
        }
    struct stat st;
    if (stat(path, &st) != 0)
        return td_fail_errno(error, "cannot make the folder");
    return S_ISDIR(st.st_mode) ? TDBG_OK : td_fail(error, TDBG_IO, "not a folder");
}
