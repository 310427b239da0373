/* assets.c: the page, straight from the binary.
 *
 * A file whose name tells its content is kept for good by a browser. For the others it asks again each time,
 * with the tag of what it has, and a newer tdbg shows at once.
 *
 * The page of a finished comparison carries what it shows, as data that no browser runs: when its script
 * begins, nothing is left to ask for. A very large result is fetched the ordinary way, while the page says
 * so.
 */
#include "serve/assets.h"

#include "serve/desk.h"
#include "serve/request.h"
#include "serve/visit.h"
#include "serve/warming.h"

#include <string.h>

static const char no_page[] =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tdbg</title>\n"
    "<h1>tdbg</h1>\n<p>This build has no page: Node was not there when it was built.</p>\n"
    "<p>The API works all the same: <a href=\"/api/v1/status\">/api/v1/status</a>, "
    "<a href=\"/api/v1/comparisons\">/api/v1/comparisons</a>. To get the page, install Node and npm and "
    "build "
    "again.</p>\n</html>\n";

/* What is carried at most: reading it must not delay the first sight. */
enum { MAX_CARRIED = 2 << 20 };

static const struct td_asset *find(const char *path)
{
    for (const struct td_asset *asset = td_assets; asset->path; asset++)
        if (strcmp(asset->path, path) == 0)
            return asset;
    return NULL;
}

static void answer_bytes(struct td_request *r, const char *type, const void *bytes, size_t size)
{
    /* The library takes a pointer to data that it does not change. */
    td_answer_response(
        r, 200, type,
        td_mhd.create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT));
}

static void answer_asset(struct td_exchange *x, const struct td_asset *asset)
{
    struct td_request *r = x->transport;
    const char *known = td_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "If-None-Match");
    td_answer_header(x, "Cache-Control", asset->lasting ? "max-age=31536000, immutable" : "no-cache");
    td_answer_header(x, "ETag", asset->etag);
    if (known && strstr(known, asset->etag)) {
        td_answer_response(r, 304, NULL, td_mhd.create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
        return;
    }
    answer_bytes(r, asset->type, asset->bytes, asset->size);
}

/* --- the page of a comparison --------------------------------------------------------------------------- */

/* What api.ts would ask for. False: it is not done, or too large. */
static bool put_comparison(struct td_buffer *out, struct td_desk *desk, const char *id)
{
    td_buffer_append(out, "{\"comparison\":", strlen("{\"comparison\":"));
    bool good = td_desk_describe(desk, id, out, NULL) == TDBG_OK;
    td_buffer_append(out, ",\"state\":", strlen(",\"state\":"));
    good = good && td_desk_state(desk, id, out, NULL) == TDBG_OK;
    td_buffer_append(out, ",\"result\":", strlen(",\"result\":"));
    good = good && td_desk_result(desk, id, out, NULL) == TDBG_OK;
    td_buffer_append(out, "}", 1);
    return good && !out->failed;
}

/* JSON as the content of an element: a `<`, which only strings have, could end it. */
static void put_escaped(struct td_buffer *out, const char *json, size_t size)
{
    for (const char *end = json + size, *cut; json < end; json = cut) {
        if (*json == '<') {
            td_buffer_append(out, "\\u003c", 6);
            json++;
        }
        cut = memchr(json, '<', (size_t)(end - json));
        cut = cut ? cut : end;
        td_buffer_append(out, json, (size_t)(cut - json));
    }
}

/* The page up to the end of its body, the data, the rest. */
static bool put_page(struct td_buffer *out, const struct td_asset *page, const struct td_buffer *carried)
{
    static const char end[] = "</body>";
    const char *html = (const char *)page->bytes, *at = memmem(html, page->size, end, sizeof end - 1);
    if (!at)
        return false;
    td_buffer_append(out, html, (size_t)(at - html));
    td_buffer_printf(out, "<script type=\"application/json\" id=\"carried\">");
    put_escaped(out, carried->data, carried->size);
    td_buffer_printf(out, "</script>\n");
    td_buffer_append(out, at, page->size - (size_t)(at - html));
    return !out->failed;
}

static void answer_comparison(struct td_exchange *x, const struct td_asset *page, const char *id)
{
    struct td_buffer carried, body;
    td_buffer_init(&carried, MAX_CARRIED);
    td_buffer_init(&body, 7 * (size_t)MAX_CARRIED);
    if (put_comparison(&carried, x->desk, id) && put_page(&body, page, &carried))
        td_answer_bytes(x, page->type, &body); /* never stored: it is as old as the answer */
    else
        answer_asset(x, page);
    td_buffer_release(&carried);
    td_buffer_release(&body);
}

/* The comparison that the address shows, or NULL. */
static const char *comparison_shown(const struct td_request *r)
{
    return r->segment_count >= 2 && strcmp(r->segments[0], "c") == 0 ? r->segments[1] : NULL;
}

/* The pair that the address shows, if it shows one. */
static void warm_shown(struct td_exchange *x, const char *id)
{
    const struct td_request *r = x->transport;
    size_t index;
    if (r->segment_count == 4 && strcmp(r->segments[2], "pairs") == 0 &&
        td_read_index(r->segments[3], &index))
        td_warm_pair(x, id, index);
}

void td_assets_page(struct td_exchange *x)
{
    const struct td_asset *page = find("/index.html");
    const char *id = comparison_shown(x->transport);
    if (page && id && x->desk) {
        if (td_may_wait(x)) {
            warm_shown(x, id);
            answer_comparison(x, page, id);
        }
    } else if (page)
        answer_asset(x, page);
    else
        answer_bytes(x->transport, "text/html; charset=utf-8", no_page, sizeof no_page - 1);
}

void td_assets_file(struct td_exchange *x)
{
    const struct td_asset *asset = find(x->path);
    if (asset)
        answer_asset(x, asset);
    else
        td_answer_error(x, 404, "the page has no file %s", x->path);
}
