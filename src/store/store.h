/* store.h: what a server remembers, in one SQLite file. All SQL of tdbg is behind this header.
 *
 * WAL mode: a process that is killed loses nothing that was reported as saved. One connection, one lock: the
 * store is asked a few times a second, never on the way of a value.
 */
#ifndef TD_STORE_STORE_H
#define TD_STORE_STORE_H

#include "base/buffer.h"
#include "base/status.h"

struct td_store;

/* Creates what is missing. A file made by a newer tdbg is refused. */
TD_CHECK tdbg_status td_store_open(struct td_store **out, const char *path, struct tdbg_error *error);
void td_store_close(struct td_store **store);

/* --- uploads -------------------------------------------------------------------------------------------- */

/* Borrowed by a visitor for the time of the call. A visitor must not ask the store: it is locked. */
struct td_upload_row {
    const char *id, *name, *sha256; /* sha256 "": it was not hashed */
    uint64_t bytes;
    int64_t created; /* seconds since 1970 */
};

TD_CHECK tdbg_status td_store_add_upload(struct td_store *store, const struct td_upload_row *row,
                                         struct tdbg_error *error);
TD_CHECK tdbg_status td_store_remove_upload(struct td_store *store, const char *id, struct tdbg_error *error);
TD_CHECK tdbg_status td_store_each_upload(struct td_store *store,
                                          void (*visit)(void *context, const struct td_upload_row *row),
                                          void *context, struct tdbg_error *error);

/* --- comparisons ---------------------------------------------------------------------------------------- */

struct td_source_row {
    const char *name, *path, *upload; /* upload NULL: the user's own path */
    const char *stamp; /* what the file was when it was compared: size, times, inode; "" unknown */
};

struct td_comparison_row {
    const char *id, *title, *session;
    const char *status;        /* "queued", "done", "failed", "cancelled" */
    const char *error;         /* of a failed one; NULL */
    const char *settings;      /* JSON object */
    const char *summary;       /* JSON object, what lists show: NULL before it is done */
    struct td_source_row a, b; /* b.path NULL: explored */
    int64_t created;
};

/* Adds it, or replaces all of the row but its result and state. */
TD_CHECK tdbg_status td_store_put_comparison(struct td_store *store, const struct td_comparison_row *row,
                                             struct tdbg_error *error);

/* The row, its result and the state that fits it (NULL: it stays), in one transaction: a comparison that says
 * done has its result. */
TD_CHECK tdbg_status td_store_finish_comparison(struct td_store *store, const struct td_comparison_row *row,
                                                const char *result, size_t size, const char *state,
                                                struct tdbg_error *error);
TD_CHECK tdbg_status td_store_remove_comparison(struct td_store *store, const char *id,
                                                struct tdbg_error *error);

/* Newest first. */
TD_CHECK tdbg_status td_store_each_comparison(struct td_store *store,
                                              void (*visit)(void *context,
                                                            const struct td_comparison_row *row),
                                              void *context, struct tdbg_error *error);

/* Appended to `out`; NOTFOUND when there is none. */
TD_CHECK tdbg_status td_store_result(struct td_store *store, const char *id, struct td_buffer *out,
                                     struct tdbg_error *error);

/* The page's own notes on a comparison: "{}" at first. */
TD_CHECK tdbg_status td_store_state(struct td_store *store, const char *id, struct td_buffer *out,
                                    struct tdbg_error *error);
TD_CHECK tdbg_status td_store_put_state(struct td_store *store, const char *id, const char *state,
                                        size_t size, struct tdbg_error *error);

#endif
