/* text_file.h: small files that a user writes by hand: pairs, batches. */
#ifndef TD_SESSION_TEXT_FILE_H
#define TD_SESSION_TEXT_FILE_H

#include "base/buffer.h"
#include "base/status.h"

/* Appends the whole file; LIMIT when it does not fit, `what` names it then ("a list of pairs"). */
TD_CHECK tdbg_status td_text_file_read(struct td_buffer *out, const char *path, const char *what,
                                       struct tdbg_error *error);

#endif
