/* http_library.h: libmicrohttpd, loaded when a server opens (base/library.h). */
#ifndef TD_SERVE_HTTP_LIBRARY_H
#define TD_SERVE_HTTP_LIBRARY_H

#include "base/library.h"

#include <microhttpd.h>

/* clang-format off */
#define TD_HTTP_CALLS(CALL) \
    CALL(MHD_, add_response_header) \
    CALL(MHD_, create_response_from_buffer) \
    CALL(MHD_, create_response_from_callback) \
    CALL(MHD_, create_response_from_fd64) \
    CALL(MHD_, destroy_response) \
    CALL(MHD_, get_connection_info) \
    CALL(MHD_, lookup_connection_value) \
    CALL(MHD_, queue_response) \
    CALL(MHD_, resume_connection) \
    CALL(MHD_, start_daemon) \
    CALL(MHD_, stop_daemon) \
    CALL(MHD_, suspend_connection)
/* clang-format on */

TD_LIBRARY_CALLS(td_http_calls, TD_HTTP_CALLS);

/* Its functions, from td_server_open on. */
extern struct td_http_calls td_mhd;

TD_CHECK tdbg_status td_http_library_load(struct tdbg_error *error);

#endif
