/* api_comparisons.c: the routes of comparisons; see docs/api.md. */
#include "serve/exchange.h"

const struct td_route td_routes_comparisons[] = {{0}};
