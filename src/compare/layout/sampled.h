/* sampled.h: how well the values of two items fit in a layout, from a sample of elements. */
#ifndef TD_COMPARE_LAYOUT_SAMPLED_H
#define TD_COMPARE_LAYOUT_SAMPLED_H

#include "compare/layout/layout.h"

enum { TD_FIT_SAMPLES = 512 };

/* A fit that is no coincidence. */
extern const double TD_CONVINCING;

/* The correlation. NaN where the layout cannot be made or tells nothing. */
double td_layout_fit(const struct td_item *a, const struct td_item *b, const struct td_layout *layout);

/* The same from a few elements, for a first look. */
double td_layout_first_look(const struct td_item *a, const struct td_item *b, const struct td_layout *layout);

/* As td_layout_fit. NaN too where a layout takes one rank for all, or their sum, without a reason. */
double td_match_fit(const struct td_match *match, const struct td_layout *layout);

/* Both sides can be laid out so. */
bool td_layout_feasible(const struct td_match *match, const struct td_layout *layout);

#endif
