/* fitting.h: the layout each pair ends up in, and its measurement there.
 *
 * Alignment (align.h) chose a layout by a sample of the values. Some layouts are justified only by what the
 * whole comparison shows, so here all pairs are measured and their layouts settled, in this order:
 *
 *     1 measure   every pair in the layout of its alignment, or in the one that the user gave
 *     2 doubted   pairs in a layout that all layers want, but nothing that is computed from them bears out
 *                 (doubted.h)
 *     3 stored    pairs that differ, but are stored in another order: what is computed from them agrees, or
 *                 every layer needs it (stored.h); so what differs below is not just written differently
 *     4 copies    pairs that agree by the first of several shards: the others are held against it (copies.h)
 *     5 remnants  pairs of which one side was cut: what lies beyond the cut (remnant.h)
 *
 * Later steps look at what the earlier left. Afterwards nothing of it changes. A layout is tried by measuring
 * in it and asking the rule (td_judge_values) what it says of the values.
 */
#ifndef TD_COMPARE_LAYOUT_FITTING_H
#define TD_COMPARE_LAYOUT_FITTING_H

#include "base/work.h"
#include "compare/judge/measure.h"
#include "compare/layout/align.h"
#include "compare/layout/remnant.h"
#include "compare/model.h"

struct td_fitting {
    const struct td_layout *layout;  /* NULL: there is nothing to line up, or no layout fits */
    const struct td_layout *instead; /* if nothing bears `layout` out (align.h); NULL: that is settled */
    const struct td_layout *other;   /* fits this pair alone far better (align.h), or NULL */
    bool repaired;                   /* lined up by a step that only what follows justifies */
    int unlike_shards; /* of a side whose first shard alone was compared: those that are no copies of it */
    struct td_remnant remnant[2]; /* what A and B have beyond the other */
    struct td_measurement measurement;
    enum td_verdict by_values; /* td_judge_values of it */
};

/* What the fitting works with. */
struct td_fit {
    const struct td_matches *matches;
    struct td_fitting *list; /* one for each match, as are the arenas of measurements */
    struct td_arena *arenas;
    const struct td_rules *rules;
    const struct td_model *model;
    const struct td_work *work; /* its arena keeps the result */
    size_t *questions; /* that may still be asked of pairs of pairs: names may leave all of them open */
};

/* One fitting for each match; `out` has room for them. Layouts and worst elements are kept in the arena of
 * `work`. `by_hand`: the text of a layout for B, which goes before the alignments wherever B has as many
 * axes; NULL: none. */
TD_CHECK tdbg_status td_fit_all(struct td_fitting *out, const struct td_matches *matches,
                                const struct td_alignments *alignments, const char *by_hand,
                                const struct td_rules *rules, const struct td_model *model,
                                const struct td_work *work, struct tdbg_error *error);

/* A fitting in its layout: measured, and judged by its values. Never fails: a measurement tells why it could
 * not be made. */
void td_fitting_measure(struct td_fitting *fitting, const struct td_match *match,
                        const struct td_rules *rules, const struct td_work *work);

/* Both have partners and were measured. */
static inline bool td_fitting_measured(const struct td_fitting *fitting)
{
    return fitting->by_values <= TD_DIVERGED;
}

#endif
