/* exchange.h: one HTTP request and its answer, as a route sees them.
 *
 * The server has already checked host, origin and token, found the route, received the body and parsed it
 * when it is JSON. A route reads what it needs and answers exactly once; it holds no logic of its own beyond
 * that. Routes run on the threads of the HTTP library, many at once: whatever they touch is locked by its
 * owner (desk.h, store.h).
 */
#ifndef TD_SERVE_EXCHANGE_H
#define TD_SERVE_EXCHANGE_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

struct td_server;
struct td_desk;

enum { TD_MAX_PARAMETERS = 3 };

/* A field of a form, or the one file that a body was. Files are on disk already, as uploads. */
struct td_field {
    const char *name;
    const char *file_name; /* NULL: text */
    const char *value;     /* the text; of a file the id of its upload */
};

struct td_exchange {
    struct td_server *server;
    struct td_desk *desk;
    const char *method, *path;
    const char *parameter[TD_MAX_PARAMETERS]; /* what the {} of the route's pattern stood for, decoded */
    const json_t *body;                       /* of a TD_BODY_JSON route; else NULL */
    const struct td_field *fields;            /* of TD_BODY_FORM and TD_BODY_FILE */
    size_t field_count;
    const char *session; /* the browser's cookie: 32 hexadecimal digits, never NULL */
    bool has_session;    /* the client sent it; else it was made just now */
    void *transport;     /* the server's own */
};

enum td_body {
    TD_BODY_NONE,
    TD_BODY_JSON,
    TD_BODY_FORM, /* multipart/form-data; its files are streamed to the data folder */
    TD_BODY_FILE  /* the body is a file, named by the query's `name`; streamed likewise */
};

/* One row of a table of routes. "{}" in a pattern stands for one segment of the path. */
struct td_route {
    const char *method, *pattern;
    enum td_body body;
    void (*run)(struct td_exchange *x);
};

/* Ends with a row whose method is NULL. One table for each file of routes; server.c lists the tables. */
extern const struct td_route td_routes_comparisons[], td_routes_reports[], td_routes_inputs[],
    td_routes_looks[], td_routes_original[], td_routes_runs[];

/* For a route that seldom waits: true when it may wait here. False: it must return at once, without an
 * answer, and is run again from the start on a thread of its own. */
bool td_may_wait(struct td_exchange *x);

/* A parameter of the query, decoded; NULL when it is not there. */
const char *td_query(const struct td_exchange *x, const char *name);

/* The same as a number: `otherwise` when it is not there; false, and a 400 was answered, when it is no
 * number or out of range. */
bool td_query_int(struct td_exchange *x, const char *name, int64_t low, int64_t high, int64_t otherwise,
                  int64_t *out);

/* Every path that a client names goes through here, PATH, PATH:NAME or PATH:NAME[slice]: its true form, to be
 * freed. False: it may not be opened, or is not there, and that was answered (403, 404). */
bool td_allow_path(struct td_exchange *x, const char *text, char **out);

/* Answers. Bodies are taken over: the buffer is empty afterwards. */
void td_answer_json(struct td_exchange *x, unsigned status, struct td_buffer *body);
void td_answer_bytes(struct td_exchange *x, const char *type, struct td_buffer *body);
void td_answer_error(struct td_exchange *x, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status code that fits a failure of the library, and its message. */
void td_answer_failure(struct td_exchange *x, const struct tdbg_error *error);

/* A header of the answer to come; name and value are copied. */
void td_answer_header(struct td_exchange *x, const char *name, const char *value);

/* Made by `write` as it is sent, for what need not be held as a whole. It is called on one thread, with
 * what to write to; `release` is called once, also when the client has gone. */
struct td_producer {
    void *context;
    tdbg_status (*write)(void *context, FILE *out);
    void (*release)(void *context);
};
void td_answer_file(struct td_exchange *x, const char *type, const char *file_name,
                    const struct td_producer *producer);

/* Server-sent events. `next` is asked some ten times a second for what is new, and appends it; false: that
 * was the last of it. It must not block. */
struct td_events {
    void *context;
    bool (*next)(void *context, struct td_buffer *out);
    void (*release)(void *context);
};
void td_answer_events(struct td_exchange *x, const struct td_events *events);

#endif
