/* api_inputs.c: the routes of inputs: what the server is, uploads, and the folders that may be opened. */
#include "serve/assets.h"
#include "serve/request.h"

#include <string.h>

static void status(struct td_exchange *x)
{
    const struct td_server_options *options = &x->server->options;
    struct td_buffer body;
    struct td_json json, *j = &json;
    td_buffer_init(&body, 1 << 20);
    td_json_to_buffer(j, &body);
    td_json_begin_object(j);
    td_json_field_string(j, "service", "tdbg");
    td_json_field_string(j, "version", tdbg_version());
    td_json_field_bool(j, "ui", td_assets[0].path != NULL);
    td_json_key(j, "roots");
    td_json_begin_array(j);
    td_json_end_array(j);
    td_json_key(j, "limits");
    td_json_begin_object(j);
    td_json_field_uint(j, "upload", options->upload_limit);
    td_json_end_object(j);
    td_json_field_string(j, "start", options->start);
    td_json_end_object(j);
    (void)td_json_finish(j); /* the buffer remembers */
    td_answer_json(x, 200, &body);
}

const struct td_route td_routes_inputs[] = {
    {"GET", "/api/v1/status", TD_BODY_NONE, status},
    {0},
};
