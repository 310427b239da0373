/* align.h: the layout each pair is compared in, chosen by the values.
 *
 * Every candidate layout of a pair is scored on a sample of elements by the correlation of the two sides:
 * blind to a wrong scale or bias, which are mistakes to report and no reason to doubt the layout, and near
 * zero for a wrong layout. Then the layers vote. Pairs that differ in nothing but the layer (the same stage,
 * the same shapes) were written by the same code, so one layout serves them all: the one with the most
 * evidence over all layers. A layer for which another layout fits far better is no reason to change it; it is
 * remembered as `other`, evidence of a mistake in that layer.
 *
 * An activation in another order of channels or heads in every layer may be how B stores it, or a mistake
 * that every layer shares: a fused q, k and v split in the wrong way agrees with itself everywhere. What is
 * computed from it tells, once that is measured (doubted.h); `instead` is for then.
 */
#ifndef TD_COMPARE_LAYOUT_ALIGN_H
#define TD_COMPARE_LAYOUT_ALIGN_H

#include "base/job.h"
#include "base/pool.h"
#include "compare/layout/candidates.h"

struct td_alignment {
    const struct td_layout *layout; /* shared by the layers; NULL: none fits the two shapes */
    const struct td_layout
        *instead;            /* if nothing that is computed from it agrees; NULL: the layers suffice */
    struct td_layout *other; /* a layout that fits this pair alone far better, or NULL */
};

struct td_alignments {
    struct td_arena arena;
    struct td_alignment *list; /* one for each match, also the one-sided */
};

TD_CHECK tdbg_status td_align(struct td_alignments *out, const struct td_matches *matches,
                              const struct td_head_sizes *heads, struct td_pool *pool, struct td_job *job,
                              struct tdbg_error *error);
void td_alignments_release(struct td_alignments *alignments);

#endif
