/* assets.h: the page and its files, carried in the program.
 *
 * tools/build-web.py writes the table. "/index.html" is the page: it is the answer to `/` and to every
 * address of the page's own, `/c/…`, which it reads itself. The table is empty in a build without Node; then
 * the server says so. A lasting asset has its content in its name; the others are asked for again, with the
 * etag.
 */
#ifndef TD_SERVE_ASSETS_H
#define TD_SERVE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct td_asset {
    const char *path; /* as requested; NULL ends the table */
    const char *type; /* Content-Type */
    const unsigned char *bytes;
    size_t size;
    const char *etag; /* with its quotes */
    bool lasting;
};

extern const struct td_asset td_assets[];

#endif
