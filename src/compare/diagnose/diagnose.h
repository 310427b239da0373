/* diagnose.h: what kind of mistake a divergence looks like.
 *
 * Each kind is a hypothesis about how B came from A: b = h(a). It is tried on the values by least squares or
 * by matching, and what it leaves unexplained is measured: `explained` is the share of the squared error
 * that vanishes when the hypothesis is applied, freed of what its parameters would explain by chance. A
 * hypothesis whose remainder lies within the noise floor is complete. The complete come first, the simpler
 * before the richer; then the rest by what they explain. What no hypothesis explains is "unknown".
 */
#ifndef TD_COMPARE_DIAGNOSE_DIAGNOSE_H
#define TD_COMPARE_DIAGNOSE_DIAGNOSE_H

#include "base/job.h"
#include "base/pool.h"
#include "compare/layout/layout.h"
#include "compare/judge/verdict.h"

/* The simpler before the richer: the order in which complete explanations are believed. */
enum td_kind_of_mistake {
    TD_IS_NAN,
    TD_IS_INF,
    TD_IS_SIGN,
    TD_IS_SCALE,
    TD_IS_STALE,
    TD_IS_SWAP,
    TD_IS_SHIFT,
    TD_IS_TRANSPOSE,
    TD_IS_ROPE,
    TD_IS_PERMUTATION,
    TD_IS_MASK,
    TD_IS_ZEROED,
    TD_IS_CLAMP,
    TD_IS_PRECISION,
    TD_IS_BIAS,
    TD_IS_CHANNEL_SCALE,
    TD_IS_PARTIAL,
    TD_IS_UNKNOWN,
    TD_KINDS_OF_MISTAKE
};

const char *td_mistake_name(enum td_kind_of_mistake kind);

struct td_finding {
    enum td_kind_of_mistake kind;
    double explained;  /* share of the squared error, 0 to 1 */
    bool complete;     /* the remainder is within the noise floor */
    double parameters; /* numbers that were fitted */
    double confidence;
    char detail[256];
};

enum { TD_MAX_FINDINGS = 8 };

struct td_diagnosis {
    int count;
    struct td_finding list[TD_MAX_FINDINGS]; /* likeliest first */
};

/* The pair, and the rest of the run it can be compared with. */
struct td_case {
    const struct td_item *item_a, *item_b;
    const struct td_layout *layout;
    const struct td_layout *other; /* a layout that fits this layer alone, or NULL */
    const struct td_metrics *metrics;
    const double *profile; /* td_profile's, or NULL */
    double floor;
    const char *missing;     /* what one side lacks, where that is all that differs, or NULL */
    const struct td_side *a; /* all of A, for swap, stale, rope and attention */
    const struct td_head_sizes *heads;
    int64_t tokens; /* length of the sequence axis, 0 when unknown */
    struct td_job *job;
};

/* The families of hypotheses are heard side by side on the pool. */
TD_CHECK tdbg_status td_diagnose(const struct td_case *c, struct td_pool *pool, struct td_diagnosis *out,
                                 struct tdbg_error *error);

#endif
