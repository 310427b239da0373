/* kinship.h: what speaks for two templates being one tensor, in points.
 *
 *     equal     values agree in a layer, the more the closer: as they stand, in another order of channels, or
 *               but for a factor of each channel. A mistake leaves the layers before it equal
 *     alike     where nothing agrees, how much the values of the first layer resemble each other
 *     words     the names say the same, something near it, or something else
 *     flow      a layer whose end agrees was right throughout: a pair that differs in it is none
 *
 * The points were chosen on dumps of real models (docs/matching.md says what each was worth).
 */
#ifndef TD_COMPARE_MATCH_KINSHIP_H
#define TD_COMPARE_MATCH_KINSHIP_H

#include "compare/match/scheme.h"

struct td_kinship {
    double score;    /* the sum of all; -inf: they cannot be a pair */
    double equal;    /* points of the best layer; 0: they agree in none */
    int64_t layer;   /* of A, in which they agree best; -1 where there are no layers */
    int64_t shift;   /* how many layers later B has it: what A puts out goes into B's next layer */
    double likeness; /* of the first layer, 0 to 1 */
    bool scaled;     /* they agree but for a factor of each channel, and not without */
    double words;
    bool same_name;
    bool same_role; /* plainly: no engine means anything else by either name */
};

/* What both sides' names have in common, and which layers are right. */
struct td_kin {
    struct td_schemes *schemes; /* two */
    const struct td_matching *m;
    const char **bare[2]; /* of every scheme: the template without folders and extensions */
    struct td_word_bag *bags[2];
    bool one_engine; /* both sides have the same names */
    int64_t clean;   /* layers of A below this are right on both sides, as something behind them agrees */
    const struct td_scheme *last[2]; /* the last of each dump, where both end in the same; else NULL */
};

TD_CHECK tdbg_status td_kin_init(struct td_kin *kin, struct td_schemes schemes[2], struct td_matching *m,
                                 struct tdbg_error *error);

struct td_kinship td_kinship_of(const struct td_kin *kin, const struct td_scheme *a,
                                const struct td_scheme *b);

/* The best likeness of two items, over their readings; false where one has no print. */
bool td_kin_compare(const struct td_kin *kin, size_t item_a, size_t item_b, struct td_likeness *out,
                    double *tolerance);

/* Points for values that agree, 0 where they do not. */
double td_equal_points(const struct td_likeness *l, double tolerance);

/* What a name of either side means: the same, near, unknown, or something else. */
enum td_meaning { TD_MEANS_SAME, TD_MEANS_PERHAPS, TD_MEANS_NEAR, TD_MEANS_NOTHING, TD_MEANS_OTHER };
enum td_meaning td_roles_meet(const struct td_scheme *a, const struct td_scheme *b);

#endif
