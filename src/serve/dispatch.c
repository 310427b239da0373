/* dispatch.c: from a method and a path to a route.
 *
 * The tables are few and short, so they are walked. A path that some route knows under another method is a
 * 405 that says which; HEAD is GET without its body. What no route knows is the page's own: it has addresses
 * for every state, and reads them itself.
 */
#include "serve/request.h"

#include <string.h>

/* The page and its files; anything else under /api never is the page. */
static const struct td_route routes_page[] = {
    {"GET", "/", TD_BODY_NONE, td_assets_page},
    {"GET", "/assets/{}", TD_BODY_NONE, td_assets_file},
    {0},
};

static const struct td_route page_anywhere = {"GET", NULL, TD_BODY_NONE, td_assets_page};

static const struct td_route *const tables[] = {
    td_routes_original, td_routes_looks, td_routes_comparisons, td_routes_reports,
    td_routes_inputs,   td_routes_runs,  routes_page,
};

/* Sets the request's parameters as far as it gets. */
static bool fits(struct td_request *r, const char *pattern)
{
    size_t parameters = 0;
    for (size_t i = 0; i < r->segment_count; i++) {
        if (*pattern != '/' || i >= TD_MAX_SEGMENTS)
            return false;
        pattern++;
        size_t length = strcspn(pattern, "/");
        if (length == 2 && memcmp(pattern, "{}", 2) == 0 && parameters < TD_MAX_PARAMETERS) {
            if (!*r->segments[i])
                return false;
            r->exchange.parameter[parameters++] = r->segments[i];
        } else if (strncmp(r->segments[i], pattern, length) != 0 || r->segments[i][length]) {
            return false;
        }
        pattern += length;
    }
    return *pattern == 0;
}

/* Gathers "GET, HEAD, PUT" without repeating itself. */
static void allow(char *list, size_t room, const char *method)
{
    if (strstr(list, method))
        return;
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s%s", used ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

static bool wants_page(const struct td_request *r)
{
    const char *accept = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Accept");
    bool api =
        r->segment_count > 0 && (strcmp(r->segments[0], "api") == 0 || strcmp(r->segments[0], "assets") == 0);
    return !api && accept && strstr(accept, "text/html");
}

bool td_dispatch(struct td_request *r)
{
    const char *method = strcmp(r->exchange.method, "HEAD") == 0 ? "GET" : r->exchange.method;
    char allowed[128] = "";
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const struct td_route *route = tables[t]; route->method; route++) {
            if (!fits(r, route->pattern))
                continue;
            if (strcmp(route->method, method) == 0) {
                r->route = route;
                return true;
            }
            allow(allowed, sizeof allowed, route->method);
        }
    }
    if (allowed[0]) {
        td_answer_header(&r->exchange, "Allow", allowed);
        td_answer_error(&r->exchange, 405, "%s takes %s", r->exchange.path, allowed);
        return false;
    }
    if (strcmp(method, "GET") == 0 && wants_page(r)) {
        r->route = &page_anywhere;
        return true;
    }
    td_answer_error(&r->exchange, 404, "there is nothing at %s", r->exchange.path);
    return false;
}
