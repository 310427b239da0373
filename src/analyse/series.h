/* series.h: what the rules remember of one tensor or scalar over the steps of a run, and what a rule gets to
 * see. Names tell what a tensor is for: "layers.0.fc.weight" is a parameter, "layers.0.fc.weight.grad" its
 * gradient, anything else of a floating type an activation.
 */
#ifndef TD_ANALYSE_SERIES_H
#define TD_ANALYSE_SERIES_H

#include "analyse/rules.h"

enum td_role {
    TD_ROLE_GRADIENT = 1,
    TD_ROLE_PARAMETER = 2,
    TD_ROLE_ACTIVATION = 4,
    TD_ROLE_NUMBERS = 8, /* integers, masks: values that are no measure of anything */
    TD_ROLE_LOSS = 16,
    TD_ROLE_SCALAR = 32,

    TD_ROLE_VALUES = TD_ROLE_GRADIENT | TD_ROLE_PARAMETER | TD_ROLE_ACTIVATION,
    TD_ROLE_SCALARS = TD_ROLE_LOSS | TD_ROLE_SCALAR
};

struct td_series {
    const char *name;
    enum td_role role;
    bool has_gradient;      /* a gradient of this parameter was seen */
    uint64_t seen;          /* rows before the present one */
    struct tdbg_stats last; /* of the row before */
    uint64_t unchanged;     /* rows in a row whose statistics are those of the row before */
    double log_sum;         /* of the logarithms of earlier root mean squares */
    uint64_t log_count;
    double *window; /* the last TD_RULE_WINDOW values of a loss, as a ring; else NULL */
    struct {
        uint32_t streak;
        struct td_finding *finding; /* NULL: none yet */
    } rules[TD_RULES];
};

struct td_moment {
    const struct td_series *series;
    const struct td_run_tensor *tensor; /* one of the two */
    const struct td_run_scalar *scalar;
    bool gradients, losses; /* the run has recorded some */
    int64_t steps;          /* setting of the rule */
};

enum td_role td_role_of_tensor(const char *name, const char *dtype);

/* Root mean square of the finite values. */
double td_root_mean_square(const struct tdbg_stats *s);

#endif
