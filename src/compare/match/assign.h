/* assign.h: who goes with whom, so that the sum of the points is the largest there is. */
#ifndef TD_COMPARE_MATCH_ASSIGN_H
#define TD_COMPARE_MATCH_ASSIGN_H

#include <stdbool.h>
#include <stddef.h>

#define TD_ASSIGNED_TO_NOBODY SIZE_MAX

/* score[row * columns + column]; a pair below `least` is none. partner[row] is a column or
 * TD_ASSIGNED_TO_NOBODY. False: no memory. */
bool td_assign(const double *score, size_t rows, size_t columns, double least, size_t *partner);

#endif
