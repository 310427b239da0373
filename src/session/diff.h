/* diff.h: two inputs compared: paired, lined up, measured, judged, the first divergence diagnosed.
 *
 * td_diff_open does all of it; what it leaves behind is the result that every report reads. Nothing in it
 * changes afterwards.
 */
#ifndef TD_SESSION_DIFF_H
#define TD_SESSION_DIFF_H

#include "base/pool.h"
#include "compare/layout/align.h"
#include "compare/pair.h"
#include "session/side.h"

struct td_diff_options {
    struct td_match_options match;
    struct td_policy policy;
    const char *reference; /* a third input, more precise; NULL: none */
    const char *layout;    /* "b h t d -> t h d" for B, instead of looking for one; NULL: look */
    double coverage;       /* share of the shorter side that needs a partner (judge/coverage.h) */
    int top;               /* worst elements to keep of each diverged pair */
};

struct td_summary {
    size_t pairs, identical, within, diverged, errors, only_a, only_b;
    double coverage_a, coverage_b; /* share of each side that has a partner */
    bool enough;                   /* is paired to say whether they agree */
};

struct td_diff {
    struct td_arena arena;
    struct td_choice choice_a, choice_b;
    struct td_input *a, *b; /* of the choices */
    struct td_side side_a, side_b;
    struct td_matches matches;
    struct td_alignments alignments; /* one for each match */
    struct td_policy policy;
    const char *reference;
    struct td_pair *pairs; /* in the order of execution */
    size_t count;
    struct td_summary summary;
    struct td_pair *first; /* divergence; NULL: none */
    const char **notes;    /* what the dump doctor has to say */
    size_t note_count;
};

void td_summary_add(struct td_summary *summary, const struct td_pair *pair);

TD_CHECK tdbg_status td_diff_open(struct td_diff **out, const char *path_a, const char *path_b,
                                  const struct td_diff_options *options, struct td_pool *pool,
                                  struct td_job *job, struct tdbg_error *error);
void td_diff_close(struct td_diff **diff);

#endif
