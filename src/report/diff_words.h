/* diff_words.h: a comparison in the words of a colleague. Used by the terminal and by the HTML report. */
#ifndef TD_REPORT_DIFF_WORDS_H
#define TD_REPORT_DIFF_WORDS_H

#include "base/buffer.h"
#include "session/diff.h"

/* One line: how many pairs, and what became of them. */
void td_diff_summarise(struct td_buffer *out, const struct td_diff *diff);

/* A paragraph: the first divergence, how big it is, what it looks like, what to look at. */
void td_diff_conclude(struct td_buffer *out, const struct td_diff *diff);

/* "layer 2 query", or the name. */
void td_pair_place(char *out, size_t size, const struct td_pair *pair);

/* What to look at for each kind of mistake; NULL for kinds that need no advice. */
const char *td_mistake_advice(enum td_kind_of_mistake kind);

#endif
