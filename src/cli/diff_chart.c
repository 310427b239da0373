/* diff_chart.c: see diff_chart.h.
 *
 * One bar per layer (or per few layers, when there are many): the largest relative error in it, on a
 * logarithmic scale that begins a decade below the lowest noise floor. A mark shows the floor of the layer.
 */
#include "cli/diff_chart.h"

#include <math.h>
#include <stdlib.h>

enum { BARS = 24, LENGTH = 40 };

struct bar {
    int64_t first, last; /* layers */
    double error, floor;
    bool diverged, lost; /* lost: a NaN or infinity on one side only */
};

static int64_t count_layers(const struct td_diff *diff)
{
    int64_t top = -1;
    for (size_t i = 0; i < diff->result.count; i++)
        if (td_pair_measured(&diff->result.pairs[i]) && diff->result.pairs[i].layer > top)
            top = diff->result.pairs[i].layer;
    return top + 1;
}

static int fill(const struct td_diff *diff, struct bar *bars, int64_t layers)
{
    int64_t each = (layers + BARS - 1) / BARS;
    int n = (int)((layers + each - 1) / each);
    for (int b = 0; b < n; b++)
        bars[b] = (struct bar){.first = b * each,
                               .last = b * each + each - 1 < layers ? b * each + each - 1 : layers - 1};
    for (size_t i = 0; i < diff->result.count; i++) {
        const struct td_pair *p = &diff->result.pairs[i];
        if (!td_pair_measured(p) || p->layer < 0 || p->outcome.metrics.count < 2)
            continue;
        struct bar *b = &bars[p->layer / each];
        double error = isfinite(p->outcome.metrics.rel_l2) ? p->outcome.metrics.rel_l2 : 1;
        b->error = fmax(b->error, error);
        b->floor = fmax(b->floor, p->outcome.ruling.floor);
        b->lost = b->lost || td_metrics_lost(&p->outcome.metrics) > 0;
        b->diverged = b->diverged || p->outcome.ruling.verdict == TD_DIVERGED;
    }
    return n;
}

static int position(double value, double low, double high)
{
    double x = log(value / low) / log(high / low) * LENGTH;
    return x < 0 ? 0 : x > LENGTH ? LENGTH : (int)(x + 0.5);
}

void diff_chart(const struct cli *cli, const struct td_diff *diff)
{
    struct bar bars[BARS];
    int64_t layers = count_layers(diff);
    if (layers < 2)
        return;
    int n = fill(diff, bars, layers);
    double low = INFINITY, high = 0;
    for (int b = 0; b < n; b++) {
        low = fmin(low, bars[b].floor > 0 ? bars[b].floor / 10 : INFINITY);
        high = fmax(high, fmax(bars[b].error, bars[b].floor * 2));
    }
    if (!(high > 0) || !isfinite(low))
        return;
    bool unicode = cli->out.unicode;
    printf("\nlargest relative error by layer (log scale, %s = noise floor)\n", unicode ? "┆" : ":");
    for (int b = 0; b < n; b++) {
        char name[48];
        int length = bars[b].error > 0 ? position(bars[b].error, low, high) : 0;
        int mark = bars[b].floor > 0 ? position(bars[b].floor, low, high) : -1;
        if (bars[b].first == bars[b].last)
            snprintf(name, sizeof name, "%lld", (long long)bars[b].first);
        else
            snprintf(name, sizeof name, "%lld-%lld", (long long)bars[b].first, (long long)bars[b].last);
        printf("%8s  %s", name, term_style(&cli->out, bars[b].diverged ? STYLE_RED : STYLE_GREEN));
        for (int i = 0; i <= LENGTH; i++)
            fputs(i < length ? (unicode ? "█" : "#") : i == mark ? (unicode ? "┆" : ":") : " ", stdout);
        printf("%s %.2g%s\n", term_style(&cli->out, STYLE_PLAIN), bars[b].error,
               bars[b].lost ? ", NaN or Inf" : "");
    }
}
