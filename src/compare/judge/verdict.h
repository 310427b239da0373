/* verdict.h: is a difference rounding, or a divergence? And by which rule.
 *
 * The noise floor. Two right implementations of one model differ by rounding. A result that went through k
 * roundings of unit u carries a relative error (L2) of about 0.41 u sqrt(k): one rounding is off by 0.41 u in
 * the mean square, and independent ones add in squares. The floor is three times that. u is that of the
 * coarser type of the two sides, joined with float32's own accumulation error over the longest axis; k grows
 * by one from stage to stage and by four from layer to layer, which is what the residual stream itself goes
 * through. A tensor diverges when its relative L2 error passes the floor, or when a single element is off by
 * more than OUTLIER floors of its own size plus the tensor's typical size. docs/verdict.md explains it at
 * length and shows how the constants were measured.
 */
#ifndef TD_COMPARE_JUDGE_VERDICT_H
#define TD_COMPARE_JUDGE_VERDICT_H

#include "compare/match/match.h"
#include "compare/judge/fill.h"
#include "kernel/compare.h"

enum td_verdict { TD_IDENTICAL, TD_WITHIN, TD_DIVERGED, TD_ERROR, TD_ONLY_A, TD_ONLY_B };

const char *td_verdict_name(enum td_verdict verdict);

enum td_policy_kind {
    TD_POLICY_NOISE,     /* the default */
    TD_POLICY_STRICT,    /* rtol and atol by type, as for weights */
    TD_POLICY_TOLERANCE, /* rtol and atol given */
    TD_POLICY_REFERENCE  /* a third, more precise run decides */
};

const char *td_policy_name(enum td_policy_kind kind);

struct td_policy {
    enum td_policy_kind kind;
    struct td_tolerance tolerance; /* TD_POLICY_TOLERANCE */
};

/* What a verdict is based on besides the metrics. */
struct td_circumstances {
    enum td_dtype a, b; /* as stored */
    double grid[2];     /* unit roundoff of the narrower type a side was computed in (grid.h); 0: none */
    bool scalar;        /* a constant: exact but for the coarser type's rounding */
    int roundings;      /* k above */
    int64_t longest_axis, count;
    struct td_fill fill;
    bool has_reference; /* TD_POLICY_REFERENCE: relative L2 errors against it */
    double error_a, error_b;
};

struct td_ruling {
    enum td_verdict verdict;
    double floor;                  /* relative L2 error that is allowed; 0 where the rule has none */
    double noise;                  /* the noise floor, whatever the rule: what a diagnosis may leave over */
    struct td_tolerance tolerance; /* what an element may be off by; what `beyond` counts */
    char reason[192];
};

/* The unit roundoff of a type: half the distance from 1 to the next value; 0 for exact types. */
double td_unit_roundoff(enum td_dtype dtype);

/* How many roundings a tensor went through: k of its place in the model; `layers` is the depth known. */
int td_roundings(const struct td_item *item, int64_t layers);

/* Looks at the metrics only. When `*needs_count` comes back true the verdict hangs on the elements beyond
 * `out->tolerance`: count them (td_examine) and call td_ruling_count. */
void td_rule(const struct td_policy *policy, const struct td_circumstances *c, const struct td_metrics *m,
             struct td_ruling *out, bool *needs_count);
void td_ruling_count(struct td_ruling *ruling, uint64_t beyond, uint64_t count);

#endif
