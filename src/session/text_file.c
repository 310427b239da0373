/* text_file.c: see text_file.h. */
#include "session/text_file.h"

#include <stdio.h>

tdbg_status td_text_file_read(struct td_buffer *out, const char *path, const char *what,
                              struct tdbg_error *error)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return td_fail_errno(error, "cannot open");
    char chunk[16384];
    for (size_t n; !out->failed && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        td_buffer_append(out, chunk, n);
    bool failed = ferror(file);
    tdbg_status status = failed ? td_fail_errno(error, "cannot read") : TDBG_OK;
    fclose(file);
    if (!failed && out->failed)
        status = td_fail(error, TDBG_LIMIT, "%s of more than %zu MiB", what, out->limit >> 20);
    return status;
}
