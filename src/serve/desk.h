/* desk.h: the comparisons of a server: those under way, those that lie open, those that wait in the store.
 *
 *     queued -> running -> done | failed | cancelled        what was queued or running when the server
 *        ^                          |                       stopped is queued again at the next start
 *        +-------- settings --------+
 *
 * Work runs on a thread of its own, one comparison at a time with all cores. A finished comparison is written
 * to the store, result and all, before anybody is told. It stays open (inputs mapped) while it is among the
 * last few that were looked at; one that is not is opened again, by comparing again with the same settings,
 * when somebody looks at its values. What nobody has changed on disk gives the same answer.
 */
#ifndef TD_SERVE_DESK_H
#define TD_SERVE_DESK_H

#include "base/json.h"
#include "session/diff_setup.h"
#include "session/subject.h"

struct td_desk;
struct td_store;

/* `uploads` is the data folder (uploads.h): where a source that is an upload lies. */
struct td_uploads;
TD_CHECK tdbg_status td_desk_open(struct td_desk **out, struct td_store *store, struct td_uploads *uploads,
                                  struct tdbg_error *error);
void td_desk_close(struct td_desk **desk);

/* What to compare. Strings are copied. */
struct td_order_side {
    const char *name;   /* as people see it */
    const char *path;   /* PATH, PATH:NAME or PATH:NAME[slice] */
    const char *upload; /* its id; NULL: a path of the user's, never copied and never removed */
};

struct td_order {
    const char *title;         /* NULL: made from the names */
    struct td_order_side a, b; /* b.path NULL: explore a */
    const char *settings;      /* JSON object, as in docs/api.md; NULL: none */
    const char *session;       /* the browser that asked; "" none */
};

enum { TD_ID_LENGTH = 16 }; /* hexadecimal digits */

/* Begins; `id` gets its name. MISUSE when the settings make no sense. */
TD_CHECK tdbg_status td_desk_start(struct td_desk *desk, const struct td_order *order,
                                   char id[TD_ID_LENGTH + 1], struct tdbg_error *error);

/* Waits until it stands still, for clients that expect the result in the answer. */
TD_CHECK tdbg_status td_desk_wait(struct td_desk *desk, const char *id, struct tdbg_error *error);

/* The newest comparison of a browser, or of all when it has none; NOTFOUND when there is none at all. */
TD_CHECK tdbg_status td_desk_latest(struct td_desk *desk, const char *session, char id[TD_ID_LENGTH + 1],
                                    struct tdbg_error *error);

/* A finished comparison, held open while somebody looks. */
struct td_open_comparison {
    const char *id;
    const struct td_diff *diff;   /* NULL when a single input is explored … */
    const struct td_input *input; /* … which then is this */
    size_t count;                 /* pairs, or tensors */
};

/* NOTFOUND: no such comparison; MISMATCH: it is not done; IO and the like: its inputs are gone. Returned
 * with td_desk_return, soon. */
TD_CHECK tdbg_status td_desk_borrow(struct td_desk *desk, const char *id,
                                    const struct td_open_comparison **out, struct tdbg_error *error);
void td_desk_return(struct td_desk *desk, const struct td_open_comparison **opened);

/* Pair `index` of it, ready to be read; kept with the comparison, so asking again is free. NOTFOUND when
 * there is no such pair, MISMATCH when its sides do not line up. Valid until the comparison is returned. */
TD_CHECK tdbg_status td_desk_subject(struct td_desk *desk, const struct td_open_comparison *opened,
                                     size_t index, const struct td_subject **out, struct tdbg_error *error);

#endif
