/* diff_csv.h: a comparison as a table for spreadsheets and scripts: one row per pair. */
#ifndef TD_REPORT_DIFF_CSV_H
#define TD_REPORT_DIFF_CSV_H

#include "session/diff.h"

#include <stdio.h>

void td_diff_csv(FILE *out, const struct td_diff *diff);

#endif
