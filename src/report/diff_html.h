/* diff_html.h: a comparison as one HTML file that needs nothing else: to mail, to attach, to keep. */
#ifndef TD_REPORT_DIFF_HTML_H
#define TD_REPORT_DIFF_HTML_H

#include "session/diff.h"

#include <stdio.h>

void td_diff_html(FILE *out, const struct td_diff *diff);

#endif
