/* guard.h: who may ask. The first thing that happens to a request.
 *
 *     Host     must name this machine, or a page whose name was pointed at 127.0.0.1 could read everything
 *              (DNS rebinding)
 *     Origin   must be ours for whatever changes something; browsers that send none send Sec-Fetch-Site; what
 *              sends neither is no browser, and no page can make it ask
 *     token    where the network can reach us: once as ?token=, answered with a cookie and the same address
 *              without it; or as `Authorization: Bearer`
 *
 * The cookie holds a digest of the token, not the token. Cookies know no ports, so their names do.
 */
#ifndef TD_SERVE_GUARD_H
#define TD_SERVE_GUARD_H

#include <stdbool.h>

struct td_request;

enum { TD_GUARD_NAME = 32, TD_GUARD_DIGEST = 64 };

struct td_guard {
    char session_cookie[TD_GUARD_NAME], token_cookie[TD_GUARD_NAME];
    char digest[TD_GUARD_DIGEST + 1]; /* of the token; "" when there is none */
};

/* `token` NULL: none is asked for. */
void td_guard_init(struct td_guard *guard, int port, const char *token);

/* Whether the request may go on; else it has been answered. Finds the session, or makes one. */
bool td_guard_pass(struct td_request *r);

/* Hexadecimal digits from the system's random numbers, and a NUL. False when it has none. */
bool td_guard_random(char *out, int digits);

#endif
