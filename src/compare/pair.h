/* pair.h: two tensors that belong together, and all that was found out about them. */
#ifndef TD_COMPARE_PAIR_H
#define TD_COMPARE_PAIR_H

#include "compare/diagnose/diagnose.h"

enum td_origin { TD_ORIGIN_NONE, TD_BORN, TD_INHERITED };

/* What the longer side of a pair has beyond the other; MISSING where the pair diverged for that alone. */
enum td_cut { TD_CUT_NOTHING, TD_CUT_PADDING, TD_CUT_RANK, TD_CUT_MISSING };

struct td_pair {
    const struct td_item *a, *b;  /* one may be NULL */
    const struct td_match *match; /* how the two were paired */
    enum td_strategy strategy;
    int64_t layer; /* -1: none */
    const char *stage, *name;
    const struct td_layout *layout; /* NULL where nothing was lined up */
    bool repaired;                  /* lined up by a step that only what follows justifies */
    int unlike_shards; /* of a side whose first shard alone was compared: those that are no copies of it */
    enum td_cut cut;
    struct td_metrics metrics;
    struct td_ruling ruling;
    uint64_t beyond;
    int worst_count;
    struct td_worst *worst;
    const double *profile; /* of a diagnosed pair: squared error by index, axis behind axis (td_profile) */
    enum td_origin origin; /* of a divergence */
    struct td_diagnosis *diagnosis; /* of a divergence that was born; NULL else */
};

/* Both have partners and were measured. */
static inline bool td_pair_measured(const struct td_pair *p)
{
    return p->ruling.verdict <= TD_DIVERGED;
}

#endif
