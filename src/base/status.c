/* status.c: see status.h. */
#include "base/status.h"

#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct tdbg_error *error, tdbg_status code, uint64_t offset, const char *format,
                 va_list args)
{
    error->status = code;
    error->offset = offset;
    vsnprintf(error->message, sizeof error->message, format, args);
    td_utf8_clean(error->message); /* names from files get in here; the message stays one line of text */
}

tdbg_status td_fail(struct tdbg_error *error, tdbg_status code, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        fill(error, code, TDBG_NO_OFFSET, format, args);
        va_end(args);
    }
    return code;
}

tdbg_status td_fail_at(struct tdbg_error *error, tdbg_status code, uint64_t offset, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        fill(error, code, offset, format, args);
        va_end(args);
    }
    return code;
}

tdbg_status td_fail_errno(struct tdbg_error *error, const char *what)
{
    int code = errno;
    char text[128];
    return td_fail(error, code == ENOMEM ? TDBG_NOMEM : TDBG_IO, "%s: %s", what,
                   strerror_r(code, text, sizeof text));
}

tdbg_status td_fail_nomem(struct tdbg_error *error)
{
    return td_fail(error, TDBG_NOMEM, "out of memory");
}

void td_error_prefix(struct tdbg_error *error, const char *prefix)
{
    if (!error)
        return;
    /* The reason matters more than the name: a long name gives way first. */
    size_t reason = strlen(error->message) + 1, name = strlen(prefix);
    size_t room = sizeof error->message - reason;
    if (room < 2)
        return;
    if (name > room - 2)
        name = room - 2;
    memmove(error->message + name + 2, error->message, reason);
    memcpy(error->message, prefix, name);
    memcpy(error->message + name, ": ", 2);
}

const char *td_error_text(const struct tdbg_error *error, char *out, size_t size)
{
    if (error->offset == TDBG_NO_OFFSET)
        snprintf(out, size, "%s", error->message);
    else
        snprintf(out, size, "%s (at byte %" PRIu64 ")", error->message, error->offset);
    return out;
}
