/* model.h: what the names and shapes of all tensors tell of the model behind them, as far as comparing needs
 * it: no tensor tells it by itself.
 */
#ifndef TD_COMPARE_MODEL_H
#define TD_COMPARE_MODEL_H

#include "compare/layout/candidates.h"

struct td_model {
    struct td_head_sizes heads; /* of attention, on either side */
    int64_t tokens;             /* length of A's sequence; 0: unknown */
    int64_t layers;             /* depth: the most that either side has */
    double grid[2];             /* the type A and B were computed in (grid.h) */
};

TD_CHECK tdbg_status td_model_of_sides(struct td_model *out, const struct td_side *a, const struct td_side *b,
                                       struct tdbg_error *error);

#endif
