/* original.h: the HTTP API of the application that tdbg replaces: what its routes share.
 *
 * Its clients speak of "matches", numbered from 0 as they are shown. A listing is that view of a comparison:
 *
 *     two inputs    the pairs in the order somebody dragged them into, else that of execution; of two tensor
 *                   files those with both sides only, as its page can show no others there
 *     one input     every pair of its tensors, N choose 2, measured when it is asked for
 *
 * Which comparison is meant is never said: it is the newest of the browser that asks, or of all when that has
 * none.
 */
#ifndef TD_SERVE_ORIGINAL_H
#define TD_SERVE_ORIGINAL_H

#include "serve/desk.h"
#include "serve/exchange.h"
#include "session/self.h"

enum td_upload_mode { TD_DUAL_ARCHIVE, TD_DUAL_PTH, TD_SINGLE_FILE, TD_MIXED, TD_UPLOAD_MODES };

extern const char *const td_upload_mode_names[TD_UPLOAD_MODES];

/* By the names of the two files, when nobody says. */
enum td_upload_mode td_upload_mode_of(const char *name1, const char *name2);

struct td_listing {
    struct td_desk *desk;
    char id[TD_ID_LENGTH + 1];
    const struct td_open_comparison *opened;
    enum td_upload_mode mode;
    size_t count;          /* matches */
    size_t place, passed;  /* where the last search ended, and how many matches lie before it */
    struct td_self *self;  /* of one input */
    struct td_subject own; /* of a pair of one input: made for this listing alone */
};

/* The comparison that `x` means. False: an answer was given, or the route is to be run again (td_may_wait).
 */
bool td_listing_open(struct td_listing *listing, struct td_exchange *x);
void td_listing_close(struct td_listing *listing);

/* The match at a position. Both are valid until the next call or the end of the listing. */
TD_CHECK tdbg_status td_listing_pair(struct td_listing *listing, size_t position, const struct td_pair **out,
                                     struct tdbg_error *error);
TD_CHECK tdbg_status td_listing_subject(struct td_listing *listing, size_t position,
                                        const struct td_subject **out, struct tdbg_error *error);

/* Takes a match out and puts it in at another position, and keeps that. */
TD_CHECK tdbg_status td_listing_move(struct td_listing *listing, size_t from, size_t to,
                                     struct tdbg_error *error);

/* --- requests ------------------------------------------------------------------------------------------- */

/* Fields of a JSON body. False: an answer was given, because it is missing where it may not be, or is
 * something else than it should be. */
bool td_body_is_object(struct td_exchange *x);
bool td_body_int(struct td_exchange *x, const char *key, int64_t low, int64_t high, const int64_t *otherwise,
                 int64_t *out);
const char *td_body_string(struct td_exchange *x, const char *key, const char *otherwise); /* NULL: false */

/* The match that "match_index" names. */
bool td_body_match(struct td_exchange *x, const struct td_listing *listing, size_t *position);

/* --- answers -------------------------------------------------------------------------------------------- */

/* What a match is called: its stage, or its name where it has no layer; cut to a length that people read. */
enum { TD_STAGE_TEXT = 256 };
void td_match_stage(char out[TD_STAGE_TEXT], const struct td_pair *pair);

/* One match as /upload lists it. */
TD_CHECK tdbg_status td_match_put(struct td_json *j, struct td_listing *listing, size_t position,
                                  struct tdbg_error *error);

/* All of them. */
TD_CHECK tdbg_status td_matches_put(struct td_json *j, struct td_listing *listing, struct tdbg_error *error);

/* Statistics: its page prints them as numbers, so what is not finite is 0. */
void td_put_finite(struct td_json *j, const char *key, double value);
void td_put_shape(struct td_json *j, const char *key, const struct td_shape *shape); /* NULL: null */

/* Sends what was written, or says why not. */
void td_answer_written(struct td_exchange *x, struct td_json *j, struct td_buffer *body, tdbg_status status,
                       const struct tdbg_error *error);

/* original_values.c, original_upload.c, original_order.c */
void td_original_values(struct td_exchange *x);
void td_original_shapes(struct td_exchange *x);
void td_original_mapped(struct td_exchange *x);
void td_original_upload(struct td_exchange *x);
void td_original_reorder(struct td_exchange *x);
void td_original_regroup(struct td_exchange *x);
void td_original_pair(struct td_exchange *x);

#endif
