/* trace_text.h: the bytes of a trace, as a window that moves over them.
 *
 * A plain file is mapped, and the window is all of it. A compressed one is decoded a window at a time: who
 * parses asks for more when a record does not end within it, and parses that record again. So nobody holds
 * more than a window, and a record has the same simple face in both cases: contiguous bytes.
 */
#ifndef TD_ANALYSE_TRACE_TEXT_H
#define TD_ANALYSE_TRACE_TEXT_H

#include "base/job.h"
#include "io/decoder.h"
#include "io/map.h"

struct td_trace_text {
    const char *data; /* the window; never NULL */
    size_t size;
    uint64_t offset; /* of the window in the plain text */
    bool last;       /* nothing follows it */
    bool cut;        /* the compressed stream stops too early */

    struct td_map map;
    struct td_decoder *decoder; /* NULL for a plain file */
    char *buffer;
    size_t room;
    struct td_job *job; /* `done` counts bytes of the file; may be NULL */
    uint64_t told;
};

TD_CHECK tdbg_status td_trace_text_open(struct td_trace_text *out, const char *path, struct td_job *job,
                                        struct tdbg_error *error);

/* Bytes in memory, borrowed; compressed or not. */
TD_CHECK tdbg_status td_trace_text_memory(struct td_trace_text *out, const void *data, size_t size,
                                          struct tdbg_error *error);
void td_trace_text_close(struct td_trace_text *text);

/* Forgets the first `done` bytes of the window and adds what follows. Fails when the window cannot grow: one
 * record of more than 16 MiB. */
TD_CHECK tdbg_status td_trace_text_more(struct td_trace_text *text, size_t done, struct tdbg_error *error);

/* Tells the job how far a plain file has been read. */
void td_trace_text_told(struct td_trace_text *text, size_t done);

#endif
