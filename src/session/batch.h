/* batch.h: many comparisons from one JSON file.
 *
 *     {"version": 1,
 *      "defaults": {"policy": "strict"},
 *      "comparisons": [
 *        {"name": "attention", "a": "hf/attn", "b": "ours/attn"},
 *        {"name": "broken on purpose", "a": "hf", "b": "bad", "rtol": 0.01, "expect": "diverged"}]}
 *
 * A comparison takes match, threshold, pairs, names, coverage, policy, rtol, atol, reference and layout as
 * `tdbg diff` does; "defaults" holds those for all. policy, rtol and atol, and reference are three ways to
 * say the rule: a comparison that says one is free of the rule in the defaults. Paths are relative to the
 * file.
 */
#ifndef TD_SESSION_BATCH_H
#define TD_SESSION_BATCH_H

#include "session/diff_setup.h"

enum td_batch_outcome { TD_SAME, TD_DIFFERENT, TD_FAILED };

/* "same", "diverged", "error" */
const char *td_batch_outcome_name(enum td_batch_outcome outcome);

/* Where and why two runs part, without the runs. */
struct td_first {
    size_t index;
    int64_t layer;
    const char *stage, *name, *place; /* "layer 2, query" */
    struct td_diagnosis diagnosis;
};

struct td_batch_entry {
    const char *name, *a, *b;
    struct td_diff_setup setup;
    enum td_batch_outcome expected;

    /* What td_batch_run found. */
    enum td_batch_outcome outcome;
    struct tdbg_error error; /* TD_FAILED */
    struct td_summary summary;
    struct td_first *first; /* NULL unless TD_DIFFERENT */
};

struct td_batch {
    struct td_arena arena;
    struct td_batch_entry *list;
    size_t count;
};

TD_CHECK tdbg_status td_batch_read(struct td_batch *out, const char *path, struct tdbg_error *error);
void td_batch_release(struct td_batch *batch);

/* Runs all; one that fails stops none of the others. Fails only when cancelled or out of memory. */
TD_CHECK tdbg_status td_batch_run(struct td_batch *batch, struct td_pool *pool, struct td_job *job,
                                  struct tdbg_error *error);

static inline bool td_batch_as_expected(const struct td_batch_entry *c)
{
    return c->outcome == c->expected;
}

#endif
