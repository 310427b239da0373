/* warming.h: pictures made before they are asked for.
 *
 * Whoever opens a pair is about to look at its heatmap. The first sight of a large matrix takes all of its
 * elements; made while the page is still loading, it is there when it is wanted.
 */
#ifndef TD_SERVE_WARMING_H
#define TD_SERVE_WARMING_H

#include "serve/exchange.h"

/* Begins beside what goes on, unless another pair is being warmed. Nobody is told how it went. */
void td_warm_pair(struct td_exchange *x, const char *id, size_t index);

#endif
