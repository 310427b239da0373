/* twins.h: tensors of one side that hold the same values under several names.
 *
 * Hooks dump what a module puts out and what the next takes in, and a module that ends in another puts out
 * what that did. Prints find them; before one is called a name of another, every value of both is compared.
 */
#ifndef TD_COMPARE_MATCH_TWINS_H
#define TD_COMPARE_MATCH_TWINS_H

#include "compare/match/scheme.h"

/* Items of one side that have prints, by what these hold. */
struct td_twins {
    const struct td_schemes *schemes;
    struct td_twin *list;
    size_t count;
};

struct td_twin {
    uint64_t hash;
    size_t item, scheme;
};

TD_CHECK tdbg_status td_twins_init(struct td_twins *out, const struct td_schemes *schemes,
                                   struct td_arena *arena, struct tdbg_error *error);

/* Whether each item of the scheme that was looked at has an equal one in a scheme with a partner. */
bool td_twins_cover(const struct td_twins *twins, size_t scheme);

/* Two templates of one side with the same values in a layer that was looked at. */
bool td_twins_are(const struct td_schemes *schemes, size_t x, size_t y);

/* Attaches all that is unpaired and equals something paired to that pair. Called when all pairs are made. */
TD_CHECK tdbg_status td_twins_attach(struct td_matching *m, const struct td_schemes schemes[2],
                                     const struct td_twins twins[2], struct tdbg_error *error);

#endif
