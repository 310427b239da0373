/* server.h: the HTTP server: opened, it answers until it is closed.
 *
 * A request passes the guard (guard.h), finds its route in the tables of exchange.h, has its body received
 * (intake.h), is answered (answer.c). A pool of threads, each waiting with epoll, serves all connections;
 * what takes long runs elsewhere (waiting.h). Limits on connections, memory and time hold for each
 * connection, so that slow and broken clients cost little and nobody else notices them.
 */
#ifndef TD_SERVE_SERVER_H
#define TD_SERVE_SERVER_H

#include "base/status.h"

struct td_desk;
struct td_roots;
struct td_server;
struct td_uploads;

/* Everything here is borrowed and must outlive the server. */
struct td_server_options {
    const char *host;  /* a name or an address */
    int port;          /* 0: any that is free */
    const char *token; /* NULL: none is asked for; must be given when the host is not loopback */
    struct td_roots *roots;
    struct td_uploads *uploads;
    uint64_t upload_limit; /* bytes of one upload, for the page to know */
    struct td_desk *desk;
};

/* Binds the port: clients can connect, and wait until it is started. */
TD_CHECK tdbg_status td_server_open(struct td_server **out, const struct td_server_options *options,
                                    struct tdbg_error *error);

/* `start` is the comparison that the page opens with, `run` the recorded run; either may be NULL. */
TD_CHECK tdbg_status td_server_start(struct td_server *server, const char *start, const char *run,
                                     struct tdbg_error *error);

/* Ends every connection and waits for the routes under way. Whoever makes them wait must have stopped. */
void td_server_close(struct td_server **server);

int td_server_port(const struct td_server *server);

/* Whether `host` is an address, or a name, that only this machine can reach. */
bool td_server_is_loopback(const char *host);

#endif
