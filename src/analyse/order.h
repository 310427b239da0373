/* order.h: numbers by their rank: sorting, quantiles, medians. */
#ifndef TD_ANALYSE_ORDER_H
#define TD_ANALYSE_ORDER_H

#include <stddef.h>

/* Ascending; without NaN. */
void td_order_sort(double *values, size_t count);

/* Of sorted values, at least one, between the two nearest as numpy's default does. */
double td_order_quantile(const double *sorted, size_t count, double share);

/* Sorts them. NaN of none. */
double td_order_median(double *values, size_t count);

#endif
