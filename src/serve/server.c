/* server.c: see server.h. The daemon, and the life of a request in it.
 *
 * The HTTP library calls on_target with the first line, on_request for the headers, for each piece of the
 * body and at its end, and on_end whatever happened. Between the two last steps a request may be away: its
 * connection is suspended, and nobody but the thread it runs on touches it.
 */
#include "serve/server.h"

#include "serve/request.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection: 128 KiB hold the headers and one piece of a body. The library clears all of it after each
 * request, which takes a quarter of the time of a small one at twice the size; pieces of half the size cost
 * an upload a sixth in system calls. A piece would be half of it, but there is less left than a step, and so
 * the library lets the piece grow first. Half a minute of silence ends it. */
enum {
    MOST_CONNECTIONS = 1024,
    CONNECTION_MEMORY = 128 << 10,
    MEMORY_STEP = 112 << 10,
    SILENCE_SECONDS = 30,
    BACKLOG = 1024,
    LEAST_THREADS = 4
};

/* --- The life of a request ------------------------------------------------------------------------------ */

/* What a connection is busy with. The library does not tell the end of every request whose target it told:
 * headers that it refuses itself end in silence. So the connection remembers. */
struct busy {
    struct td_request *request;
};

static struct busy *busy_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        td_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void let_go(struct td_server *server, struct busy *busy)
{
    if (busy->request)
        atomic_fetch_sub(&server->held, busy->request->intake.held);
    td_request_free(busy->request);
    busy->request = NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = calloc(1, sizeof(struct busy));
    } else if (*slot) {
        let_go(context, *slot);
        free(*slot);
        *slot = NULL;
    }
}

static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct td_server *server = context;
    struct busy *busy = busy_of(connection);
    if (!busy)
        return NULL;
    let_go(server, busy);
    struct td_request *r = td_request_new(target);
    if (r) {
        r->connection = connection;
        r->exchange.server = server;
        r->exchange.desk = server->options.desk;
    }
    busy->request = r;
    return r;
}

static void on_end(void *context, struct MHD_Connection *connection, void **slot,
                   enum MHD_RequestTerminationCode code)
{
    struct busy *busy = busy_of(connection);
    (void)code;
    if (busy)
        let_go(context, busy);
    *slot = NULL;
}

static void run_away(void *context)
{
    struct td_request *r = context;
    r->may_wait = true;
    td_intake_finish_files(r);
    if (!td_answered(r) && !r->producer.write)
        r->route->run(&r->exchange);
    if (r->producer.write)
        td_answer_produce(r);
    td_mhd.resume_connection(r->connection); /* from here on the request is the library's again */
}

static enum MHD_Result run(struct td_request *r)
{
    r->stage = TD_STAGE_ANSWER;
    bool files = !td_answered(r) && td_intake_has_files(r);
    if (!td_answered(r) && !files)
        r->route->run(&r->exchange);
    if (!td_answered(r) && !files && !r->wants_wait && !r->producer.write)
        td_answer_error(&r->exchange, 500, "the route has no answer");
    if (td_answered(r))
        return td_answer_deliver(r);
    td_mhd.suspend_connection(r->connection);
    if (!td_waiting_start(&r->exchange.server->waiting, run_away, r)) {
        td_answer_error(&r->exchange, 503, "too many requests at once");
        td_mhd.resume_connection(r->connection);
    }
    return MHD_YES;
}

bool td_may_wait(struct td_exchange *x)
{
    struct td_request *r = x->transport;
    r->wants_wait = true;
    return r->may_wait;
}

static enum MHD_Result begin(struct td_request *r, const char *method)
{
    r->exchange.method = method;
    r->exchange.session = r->session;
    r->stage = TD_STAGE_BODY;
    if (r->bad_target)
        td_answer_error(&r->exchange, r->bad_target, "%s",
                        r->bad_target == 414 ? "the address is too long" : "the address is not plain");
    else if (td_guard_pass(r))
        (void)td_dispatch(r); /* what it does not find it answers */
    return td_intake_begin(r) ? MHD_YES : td_answer_deliver(r);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **slot)
{
    struct td_request *r = *slot;
    (void)context;
    (void)connection;
    (void)url;
    (void)version;
    if (!r)
        return MHD_NO;
    if (r->stage == TD_STAGE_HEADERS)
        return begin(r, method);
    if (r->stage == TD_STAGE_ANSWER)
        return td_answer_deliver(r);
    if (*size > 0) {
        size_t taken = *size;
        *size = 0;
        return td_intake_take(r, data, taken) ? MHD_YES : MHD_NO;
    }
    td_intake_end(r);
    return run(r);
}

