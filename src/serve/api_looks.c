/* api_looks.c: the routes that look at a pair; see docs/api.md. */
#include "serve/exchange.h"

const struct td_route td_routes_looks[] = {{0}};
