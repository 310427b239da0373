/* library.h: a shared library that is loaded when it is first needed.
 *
 * Three libraries that few commands need bring forty others with them; linked, they are three quarters of the
 * time that tdbg takes to start. Such a library is described by the list of its functions that are used:
 *
 *     #define CAIRO_CALLS(CALL) CALL(cairo_, create) CALL(cairo_, fill)
 *     TD_LIBRARY_CALLS(cairo_calls, CAIRO_CALLS);
 *     static struct cairo_calls cairo;
 *     static struct td_library cairo_library = TD_LIBRARY(TD_SONAME_CAIRO, CAIRO_CALLS, &cairo);
 *
 * and after td_library_load(&cairo_library, error) its functions are cairo.create, cairo.fill, with the types
 * that the library's own header gives them. The names of the files (TD_SONAME_…) come from the build.
 */
#ifndef TD_BASE_LIBRARY_H
#define TD_BASE_LIBRARY_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

struct td_library {
    const char *file;
    const char *const *names; /* of its functions, NULL at the end */
    void *calls;              /* as many pointers to functions */
    atomic_bool loaded;
};

#define TD_LIBRARY_FIELD_(prefix, name) __typeof__(prefix##name) *name;
#define TD_LIBRARY_NAME_(prefix, name) #prefix #name,

#define TD_LIBRARY_CALLS(tag, LIST) \
    struct tag {                    \
        LIST(TD_LIBRARY_FIELD_)     \
    }

#define TD_LIBRARY(so, LIST, table)                                                                 \
    {                                                                                               \
        .file = (so), .names = (const char *const[]){LIST(TD_LIBRARY_NAME_) NULL}, .calls = (table) \
    }

/* From any thread, as often as one likes. A library stays loaded until the end of the process. */
TD_CHECK tdbg_status td_library_load(struct td_library *library, struct tdbg_error *error);

#endif
