/* assets.c: the page, straight from the binary.
 *
 * Names stay the same from build to build, so a browser asks again each time, with the tag of what it has,
 * and a newer tdbg shows at once.
 */
#include "serve/assets.h"

#include "serve/request.h"

#include <string.h>

static const char no_page[] =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tdbg</title>\n"
    "<h1>tdbg</h1>\n<p>This build has no page: Node was not there when it was built.</p>\n"
    "<p>The API works all the same: <a href=\"/api/v1/status\">/api/v1/status</a>, "
    "<a href=\"/api/v1/comparisons\">/api/v1/comparisons</a>. To get the page, install Node and npm and "
    "build "
    "again.</p>\n</html>\n";

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
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT));
}

static void answer_asset(struct td_exchange *x, const struct td_asset *asset)
{
    struct td_request *r = x->transport;
    const char *known = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "If-None-Match");
    td_answer_header(x, "Cache-Control", "no-cache");
    td_answer_header(x, "ETag", asset->etag);
    if (known && strstr(known, asset->etag)) {
        td_answer_response(r, 304, NULL, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
        return;
    }
    answer_bytes(r, asset->type, asset->bytes, asset->size);
}

void td_assets_page(struct td_exchange *x)
{
    const struct td_asset *page = find("/index.html");
    if (page)
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
