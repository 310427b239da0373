/* guard.c: see guard.h. */
#include "serve/guard.h"

#include "serve/request.h"

#include <arpa/inet.h>
#include <nettle/base16.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

static void digest_of(const char *token, char out[TD_GUARD_DIGEST + 1])
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, strlen(token), (const uint8_t *)token);
    sha256_digest(&context, sizeof digest, digest);
    base16_encode_update(out, sizeof digest, digest);
    out[TD_GUARD_DIGEST] = 0;
}

void td_guard_init(struct td_guard *guard, int port, const char *token)
{
    snprintf(guard->session_cookie, sizeof guard->session_cookie, "tdbg_session_%d", port);
    snprintf(guard->token_cookie, sizeof guard->token_cookie, "tdbg_token_%d", port);
    guard->digest[0] = 0;
    if (token)
        digest_of(token, guard->digest);
}

bool td_guard_random(char *out, int digits)
{
    uint8_t bytes[64];
    size_t count = (size_t)digits / 2;
    if (count > sizeof bytes || getrandom(bytes, count, 0) != (ssize_t)count)
        return false;
    base16_encode_update(out, count, bytes);
    out[digits] = 0;
    return true;
}

static const char *header(const struct td_request *r, const char *name)
{
    return td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* --- Host ----------------------------------------------------------------------------------------------- */

/* The name of "name", "name:port" or "[::1]:port", without brackets; false when it is none of these. */
static bool host_name(const char *host, char *out, size_t room)
{
    const char *end;
    bool bracketed = host[0] == '[';
    if (bracketed) {
        host++;
        end = strchr(host, ']');
    } else {
        end = host + strcspn(host, ":");
    }
    if (!end || end == host || (size_t)(end - host) >= room)
        return false;
    const char *port = end + bracketed;
    if (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1)))
        return false;
    memcpy(out, host, (size_t)(end - host));
    out[end - host] = 0;
    return true;
}

static bool is_address(const char *name, bool *loopback)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, name, &four) == 1) {
        *loopback = ntohl(four.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, name, &six) == 1) {
        *loopback = IN6_IS_ADDR_LOOPBACK(&six);
        return true;
    }
    return false;
}

/* An address cannot be rebound, so beyond loopback any will do; names must be ones we know. */
static bool is_ours(const struct td_server *server, const char *name)
{
    bool loopback;
    if (is_address(name, &loopback))
        return loopback || !server->loopback;
    if (strcasecmp(name, "localhost") == 0 || strcasecmp(name, server->options.host) == 0)
        return true;
    char machine[256] = "";
    return !server->loopback && gethostname(machine, sizeof machine - 1) == 0 &&
           strcasecmp(name, machine) == 0;
}

static bool host_passes(struct td_request *r, const char *host)
{
    char name[256];
    if (!host || !host_name(host, name, sizeof name)) {
        td_answer_error(&r->exchange, 400, "a request needs a Host");
        return false;
    }
    if (!is_ours(r->exchange.server, name)) {
        td_answer_error(&r->exchange, 403, "'%s' is not a name of this server", name);
        return false;
    }
    return true;
}

/* --- Origin --------------------------------------------------------------------------------------------- */

static bool is_reading(const struct td_request *r)
{
    const char *method = r->exchange.method;
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static bool origin_passes(struct td_request *r, const char *host)
{
    const char *origin = header(r, "Origin"), *site = header(r, "Sec-Fetch-Site");
    bool same = true;
    if (origin)
        same = strncmp(origin, "http://", 7) == 0 && strcasecmp(origin + 7, host) == 0;
    else if (site)
        same = strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    if (!same)
        td_answer_error(&r->exchange, 403, "a page of another origin may change nothing here");
    return same;
}

/* --- Token ---------------------------------------------------------------------------------------------- */

static bool digest_fits(const struct td_guard *guard, const char *digest)
{
    return strlen(digest) == TD_GUARD_DIGEST && memeql_sec(digest, guard->digest, TD_GUARD_DIGEST);
}

static bool token_fits(const struct td_guard *guard, const char *token)
{
    char digest[TD_GUARD_DIGEST + 1];
    digest_of(token, digest);
    return digest_fits(guard, digest);
}

/* The target without its token; `out` has room for it. */
static void strip_token(const char *target, char *out)
{
    size_t path = strcspn(target, "?");
    memcpy(out, target, path);
    out += path;
    char mark = '?';
    for (const char *part = target + path; *part; part += strcspn(part, "&")) {
        part++;
        size_t size = strcspn(part, "&");
        if (size == 0 || strncmp(part, "token=", 6) == 0)
            continue;
        *out++ = mark;
        mark = '&';
        memcpy(out, part, size);
        out += size;
    }
    *out = 0;
}

static void answer_with_cookie(struct td_request *r)
{
    const struct td_guard *guard = &r->exchange.server->guard;
    char cookie[256], target[8193];
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", guard->token_cookie,
             guard->digest);
    strip_token(r->target, target);
    td_answer_header(&r->exchange, "Set-Cookie", cookie);
    td_answer_header(&r->exchange, "Location", target);
    struct td_buffer empty;
    td_buffer_init(&empty, 1);
    td_answer_json(&r->exchange, 303, &empty);
}

static bool token_passes(struct td_request *r)
{
    const struct td_guard *guard = &r->exchange.server->guard;
    if (!guard->digest[0])
        return true;
    const char *bearer = header(r, "Authorization"), *offered = td_query(&r->exchange, "token");
    const char *cookie = td_mhd.lookup_connection_value(r->connection, MHD_COOKIE_KIND, guard->token_cookie);
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 && token_fits(guard, bearer + 7))
        return true;
    if (offered && token_fits(guard, offered)) {
        if (!is_reading(r))
            return true;
        answer_with_cookie(r);
        return false;
    }
    if (cookie && digest_fits(guard, cookie))
        return true;
    td_answer_header(&r->exchange, "WWW-Authenticate", "Bearer");
    td_answer_error(&r->exchange, 401,
                    "this server wants its token: open the address that tdbg serve printed, or send "
                    "'Authorization: Bearer TOKEN'");
    return false;
}

/* --- Session -------------------------------------------------------------------------------------------- */

static bool find_session(struct td_request *r)
{
    const struct td_guard *guard = &r->exchange.server->guard;
    const char *cookie =
        td_mhd.lookup_connection_value(r->connection, MHD_COOKIE_KIND, guard->session_cookie);
    r->exchange.session = r->session;
    if (cookie && strlen(cookie) == TD_SESSION_LENGTH &&
        strspn(cookie, "0123456789abcdef") == TD_SESSION_LENGTH) {
        memcpy(r->session, cookie, sizeof r->session);
        r->exchange.has_session = true;
        return true;
    }
    if (!td_guard_random(r->session, TD_SESSION_LENGTH)) {
        memset(r->session, '0', TD_SESSION_LENGTH);
        td_answer_error(&r->exchange, 500, "the system has no random numbers");
        return false;
    }
    char text[128];
    snprintf(text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Lax", guard->session_cookie, r->session);
    td_answer_header(&r->exchange, "Set-Cookie", text);
    return true;
}

bool td_guard_pass(struct td_request *r)
{
    const char *host = header(r, "Host");
    return host_passes(r, host) && (is_reading(r) || origin_passes(r, host)) && token_passes(r) &&
           find_session(r);
}
