/* archive_library.c: see archive_library.h. */
#include "io/archive_library.h"

struct td_archive_calls td_la;

static struct td_library library = TD_LIBRARY(TD_SONAME_ARCHIVE, TD_ARCHIVE_CALLS, &td_la);

tdbg_status td_archive_library_load(struct tdbg_error *error)
{
    return td_library_load(&library, error);
}
