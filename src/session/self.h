/* self.h: one input against itself: every pair of its tensors, found and measured as they are asked for.
 *
 *     struct td_self *self;
 *     td_self_open(&self, "model.safetensors", &policy, &work, &error);
 *     for (const struct td_self_pair *p; td_self_next(self, &p, &error) == TDBG_OK && p;)
 *         ...
 *     td_self_close(&self);
 *
 * Pairs come as (i, j), i < j, in the order of execution. Those whose shapes do not line up (other
 * numbers of elements) are counted and passed over. N tensors have N (N - 1) / 2 pairs; memory does not grow
 * with them. A pair is also found by its number, without walking to it.
 */
#ifndef TD_SESSION_SELF_H
#define TD_SESSION_SELF_H

#include "compare/pair.h"
#include "session/input.h"

struct td_self;

struct td_self_pair {
    uint64_t index; /* its number among all pairs, those passed over too */
    struct td_pair pair;
};

/* Pool and job of `work` are used as long as it is open. */
TD_CHECK tdbg_status td_self_open(struct td_self **out, const char *path, const struct td_policy *policy,
                                  const struct td_work *work, struct tdbg_error *error);
void td_self_close(struct td_self **self);

/* The same over an input that is open already, and is borrowed. */
TD_CHECK tdbg_status td_self_over(struct td_self **out, const struct td_input *input,
                                  const struct td_policy *policy, const struct td_work *work,
                                  struct tdbg_error *error);

/* NULL at the end; valid until the next call. */
TD_CHECK tdbg_status td_self_next(struct td_self *self, const struct td_self_pair **out,
                                  struct tdbg_error *error);

/* The pair of that number, one that does not line up as well: its verdict says so. Ends a walk with
 * td_self_next; valid until the next call. NOTFOUND when there are not so many. */
TD_CHECK tdbg_status td_self_at(struct td_self *self, uint64_t index, const struct td_self_pair **out,
                                struct tdbg_error *error);

/* The number of the pair of two items, i < j. */
uint64_t td_self_number(const struct td_self *self, size_t i, size_t j);

const struct td_input *td_self_input(const struct td_self *self);
const struct td_side *td_self_side(const struct td_self *self);
const struct td_policy *td_self_policy(const struct td_self *self);
uint64_t td_self_total(const struct td_self *self);  /* N choose 2 */
uint64_t td_self_unlike(const struct td_self *self); /* passed over up to the last pair that was handed out */

#endif
