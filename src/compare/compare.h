/* compare.h: two sides in, verdicts out. No files, no SQL: who calls has opened what is compared.
 *
 * A comparison is a row of stages. Each has a result of its own, which later stages read and none changes:
 *
 *     name      td_side, td_model   what each tensor is to its model (layer, stage, order), and how large the
 *                                   model is. The sides come named (name/item.h).
 *     pair      td_matches          which tensors belong together (match/match.h), in one order of execution.
 * Layouts and verdicts are of pairs, so this comes first. line up   td_alignments,      a layout for each
 * pair, by a sample of its values and the vote of the td_references       layers (layout/align.h). In a wrong
 * layout the values tell nothing, so this comes before they are measured. The reference is paired and lined
 *                                   up with both sides here (judge/reference.h): the rule measures by it.
 *     measure   td_fitting          the metrics of each pair in that layout. Where the measurements of other
 *                                   pairs justify another layout, the pair is measured in that one instead
 *                                   (layout/fitting.h): a verdict is about the layout that is reported.
 *     judge     td_judgement        the ruling, from the measurement and what else is known of the pair
 *                                   (judge/judge.h). It is made once, when all pairs are measured, because
 *                                   what agrees elsewhere may be a reason.
 *     origins   td_outcome.origin   born or inherited: a divergence is inherited from other divergences, so
 *                                   all rulings come before (judge/origins.h).
 *     diagnose  td_outcome.profile, what the mistake is, of divergences that were born (explain.h); then what
 *               .diagnosis; notes   is wrong with the dumps, by diagnoses too (diagnose/doctor.h).
 *
 * After the judge, measurement and ruling of a pair are put together in its td_outcome (pair.h), in which the
 * later stages fill in the members that are theirs.
 */
#ifndef TD_COMPARE_COMPARE_H
#define TD_COMPARE_COMPARE_H

#include "base/work.h"
#include "compare/judge/measure.h"
#include "compare/layout/align.h"
#include "compare/model.h"
#include "compare/pair.h"

struct td_compare_options {
    struct td_match_options match;
    struct td_policy policy;
    const char *layout; /* "b h t d -> t h d" for B, instead of looking for one; NULL: look */
    double coverage;    /* share of the shorter side that needs a partner (judge/coverage.h) */
    int top;            /* worst elements to keep of each diverged pair */
};

struct td_summary {
    size_t pairs, identical, within, diverged, errors, only_a, only_b;
    double coverage_a, coverage_b; /* share of each side that has a partner */
    bool enough;                   /* is paired to say whether they agree */
};

/* Borrows the items of both sides, and nothing else. */
struct td_comparison {
    struct td_arena arena;
    struct td_model model;
    struct td_matches matches;
    struct td_alignments alignments;
    struct td_pair *pairs; /* in the order of execution */
    size_t count;
    struct td_pair *first; /* divergence; NULL: none */
    const char **notes;    /* what the dump doctor has to say */
    size_t note_count;
    struct td_summary summary;
};

/* Where B alone tells the order of execution, A's items get it: one order for both (judge/settle.h).
 * `reference` decides under TD_POLICY_REFERENCE; NULL: there is none. `work` without an arena: what is found
 * lives in that of the comparison. */
TD_CHECK tdbg_status td_compare(struct td_comparison *out, struct td_side *a, const struct td_side *b,
                                const struct td_side *reference, const struct td_compare_options *options,
                                const struct td_work *work, struct tdbg_error *error);
void td_comparison_release(struct td_comparison *comparison);

/* One pair by itself, in the layout that it has; NULL: the shapes do not line up. Measured and judged by its
 * values, which fills in the outcome: there is always a ruling. The arena of `work` keeps the worst
 * elements. */
void td_compare_pair(struct td_pair *pair, const struct td_rules *rules, const struct td_work *work);

/* The ruling of a pair that turned out not to be comparable, and why. */
void td_pair_give_up(struct td_pair *pair, const char *why);

void td_summary_add(struct td_summary *summary, const struct td_pair *pair);

#endif
