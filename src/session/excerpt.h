/* excerpt.h: a slice of a subject to be read from one end to the other: of one side, or the difference.
 *
 * Elements keep the type they are stored in where a side is one tensor; sums, shards and differences are
 * doubles.
 */
#ifndef TD_SESSION_EXCERPT_H
#define TD_SESSION_EXCERPT_H

#include "kernel/pick.h"
#include "session/elements.h"
#include "session/gallery.h"

/* Points into itself: must not be moved. Holds nothing of its own. */
struct td_excerpt {
    const struct td_subject *subject;
    enum td_shown shown;
    bool flat; /* the slice is one of the flattened tensor, without a step */
    struct td_slice slice;
    enum td_dtype dtype;
    bool alone, dense;   /* one side that is one tensor; … */
    struct td_view view; /* … dense: the slice of it; … */
    struct td_pick pick; /* … else how it is picked. Neither when flat. */
};

/* `flat` is a range of the flattened tensor, or NULL: then `slice` says what. MISUSE when that does not fit,
 * or there is no such side. */
TD_CHECK tdbg_status td_excerpt_init(struct td_excerpt *out, const struct td_subject *subject,
                                     enum td_shown shown, const char *slice, const char *flat,
                                     struct tdbg_error *error);

struct td_elements td_excerpt_elements(const struct td_excerpt *excerpt);

#endif
