/* modules.h: what went into the module that an item came out of, where the dump holds that too. */
#ifndef TD_COMPARE_JUDGE_MODULES_H
#define TD_COMPARE_JUDGE_MODULES_H

#include "compare/pair.h"

struct td_modules;

/* Of the pairs that were measured. NULL: no memory. */
struct td_modules *td_modules_open(const struct td_pair *pairs, size_t count);
void td_modules_close(struct td_modules **modules);

struct td_intake {
    bool known;        /* the module's inputs were measured, and nothing within it was dumped */
    double inputs;     /* the largest error among those that diverged, by `size`; 0: none did */
    double parameters; /* likewise of its own weights */
};

/* `size` tells how large the error of a pair is. Nothing is known of an item that is itself an input. */
struct td_intake td_modules_intake(const struct td_modules *modules, const struct td_pair *pair,
                                   double (*size)(const struct td_metrics *));

#endif
