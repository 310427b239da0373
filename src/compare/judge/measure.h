/* measure.h: all that the values of a pair tell, in one layout: what a ruling is made from.
 *
 * Whatever a rule needs to know of the elements is read here, at once. So a ruling (judge.h) is a function of
 * numbers, and a layout can be tried by measuring in it and asking what the ruling would be.
 */
#ifndef TD_COMPARE_JUDGE_MEASURE_H
#define TD_COMPARE_JUDGE_MEASURE_H

#include "base/work.h"
#include "compare/judge/reference.h"
#include "compare/judge/verdict.h"
#include "compare/layout/layout.h"

/* By what all pairs of a comparison are measured and judged. */
struct td_rules {
    struct td_policy policy;
    int64_t layers;                         /* depth of the model, for the noise floor */
    double grid[2];                         /* td_side_grid of A and B */
    int top;                                /* worst elements to keep */
    const struct td_references *references; /* NULL: none */
};

struct td_measurement {
    const char *failure; /* why the values could not be had; then all else is zero. NULL: they were */
    struct td_metrics metrics;
    struct td_circumstances circumstances;
    bool counted;    /* the ruling hangs on single elements, so they were looked at: */
    uint64_t beyond; /* those beyond the tolerance of the rule */
    int worst_count;
    struct td_worst *worst;
};

/* The worst elements are kept in the arena of `work`, which must have one. */
TD_CHECK tdbg_status td_measurement_take(struct td_measurement *out, const struct td_rules *rules,
                                         const struct td_item *a, const struct td_item *b,
                                         const struct td_layout *layout, const struct td_work *work,
                                         struct tdbg_error *error);

/* The measurement that could not be made. */
struct td_measurement td_measurement_failed(const char *why, struct td_arena *arena);

#endif
