/* body.c: see intake.h. */
#include "serve/intake.h"

#include "format/json.h"
#include "serve/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_JSON = 16 << 20, MAX_JSON_VALUES = 1 << 20, MAX_JSON_ALL = 256 << 20 };

/* What is read of a refused body before the connection is cut. */
static const uint64_t most_wasted = UINT64_C(64) << 20;

void td_intake_init(struct td_intake *intake)
{
    td_buffer_init(&intake->text, MAX_JSON);
}

void td_intake_release(struct td_intake *intake)
{
    json_decref(intake->json);
    td_buffer_release(&intake->text);
}

static bool has_type(const struct td_request *r, const char *wanted)
{
    const char *type = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
    size_t length = strlen(wanted);
    return type && strncasecmp(type, wanted, length) == 0 && (!type[length] || strchr("; \t", type[length]));
}

/* What the headers announce; UINT64_MAX: they do not say. */
static uint64_t announced(const struct td_request *r)
{
    const char *text = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Length");
    if (MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Transfer-Encoding"))
        return UINT64_MAX;
    return text ? strtoull(text, NULL, 10) : 0;
}

static void check_json(struct td_request *r, uint64_t size)
{
    if (!has_type(r, "application/json"))
        td_answer_error(&r->exchange, 415, "the body must be JSON, with Content-Type: application/json");
    else if (size != UINT64_MAX && size > MAX_JSON)
        td_answer_error(&r->exchange, 413, "the body is larger than %d bytes", MAX_JSON);
}

bool td_intake_begin(struct td_request *r)
{
    uint64_t size = announced(r);
    if (!r->response && r->route->body == TD_BODY_JSON)
        check_json(r, size);
    if (!r->response)
        return true;
    bool asks_first = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Expect") != NULL;
    return !asks_first && (size == UINT64_MAX || size <= most_wasted);
}

static void take_json(struct td_request *r, const char *bytes, size_t size)
{
    struct td_server *server = r->exchange.server;
    if (atomic_fetch_add(&server->held, size) + size > MAX_JSON_ALL) {
        atomic_fetch_sub(&server->held, size);
        td_answer_error(&r->exchange, 503, "too many large requests at once");
        return;
    }
    r->intake.held += size;
    td_buffer_append(&r->intake.text, bytes, size);
    if (r->intake.text.failed)
        td_answer_error(&r->exchange, 413, "the body is larger than %d bytes", MAX_JSON);
}

bool td_intake_take(struct td_request *r, const char *bytes, size_t size)
{
    r->intake.received += size;
    if (r->response)
        return r->intake.received <= most_wasted;
    if (r->route->body == TD_BODY_JSON)
        take_json(r, bytes, size);
    return true;
}

static void end_json(struct td_request *r)
{
    struct td_intake *in = &r->intake;
    const char *text = td_buffer_text(&in->text);
    struct tdbg_error error;
    json_error_t trouble;
    if (td_json_measure("the body", text, in->text.size, 0, MAX_JSON_VALUES, &error) != TDBG_OK) {
        td_answer_error(&r->exchange, 400, "%s", error.message);
        return;
    }
    in->json = json_loadb(text, in->text.size, JSON_REJECT_DUPLICATES, &trouble);
    if (!in->json)
        td_answer_error(&r->exchange, 400, "the body is not valid JSON: %s", trouble.text);
    r->exchange.body = in->json;
}

void td_intake_end(struct td_request *r)
{
    if (!r->response && r->route->body == TD_BODY_JSON)
        end_json(r);
    /* The text has served; its part of the budget is free for others. */
    td_buffer_release(&r->intake.text);
    atomic_fetch_sub(&r->exchange.server->held, r->intake.held);
    r->intake.held = 0;
}
