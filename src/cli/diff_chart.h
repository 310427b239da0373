/* diff_chart.h: the error through the layers as bars of text. */
#ifndef TD_CLI_DIFF_CHART_H
#define TD_CLI_DIFF_CHART_H

#include "cli/cli.h"
#include "session/diff.h"

/* Nothing where there are fewer than two layers, or no error to draw. */
void diff_chart(const struct cli *cli, const struct td_diff *diff);

#endif
