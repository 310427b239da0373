/* notes.h: the page's own notes on a comparison, as JSON: changed in part, and kept true when its pairs
 * change.
 *
 *     {"order": [3, 0, 1, 2], "mappings": {"3": {"a": "5,0:16", "b": "0,5,0:16"}}, …}
 *
 * Both speak of pairs by their numbers in the result. Another result has other numbers: a mapping goes with
 * its pair, which its two names tell; an order of pairs of which some are others now is none.
 */
#ifndef TD_SERVE_NOTES_H
#define TD_SERVE_NOTES_H

#include "base/buffer.h"
#include "base/status.h"

#include <jansson.h>

/* Whether they hold anything that speaks of pairs. */
bool td_notes_speak_of_pairs(const char *notes);

/* The notes on result `before` as notes on result `after`, appended to `out`. */
TD_CHECK tdbg_status td_notes_carry(const char *notes, const char *before, const char *after,
                                    struct td_buffer *out, struct tdbg_error *error);

/* The notes with the members of `patch` put into them, appended to `out`: an object is put in member by
 * member, null takes away, all else replaces (RFC 7396). */
TD_CHECK tdbg_status td_notes_merge(const char *notes, const json_t *patch, struct td_buffer *out,
                                    struct tdbg_error *error);

#endif
