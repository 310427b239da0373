/* control_client.h: the other end of a run's control socket: for the console, and for a server.
 *
 * One request at a time: a verb and parameters, all of them text, and an answer. Whoever attached is told
 * what happens as well; events that arrive while an answer is awaited are kept for td_client_event. Every
 * wait has an end: a process that is stopped or busy makes an error, not a hang.
 */
#ifndef TD_LIVE_CONTROL_CLIENT_H
#define TD_LIVE_CONTROL_CLIENT_H

#include "base/status.h"

#include <jansson.h>

struct td_client;

/* A parameter of a request; a row without a key ends the list, one without a text is passed over. */
struct td_parameter {
    const char *key, *text;
};

/* NOTFOUND when no live process serves the run in `dir`. `timeout_ms` is that of every request. */
TD_CHECK tdbg_status td_client_open(struct td_client **out, const char *dir, int timeout_ms,
                                    struct tdbg_error *error);
void td_client_close(struct td_client **client);

/* The answer is the caller's (json_decref). What the other side refuses is an error with its words; IO when
 * it is gone. `parameters` may be NULL. */
TD_CHECK tdbg_status td_client_ask(struct td_client *client, const char *verb,
                                   const struct td_parameter *parameters, json_t **answer,
                                   struct tdbg_error *error);

/* The file that came with the last answer (of "fetch"): the caller's to close; -1: none came. */
int td_client_take_file(struct td_client *client);

/* The next event, or NULL when none came within `timeout_ms`. IO: the process is gone. */
TD_CHECK tdbg_status td_client_event(struct td_client *client, int timeout_ms, json_t **event,
                                     struct tdbg_error *error);

/* The next event that came before the last answer, or NULL; the caller's. */
json_t *td_client_past_event(struct td_client *client);

#endif
