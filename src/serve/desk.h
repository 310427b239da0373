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

#include "base/buffer.h"
#include "session/diff_setup.h"
#include "session/subject.h"

#include <jansson.h>

struct td_desk;
struct td_store;

/* `uploads` is the data folder (uploads.h): where a source that is an upload lies. NULL: there are none.
 * `bound` is where the links of other sources may lead; NULL: anywhere. */
struct td_uploads;
TD_CHECK tdbg_status td_desk_open(struct td_desk **out, struct td_store *store, struct td_uploads *uploads,
                                  const struct td_bound *bound, struct tdbg_error *error);
void td_desk_close(struct td_desk **desk);

/* Stops all work and lets everybody go who waits. Orders are still taken, and begun at the next start. */
void td_desk_stop(struct td_desk *desk);

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

/* Begins; `id` gets its name. MISUSE when the settings make no sense or name a tensor that is not there,
 * UNSUPPORTED when they are not allowed, LIMIT when too many wait already. */
TD_CHECK tdbg_status td_desk_start(struct td_desk *desk, const struct td_order *order,
                                   char id[TD_ID_LENGTH + 1], struct tdbg_error *error);

/* Compares again with other settings. MISMATCH while it is under way. A failure leaves it as it was. */
TD_CHECK tdbg_status td_desk_configure(struct td_desk *desk, const char *id, const char *settings,
                                       struct tdbg_error *error);

/* Both come back when it stands still. What is stopped can be started again by td_desk_configure; what is
 * removed is gone, with the uploads that nobody else uses. */
TD_CHECK tdbg_status td_desk_cancel(struct td_desk *desk, const char *id, struct tdbg_error *error);
TD_CHECK tdbg_status td_desk_remove(struct td_desk *desk, const char *id, struct tdbg_error *error);

/* Waits until it stands still, for clients that expect the result in the answer. Fails when it failed, with
 * the same error. */
TD_CHECK tdbg_status td_desk_wait(struct td_desk *desk, const char *id, struct tdbg_error *error);

/* The newest comparison of a browser, or of all when it has none; NOTFOUND when there is none at all. */
TD_CHECK tdbg_status td_desk_latest(struct td_desk *desk, const char *session, char id[TD_ID_LENGTH + 1],
                                    struct tdbg_error *error);

/* --- as JSON, appended to `out` ------------------------------------------------------------------------- */

/* C of docs/api.md, and the list of all. */
TD_CHECK tdbg_status td_desk_describe(struct td_desk *desk, const char *id, struct td_buffer *out,
                                      struct tdbg_error *error);
TD_CHECK tdbg_status td_desk_list(struct td_desk *desk, struct td_buffer *out, struct tdbg_error *error);

/* What somebody who follows a comparison has seen of it; zero at first. */
struct td_news {
    uint64_t revision, done;
};

/* C when it is not what was seen; `more` tells whether anything can follow. Blocks no longer than it takes to
 * write it. */
TD_CHECK tdbg_status td_desk_news(struct td_desk *desk, const char *id, struct td_news *seen,
                                  struct td_buffer *out, bool *more, struct tdbg_error *error);

/* The document of a finished one. MISMATCH when it is not done. */
TD_CHECK tdbg_status td_desk_result(struct td_desk *desk, const char *id, struct td_buffer *out,
                                    struct tdbg_error *error);

/* The page's own notes. */
TD_CHECK tdbg_status td_desk_state(struct td_desk *desk, const char *id, struct td_buffer *out,
                                   struct tdbg_error *error);
TD_CHECK tdbg_status td_desk_put_state(struct td_desk *desk, const char *id, const char *state, size_t size,
                                       struct tdbg_error *error);

/* Puts the members of `patch` into them (notes.h). MISMATCH when they are about another result than
 * `generation` (negative: about any), LIMIT when they get larger than `most` bytes. */
TD_CHECK tdbg_status td_desk_patch_state(struct td_desk *desk, const char *id, int64_t generation,
                                         const json_t *patch, size_t most, struct tdbg_error *error);

/* --- looking at one ------------------------------------------------------------------------------------- */

/* A finished comparison, held open while somebody looks. */
struct td_open_comparison {
    const char *id;
    const struct td_diff *diff;   /* NULL when a single input is explored … */
    const struct td_input *input; /* … which then is this */
    size_t count;                 /* pairs, or tensors */
    uint64_t generation;          /* of its result: pairs have the same numbers as long as this stays */
};

/* MISMATCH when what a client has in mind (negative: nothing) is not the result that is shown. */
TD_CHECK tdbg_status td_generation_check(uint64_t shown, int64_t wanted, struct tdbg_error *error);

/* NOTFOUND: no such comparison; MISMATCH: it is not done, or an input has changed; IO and the like: an input
 * is gone. Returned with td_desk_return, soon. Costs less than a microsecond when it lies open. */
TD_CHECK tdbg_status td_desk_borrow(struct td_desk *desk, const char *id,
                                    const struct td_open_comparison **out, struct tdbg_error *error);

/* The same for who must not wait: false when it does not lie open, or anything else is in the way. Then
 * td_desk_borrow, where waiting is allowed (td_may_wait), opens it or says what is wrong. */
bool td_desk_borrow_now(struct td_desk *desk, const char *id, const struct td_open_comparison **out);
void td_desk_return(struct td_desk *desk, const struct td_open_comparison **opened);

/* Pair `index` of it, ready to be read; kept with the comparison, so asking again is free. NOTFOUND when
 * there is no such pair, MISMATCH when its sides do not line up. Valid until the comparison is returned. */
TD_CHECK tdbg_status td_desk_subject(struct td_desk *desk, const struct td_open_comparison *opened,
                                     size_t index, const struct td_subject **out, struct tdbg_error *error);

/* The same for who looks at each side by itself: that they do not line up is no failure. */
TD_CHECK tdbg_status td_desk_sides(struct td_desk *desk, const struct td_open_comparison *opened,
                                   size_t index, const struct td_subject **out, struct tdbg_error *error);

/* --- changing one by hand ------------------------------------------------------------------------------- */

/* Its pairs have an order in which they are shown (ranking.h): the pair at a position, as cheap as borrowing;
 * and moving one, which is saved. */
TD_CHECK tdbg_status td_desk_ranked(struct td_desk *desk, const struct td_open_comparison *opened,
                                    size_t position, size_t *index, struct tdbg_error *error);
TD_CHECK tdbg_status td_desk_move(struct td_desk *desk, const struct td_open_comparison *opened, size_t from,
                                  size_t to, struct tdbg_error *error);

/* Compares again with a pair made by hand, and waits for it. */
TD_CHECK tdbg_status td_desk_pair(struct td_desk *desk, const char *id, const char *a, const char *b,
                                  struct tdbg_error *error);

#endif
