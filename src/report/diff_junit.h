/* diff_junit.h: a comparison as a JUnit report: one test case per pair, for CI systems that show them. */
#ifndef TD_REPORT_DIFF_JUNIT_H
#define TD_REPORT_DIFF_JUNIT_H

#include "session/diff.h"

#include <stdio.h>

void td_diff_junit(FILE *out, const struct td_diff *diff);

#endif
