/* diff_words.h: a comparison in the words of a colleague. Used by the terminal and by the HTML report. */
#ifndef TD_REPORT_DIFF_WORDS_H
#define TD_REPORT_DIFF_WORDS_H

#include "base/buffer.h"
#include "session/diff.h"

/* One line: how many pairs, and what became of them. */
void td_diff_summarise(struct td_buffer *out, const struct td_diff *diff);

/* "98 % of A and 100 % of B have a partner"; rounded down, so that 100 % are all. */
void td_diff_cover(struct td_buffer *out, const struct td_summary *summary);

/* That the tensor has another name in B, not only another kind of file: both are worth telling. */
bool td_pair_renamed(const struct td_pair *pair);

/* How a pair was found where that is in doubt: "paired by shape, 72 % sure". False: there is no doubt. */
bool td_pair_doubt(struct td_buffer *out, const struct td_match *match);

/* A paragraph: the first divergence, how big it is, what it looks like, what to look at. */
void td_diff_conclude(struct td_buffer *out, const struct td_diff *diff);

#endif
