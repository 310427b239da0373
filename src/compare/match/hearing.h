/* hearing.h: what evidence.c pairs with: the templates of both sides, and who goes with whom so far.
 *
 * hearing.c makes the assignments, joining.c the pairs of items from them.
 */
#ifndef TD_COMPARE_MATCH_HEARING_H
#define TD_COMPARE_MATCH_HEARING_H

#include "compare/match/kinship.h"
#include "compare/match/twins.h"

struct td_hearing {
    struct td_matching *m;
    struct td_schemes *schemes; /* two */
    struct td_kin kin;
    struct td_twins twins[2];
};

/* What may be a pair: what agrees or is called alike; what is alike; what is left when all else is paired. */
enum td_phase { TD_SURE, TD_ALIKE, TD_LEFT };

/* Gives templates of one width their partners, so that the points of all are the most. */
TD_CHECK tdbg_status td_hearing_assign(struct td_hearing *h, enum td_phase phase, struct tdbg_error *error);

/* No partner so far, and no other name of something that has one. */
bool td_is_heard(const struct td_scheme *scheme);

/* Of the first print; 0: the scheme has none. */
int64_t td_scheme_width(const struct td_schemes *s, const struct td_scheme *scheme);

/* The least points of a pair. */
extern const double TD_LEAST_POINTS;

/* joining.c: pairs of items from the partners that templates have; then what single items show. */
TD_CHECK tdbg_status td_hearing_join(struct td_hearing *h, struct tdbg_error *error);

#endif
