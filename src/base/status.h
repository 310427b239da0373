/* status.h: failing with a reason.
 *
 * Every fallible function returns tdbg_status and takes an optional error. td_fail fills the error (when
 * there is one) and returns the code, so that failing is one statement:
 *
 *     return td_fail(error, TDBG_CORRUPT, "header of %zu bytes in a file of %zu", need, have);
 *
 * A message says what is wrong, in lower case and without the path: whoever knows the path puts it in front.
 */
#ifndef TD_BASE_STATUS_H
#define TD_BASE_STATUS_H

#include "tdbg.h"

#define TD_CHECK TDBG_MUST_CHECK

tdbg_status td_fail(struct tdbg_error *error, tdbg_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the byte of the file where it shows. */
tdbg_status td_fail_at(struct tdbg_error *error, tdbg_status code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* IO failure with the text of errno appended: "cannot open: No such file or directory". */
tdbg_status td_fail_errno(struct tdbg_error *error, const char *what);

tdbg_status td_fail_nomem(struct tdbg_error *error);

/* Puts `prefix` and ": " in front of the message, cutting its tail if it must. */
void td_error_prefix(struct tdbg_error *error, const char *prefix);

/* The message with its place, "(at byte N)", for people to read. Returns `out`. */
const char *td_error_text(const struct tdbg_error *error, char *out, size_t size);

/* Returns from the function when `call` fails. Only where nothing needs cleaning up. */
#define TD_TRY(call)                         \
    do {                                     \
        tdbg_status td_try_status_ = (call); \
        if (td_try_status_ != TDBG_OK)       \
            return td_try_status_;           \
    } while (0)

#endif
