/* diff_junit.h: a comparison as a JUnit report: one test case per pair, for CI systems that show them. */
#ifndef TD_REPORT_DIFF_JUNIT_H
#define TD_REPORT_DIFF_JUNIT_H

#include "session/diff.h"

#include <stdio.h>

/* A line for each finding, inside XML. What is unknown has no confidence: it would be one in nothing. */
void td_junit_findings(FILE *out, const struct td_diagnosis *diagnosis);

void td_diff_junit(FILE *out, const struct td_diff *diff);

#endif