/* --- The daemon ----------------------------------------------------------------------------------------- */

static bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static tdbg_status resolve(struct addrinfo **out, const char *host, int port, struct tdbg_error *error)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo wanted = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    int code = getaddrinfo(host, service, &wanted, out);
    if (code != 0)
        return td_fail(error, TDBG_IO, "no address for '%s': %s", host, gai_strerror(code));
    return TDBG_OK;
}

bool td_server_is_loopback(const char *host)
{
    struct addrinfo *found;
    if (resolve(&found, host, 0, NULL) != TDBG_OK)
        return false;
    bool loopback = address_is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return loopback;
}

/* Bound by ourselves, for a clear word when that fails. */
static tdbg_status listen_on(int *out, struct td_server *server, struct tdbg_error *error)
{
    struct addrinfo *found;
    TD_TRY(resolve(&found, server->options.host, server->options.port, error));
    server->loopback = address_is_loopback(found->ai_addr);
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    int on = 1, fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 &&
                getsockname(fd, (struct sockaddr *)&bound, &length) == 0;
    int reason = errno;
    freeaddrinfo(found);
    if (good) {
        /* The port lies at the same place in both families. */
        server->port = ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
        *out = fd;
        return TDBG_OK;
    }
    if (fd >= 0)
        close(fd);
    if (reason == EADDRINUSE)
        return td_fail(error, TDBG_IO, "port %d is in use on %s (--port takes another, 0 any that is free)",
                       server->options.port, server->options.host);
    errno = reason;
    char what[300];
    snprintf(what, sizeof what, "cannot listen on %.200s, port %d", server->options.host,
             server->options.port);
    return td_fail_errno(error, what);
}

static unsigned thread_count(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus > LEAST_THREADS / 2 ? (unsigned)cpus * 2 : LEAST_THREADS;
}

/* Connections and the files they bring must not run into the soft limit; the hard one is not ours. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

tdbg_status td_server_open(struct td_server **out, const struct td_server_options *options,
                           struct tdbg_error *error)
{
    TD_TRY(td_http_library_load(error));
    struct td_server *server = calloc(1, sizeof *server);
    if (!server)
        return td_fail_nomem(error);
    server->options = *options;
    server->listening = -1;
    td_waiting_init(&server->waiting);
    tdbg_status status = listen_on(&server->listening, server, error);
    if (status == TDBG_OK && !server->loopback && !options->token)
        status = td_fail(error, TDBG_MISUSE, "beyond loopback a token is needed");
    if (status == TDBG_OK)
        status = td_streams_open(&server->streams, error);
    if (status == TDBG_OK)
        status = td_runs_open(&server->runs, server->streams, error);
    if (status != TDBG_OK) {
        td_server_close(&server);
        return status;
    }
    td_guard_init(&server->guard, server->port, options->token);
    *out = server;
    return TDBG_OK;
}

tdbg_status td_server_start(struct td_server *server, const char *start, const char *run,
                            struct tdbg_error *error)
{
    server->start = start;
    server->start_run = run;
    raise_file_limit();
    server->daemon = td_mhd.start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, server->listening, MHD_OPTION_THREAD_POOL_SIZE, thread_count(),
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)MEMORY_STEP,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, server, MHD_OPTION_END);
    if (!server->daemon)
        return td_fail(error, TDBG_IO, "cannot start the HTTP server");
    server->listening = -1;
    return TDBG_OK;
}

void td_server_close(struct td_server **slot)
{
    struct td_server *server = *slot;
    if (!server)
        return;
    /* Nothing may be suspended when the daemon stops, and until then requests still come: so both of those
     * who suspend refuse from here on. Quiescing the daemon would not spare us that, as connections stay; and
     * one of its threads that wakes meanwhile takes the listening socket out of its set first, of which the
     * library (0.9.75) dies. */
    if (server->streams)
        td_streams_end(server->streams);
    td_waiting_end(&server->waiting);
    if (server->daemon)
        td_mhd.stop_daemon(server->daemon);
    td_waiting_release(&server->waiting);
    if (server->listening >= 0)
        close(server->listening);
    td_runs_close(&server->runs); /* it wakes streams */
    td_streams_close(&server->streams);
    free(server);
    *slot = NULL;
}

int td_server_port(const struct td_server *server)
{
    return server->port;
}
