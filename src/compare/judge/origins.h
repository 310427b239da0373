/* origins.h: which divergences were born where they show, and which came in from elsewhere. */
#ifndef TD_COMPARE_JUDGE_ORIGINS_H
#define TD_COMPARE_JUDGE_ORIGINS_H

#include "compare/pair.h"

/* Sets `origin` of every divergence. The first divergence in the order of execution; NULL: there is none. */
struct td_pair *td_origins_find(struct td_pair *pairs, size_t count);

#endif
