/* write_all.c: see write_all.h. */
#include "io/write_all.h"

#include <errno.h>
#include <unistd.h>

int td_write_all(int file, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t count = write(file, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        at += count;
        size -= (size_t)count;
    }
    return 0;
}
