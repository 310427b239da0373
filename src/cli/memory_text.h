/* memory_text.h: a story of memory as text: peak, timeline, what is still held, fragmentation, snapshots. */
#ifndef TD_CLI_MEMORY_TEXT_H
#define TD_CLI_MEMORY_TEXT_H

#include "analyse/memory_story.h"
#include "cli/term.h"

struct memory_text {
    const struct term *term;
    size_t top; /* rows of each list */
    bool quiet; /* the findings only */
};

void memory_text_print(const struct memory_text *t, const struct td_memory_story *s);

/* One line each for those that are not told in full. */
void memory_text_others(const struct memory_text *t, const struct td_memory_book *book);

#endif
