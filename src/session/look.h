/* look.h: what can be asked of a subject beyond its values: where, how many, how they lie.
 *
 * A pool that is NULL means one thread; the answer is the same.
 */
#ifndef TD_SESSION_LOOK_H
#define TD_SESSION_LOOK_H

#include "kernel/compare.h"
#include "session/subject.h"

/* Statistics of one side: those of the comparison where it has measured them. */
TD_CHECK tdbg_status td_look_stats(const struct td_subject *subject, int side, struct td_pool *pool,
                                   struct tdbg_stats *out, struct tdbg_error *error);

/* The elements that differ most; from `arena`. MISUSE when there is one side only. */
TD_CHECK tdbg_status td_look_worst(const struct td_subject *subject, int count, struct td_pool *pool,
                                   struct td_arena *arena, struct td_examination *out,
                                   struct tdbg_error *error);

enum td_sought { TD_SOUGHT_RANGE, TD_SOUGHT_NAN, TD_SOUGHT_INF, TD_SOUGHT_ZERO };

struct td_search {
    int side;
    enum td_sought what;
    double low, high; /* TD_SOUGHT_RANGE: both included */
    int64_t from;     /* row-major */
    int limit;        /* places to find before it is enough */
};

struct td_place {
    int64_t index; /* row-major */
    double value;
};

struct td_places {
    int count;
    struct td_place *list; /* from the arena */
    int64_t next;          /* where to go on; -1: that was all */
};

/* Stops after a few million elements too, found or not, so that nobody waits long: `next` goes on. */
TD_CHECK tdbg_status td_look_find(const struct td_subject *subject, const struct td_search *search,
                                  struct td_arena *arena, struct td_places *out, struct tdbg_error *error);

/* Of each side it has, over one range: that of all finite values, [0, 1] when there is none. `edges` has
 * room for bins + 1, each of `counts` for bins. */
TD_CHECK tdbg_status td_look_histogram(const struct td_subject *subject, int bins, struct td_pool *pool,
                                       double *edges, uint64_t *const counts[2], struct tdbg_error *error);

/* How often the value of a meets that of b; td_density over the same range, which is told. */
TD_CHECK tdbg_status td_look_density(const struct td_subject *subject, int size, struct td_pool *pool,
                                     double *low, double *high, uint64_t *counts, struct tdbg_error *error);

/* By index of each axis the root of the mean square of the differences, or of the values where there is one
 * side; what is not finite counts as zero. From `arena`; NULL for an axis that is too long. */
TD_CHECK tdbg_status td_look_profile(const struct td_subject *subject, struct td_pool *pool,
                                     struct td_arena *arena, const double *axes[TD_MAX_DIMS],
                                     struct tdbg_error *error);

/* Of values somebody has read already. */
TD_CHECK tdbg_status td_look_at_values(const double *values, int64_t count, struct tdbg_stats *out,
                                       struct tdbg_error *error);

#endif
