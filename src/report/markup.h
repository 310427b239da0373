/* markup.h: text inside XML and HTML. */
#ifndef TD_REPORT_MARKUP_H
#define TD_REPORT_MARKUP_H

#include <stdio.h>

/* Escapes & < > " ' and drops the control codes XML forbids. */
void td_markup_text(FILE *out, const char *text);

#endif
