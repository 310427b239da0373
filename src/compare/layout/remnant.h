/* remnant.h: what the longer side of a pair has beyond the other, which was cut off to line the two up.
 *
 * It is harmless when it is padding, or when the other side holds the part of one tensor-parallel rank. Else
 * tokens, heads or channels are missing. What follows from that is the judge's to say.
 */
#ifndef TD_COMPARE_LAYOUT_REMNANT_H
#define TD_COMPARE_LAYOUT_REMNANT_H

#include "base/work.h"
#include "compare/layout/layout.h"

enum td_cut { TD_CUT_NOTHING, TD_CUT_PADDING, TD_CUT_RANK, TD_CUT_MISSING };

struct td_remnant {
    enum td_cut cut;
    int axis; /* along which */
    int64_t kept, whole;
};

/* Of side A or B of a match in a layout. `tokens` is the length of A's sequence. Only what was cut off is
 * read. */
TD_CHECK tdbg_status td_remnant_find(struct td_remnant *out, const struct td_match *match,
                                     const struct td_layout *layout, bool in_b, int64_t tokens,
                                     const struct td_work *work, struct tdbg_error *error);

#endif
