/* diff_words.h: a comparison in the words of a colleague. Used by the terminal and by the HTML report. */
#ifndef TD_REPORT_DIFF_WORDS_H
#define TD_REPORT_DIFF_WORDS_H

#include "base/buffer.h"
#include "session/diff.h"

/* One line: how many pairs, and what became of them. */
void td_diff_summarise(struct td_buffer *out, const struct td_diff *diff);

/* A paragraph: the first divergence, how big it is, what it looks like, what to look at. */
void td_diff_conclude(struct td_buffer *out, const struct td_diff *diff);

#endif
