/* grid.h: the type that values were computed in, where a wider one stores them.
 *
 * x.float().numpy() is how bfloat16 gets into a .npy. The values tell: they all have the few bits of mantissa
 * of the narrow type. One tensor like that among others is a finding; nearly a whole side like that is how
 * it was dumped.
 */
#ifndef TD_COMPARE_JUDGE_GRID_H
#define TD_COMPARE_JUDGE_GRID_H

#include "compare/name/item.h"

/* The unit roundoff of the narrowest type that holds nearly every activation of the side; 0 where they are as
 * wide as they are stored, or where too few tell. */
double td_side_grid(const struct td_side *side);

#endif
