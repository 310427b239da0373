/* outfile.c: see outfile.h. */
#include "cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool in_place(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

tdbg_status outfile_open(struct outfile *out, const char *path, struct tdbg_error *error)
{
    struct outfile o = {.path = path};
    if (strcmp(path, "-") == 0) {
        o.file = stdout;
    } else if (in_place(path)) {
        o.file = fopen(path, "wb");
    } else {
        if (asprintf(&o.temporary, "%s.tmp-%ld", path, (long)getpid()) < 0)
            return td_fail_nomem(error);
        int fd = open(o.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        o.file = fd < 0 ? NULL : fdopen(fd, "wb");
        if (!o.file && fd >= 0)
            close(fd);
    }
    if (!o.file) {
        tdbg_status status = td_fail_errno(error, "cannot create");
        free(o.temporary);
        return status;
    }
    *out = o;
    return TDBG_OK;
}

tdbg_status outfile_commit(struct outfile *out, struct tdbg_error *error)
{
    bool failed = ferror(out->file) != 0;
    errno = failed ? errno : 0; /* nothing since that write had reason to fail */
    failed = fflush(out->file) != 0 || failed;
    if (out->file != stdout)
        failed = fclose(out->file) != 0 || failed;
    out->file = NULL;
    if (!failed && out->temporary)
        failed = rename(out->temporary, out->path) != 0;
    tdbg_status status = failed ? td_fail_errno(error, "cannot write") : TDBG_OK;
    outfile_discard(out);
    return status;
}

void outfile_discard(struct outfile *out)
{
    if (out->file && out->file != stdout)
        fclose(out->file);
    if (out->temporary)
        unlink(out->temporary); /* gone already after a rename */
    free(out->temporary);
    *out = (struct outfile){0};
}
