/* original.c: the routes of the application that tdbg replaces; see docs/api.md. */
#include "serve/original.h"

static void health(struct td_exchange *x)
{
    struct td_buffer body;
    struct td_json json;
    td_buffer_init(&body, 1024);
    td_json_to_buffer(&json, &body);
    td_json_begin_object(&json);
    td_json_field_string(&json, "status", "healthy");
    td_json_field_string(&json, "service", "tdbg");
    td_json_field_string(&json, "version", tdbg_version());
    td_json_end_object(&json);
    (void)td_json_finish(&json); /* the buffer remembers */
    td_answer_json(x, 200, &body);
}

const struct td_route td_routes_original[] = {
    {"GET", "/health", TD_BODY_NONE, health},
    {"POST", "/upload", TD_BODY_FORM, td_original_upload},
    {"POST", "/get_tensor_values", TD_BODY_JSON, td_original_values},
    {"POST", "/get_tensor_shapes", TD_BODY_JSON, td_original_shapes},
    {"POST", "/get_tensor_values_manual", TD_BODY_JSON, td_original_mapped},
    {"POST", "/reorder_matches", TD_BODY_JSON, td_original_reorder},
    {"POST", "/regroup_matches", TD_BODY_JSON, td_original_regroup},
    {"POST", "/manual_pair", TD_BODY_JSON, td_original_pair},
    {0},
};
