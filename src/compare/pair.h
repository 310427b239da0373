/* pair.h: two tensors that belong together, and what they came to. */
#ifndef TD_COMPARE_PAIR_H
#define TD_COMPARE_PAIR_H

#include "compare/diagnose/diagnose.h"
#include "compare/layout/remnant.h"

enum td_origin { TD_ORIGIN_NONE, TD_BORN, TD_INHERITED };

/* What a pair came to, as a plain message: numbers and text by value, and arrays with their lengths, which
 * the comparison owns. It points into neither input, so it could be sent to another process. */
struct td_outcome {
    struct td_ruling ruling;
    struct td_metrics metrics;
    uint64_t beyond;        /* elements beyond the ruling's tolerance */
    int worst_count;        /* of those: the worst, largest first */
    int64_t profile_count;  /* of a diagnosed pair: see below */
    struct td_worst *worst; /* worst_count */
    const double *profile; /* profile_count: squared error by index, axis behind axis (td_profile); or NULL */
    struct td_diagnosis *diagnosis; /* of a divergence that was looked into; NULL else */
    enum td_origin origin;          /* of a divergence */
    enum td_cut cut;                /* what the longer side has beyond the other */
    bool repaired;                  /* lined up by a step that only what follows justifies */
    int unlike_shards; /* of a side whose first shard alone was compared: those that are no copies of it */
};

struct td_pair {
    const struct td_item *a, *b;  /* one may be NULL */
    const struct td_match *match; /* how the two were paired */
    enum td_strategy strategy;
    int64_t layer; /* -1: none */
    const char *stage, *name;
    const struct td_layout *layout; /* NULL where nothing was lined up */
    struct td_outcome outcome;
};

/* Both have partners and were measured. */
static inline bool td_pair_measured(const struct td_pair *p)
{
    return p->outcome.ruling.verdict <= TD_DIVERGED;
}

#endif
