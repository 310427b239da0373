/* http_library.c: see http_library.h. */
#include "serve/http_library.h"

struct td_http_calls td_mhd;

static struct td_library library = TD_LIBRARY(TD_SONAME_MICROHTTPD, TD_HTTP_CALLS, &td_mhd);

tdbg_status td_http_library_load(struct tdbg_error *error)
{
    return td_library_load(&library, error);
}
