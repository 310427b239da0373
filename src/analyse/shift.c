/* shift.c: see shift.h. All pairs of at most 256 values a side are 64 Ki differences; longer series are
 * thinned evenly in rank, which moves no median. */
#include "analyse/shift.h"

#include "analyse/order.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 256 };

/* Values that stand for a sorted series: its middle ranks. */
static size_t thin(double *out, const double *sorted, size_t count)
{
    size_t kept = count < MOST ? count : MOST;
    for (size_t i = 0; i < kept; i++)
        out[i] = sorted[(2 * i + 1) * count / (2 * kept)];
    return kept;
}

/* The sum of the ranks of `a` among both, and the sum of t^3 - t over groups of t equal values. */
static double rank_sum(const double *a, size_t m, const double *b, size_t n, double *ties)
{
    double sum = 0;
    *ties = 0;
    for (size_t i = 0, j = 0; i < m || j < n;) {
        double value = j == n || (i < m && a[i] <= b[j]) ? a[i] : b[j];
        size_t from = i + j, own = i;
        while (i < m && a[i] == value)
            i++;
        while (j < n && b[j] == value)
            j++;
        double equal = (double)(i + j - from);
        sum += (double)(i - own) * ((double)from + (equal + 1) / 2);
        *ties += equal * equal * equal - equal;
    }
    return sum;
}

static double chance(const double *a, size_t count_a, const double *b, size_t count_b)
{
    double ties, m = (double)count_a, n = (double)count_b, all = m + n;
    double u = rank_sum(a, count_a, b, count_b, &ties) - m * (m + 1) / 2;
    double variance = m * n / 12 * (all + 1 - ties / (all * (all - 1)));
    double beyond = fabs(u - m * n / 2) - 0.5;
    if (variance <= 0 || beyond <= 0)
        return 1;
    return erfc(beyond / sqrt(2 * variance));
}

static bool estimate(struct td_shift *out, const double *a, size_t count_a, const double *b, size_t count_b)
{
    double x[MOST], y[MOST];
    size_t m = thin(x, a, count_a), n = thin(y, b, count_b);
    double *differences = malloc(m * n * sizeof *differences);
    if (!differences)
        return false;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            differences[i * n + j] = y[j] - x[i];
    td_order_sort(differences, m * n);
    double pairs = (double)(m * n);
    double reach = 1.96 * sqrt(pairs * (double)(m + n + 1) / 12);
    double first = floor(pairs / 2 - reach);
    size_t low = first > 0 ? (size_t)first : 0;
    out->shift = td_order_quantile(differences, m * n, 0.5);
    out->low = differences[low];
    out->high = differences[m * n - 1 - low];
    free(differences);
    return true;
}

bool td_shift_measure(struct td_shift *out, double *a, size_t count_a, double *b, size_t count_b)
{
    *out = (struct td_shift){.count_a = count_a,
                             .count_b = count_b,
                             .median_a = td_order_median(a, count_a),
                             .median_b = td_order_median(b, count_b),
                             .shift = NAN,
                             .low = NAN,
                             .high = NAN,
                             .p = 1};
    if (count_a < TD_SHIFT_LEAST || count_b < TD_SHIFT_LEAST)
        return true;
    out->p = chance(a, count_a, b, count_b);
    return estimate(out, a, count_a, b, count_b);
}
