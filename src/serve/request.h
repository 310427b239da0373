/* request.h: one request on its way through the server; what its parts share, and no route sees.
 *
 *     HEADERS -> BODY -> ANSWER        the HTTP library calls once for the headers, then with pieces of the
 *                                      body, then once more; only then may an answer be queued and the
 *                                      connection live on
 *
 * An answer is made when it is known and kept here until then, so that it makes no difference when, or on
 * which thread, a route answers. A request that was refused is read to its end all the same (a client that
 * still writes would never see the answer), unless that would be long.
 */
#ifndef TD_SERVE_REQUEST_H
#define TD_SERVE_REQUEST_H

#include "serve/exchange.h"
#include "serve/guard.h"
#include "serve/http_library.h"
#include "serve/intake.h"
#include "serve/runs.h"
#include "serve/server.h"
#include "serve/streams.h"
#include "serve/waiting.h"

#include <stdatomic.h>

enum { TD_MAX_QUERY = 32, TD_MAX_ANSWER_HEADERS = 8, TD_MAX_SEGMENTS = 12, TD_SESSION_LENGTH = 32 };

enum td_stage { TD_STAGE_HEADERS, TD_STAGE_BODY, TD_STAGE_ANSWER };

struct td_pair_of_text {
    char *name, *value;
};

struct td_server {
    struct td_server_options options; /* strings are borrowed */
    const char *start;                /* the comparison that the page opens with; NULL */
    const char *start_run;            /* or the run; NULL */
    struct MHD_Daemon *daemon;
    int listening; /* -1: it is the daemon's */
    int port;
    bool loopback; /* nobody but this machine can reach it */
    struct td_guard guard;
    struct td_streams *streams;
    struct td_runs *runs;
    struct td_waiting waiting;
    atomic_bool warming; /* a pair, warming.h */
    _Atomic size_t held; /* bytes of JSON bodies in memory, over all requests */
};

struct td_request {
    struct td_exchange exchange;
    struct MHD_Connection *connection;
    const struct td_route *route;
    enum td_stage stage;

    /* The target, decoded; all in `text`. */
    const char *target; /* as it came */
    char *segments[TD_MAX_SEGMENTS];
    size_t segment_count;
    struct td_pair_of_text query[TD_MAX_QUERY];
    size_t query_count;
    unsigned bad_target; /* the status that says what is wrong with it; 0 */

    char session[TD_SESSION_LENGTH + 1];
    struct td_intake intake;

    struct MHD_Response *response; /* NULL: none yet */
    bool speechless;               /* there was no memory for one: the connection is closed instead */
    unsigned status;
    struct td_pair_of_text headers[TD_MAX_ANSWER_HEADERS];
    size_t header_count;

    bool may_wait;               /* runs on a thread where waiting harms nobody */
    bool wants_wait;             /* asked to be run there */
    struct td_producer producer; /* of a file that is still to be made */
    const char *file_type;

    char text[]; /* what the target's parts point into */
};

static inline bool td_answered(const struct td_request *r)
{
    return r->response || r->speechless;
}

/* target.c: a request with its target taken apart; NULL when memory is exhausted. */
struct td_request *td_request_new(const char *target);
void td_request_free(struct td_request *r);

/* dispatch.c: finds the route, or answers. */
bool td_dispatch(struct td_request *r);

/* answer.c */
void td_answer_response(struct td_request *r, unsigned status, const char *type,
                        struct MHD_Response *response);
void td_answer_produce(struct td_request *r); /* makes the file that the route promised */
enum MHD_Result td_answer_deliver(struct td_request *r);

/* assets.c: the page, or one of its files. */
void td_assets_page(struct td_exchange *x);
void td_assets_file(struct td_exchange *x);

#endif
