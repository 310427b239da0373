/* order.c: see order.h. */
#include "analyse/order.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void td_order_sort(double *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof *values, ascending);
}

double td_order_quantile(const double *sorted, size_t count, double share)
{
    double place = share * (double)(count - 1);
    size_t low = (size_t)place;
    double rest = place - (double)low;
    return low + 1 < count ? sorted[low] + rest * (sorted[low + 1] - sorted[low]) : sorted[low];
}

double td_order_median(double *values, size_t count)
{
    td_order_sort(values, count);
    return count ? td_order_quantile(values, count, 0.5) : (double)NAN;
}
