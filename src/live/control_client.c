/* control_client.c: see control_client.h. */
#include "live/control_client.h"

#include "base/json.h"
#include "live/control.h"
#include "live/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A line of the other side; a step of a large model has some thousand tensors of 300 bytes. */
enum { LONGEST_LINE = 64 << 20, CHUNK = 1 << 16 };

struct td_client {
    int fd, timeout_ms;
    int64_t id;          /* of the last request */
    int file;            /* that came with the last answer; -1: none */
    struct td_buffer in; /* what has arrived and is no line yet */
    size_t looked;       /* of it, without a line end */
    json_t *events;      /* an array: those that nobody asked for yet */
};

tdbg_status td_client_open(struct td_client **out, const char *dir, int timeout_ms, struct tdbg_error *error)
{
    struct td_client *client = calloc(1, sizeof *client);
    json_t *events = json_array();
    if (!client || !events) {
        free(client);
        json_decref(events);
        return td_fail_nomem(error);
    }
    *client = (struct td_client){.timeout_ms = timeout_ms, .file = -1, .events = events};
    td_buffer_init(&client->in, LONGEST_LINE);
    tdbg_status status = td_socket_connect(&client->fd, dir, TD_RUN_CONTROL, error);
    if (status == TDBG_OK)
        *out = client;
    else
        td_client_close(&client);
    return status;
}

void td_client_close(struct td_client **client)
{
    struct td_client *c = *client;
    if (!c)
        return;
    if (c->fd > 0)
        close(c->fd);
    if (c->file >= 0)
        close(c->file);
    td_buffer_release(&c->in);
    json_decref(c->events);
    free(c);
    *client = NULL;
}

int td_client_take_file(struct td_client *client)
{
    int file = client->file;
    client->file = -1;
    return file;
}

/* --- time ----------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Ready before `deadline`; false when the time is over. */
static bool wait_until(int fd, short what, int64_t deadline)
{
    struct pollfd ready = {.fd = fd, .events = what};
    for (;;) {
        int64_t left = deadline - now_ms();
        int count = poll(&ready, 1, left > 0 ? (int)left : 0);
        if (count > 0)
            return true;
        if (count == 0 || errno != EINTR)
            return false;
    }
}

static tdbg_status gone(struct tdbg_error *error)
{
    return td_fail(error, TDBG_IO, "the process of the run is gone");
}

/* --- lines ---------------------------------------------------------------------------------------------- */

/* What has arrived, and the file that came with it, if any. */
static tdbg_status receive(struct td_client *c, struct tdbg_error *error)
{
    size_t before = c->in.size;
    char *room = td_buffer_extend(&c->in, CHUNK);
    if (!room)
        return td_fail(error, TDBG_LIMIT, "an answer without end");
    int file = -1;
    ssize_t count = td_socket_receive(c->fd, room, CHUNK, &file);
    c->in.size = before + (size_t)(count > 0 ? count : 0);
    c->in.data[c->in.size] = 0;
    if (file >= 0) {
        if (c->file >= 0)
            close(c->file);
        c->file = file;
    }
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        return gone(error);
    return TDBG_OK;
}

/* The first whole line as JSON, or NULL when there is none yet. */
static tdbg_status take_line(struct td_client *c, json_t **out, struct tdbg_error *error)
{
    *out = NULL;
    if (c->looked >= c->in.size)
        return TDBG_OK;
    const char *end = memchr(c->in.data + c->looked, '\n', c->in.size - c->looked);
    if (!end) {
        c->looked = c->in.size;
        return TDBG_OK;
    }
    size_t length = (size_t)(end - c->in.data);
    json_t *line = json_loadb(c->in.data, length, 0, NULL);
    c->in.size -= length + 1;
    memmove(c->in.data, end + 1, c->in.size);
    c->in.data[c->in.size] = 0;
    c->looked = 0;
    if (!json_is_object(line)) {
        json_decref(line);
        return td_fail(error, TDBG_CORRUPT, "what answers is no control socket of a run");
    }
    *out = line;
    return TDBG_OK;
}

/* The next line before `deadline`, or NULL. */
static tdbg_status next_line(struct td_client *c, int64_t deadline, json_t **out, struct tdbg_error *error)
{
    for (;;) {
        TD_TRY(take_line(c, out, error));
        if (*out || !wait_until(c->fd, POLLIN, deadline))
            return TDBG_OK;
        TD_TRY(receive(c, error));
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static tdbg_status send_all(struct td_client *c, const char *text, size_t size, struct tdbg_error *error)
{
    int64_t deadline = now_ms() + c->timeout_ms;
    while (size > 0) {
        ssize_t count = send(c->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            text += count;
            size -= (size_t)count;
        } else if (errno != EAGAIN && errno != EINTR) {
            return gone(error);
        } else if (!wait_until(c->fd, POLLOUT, deadline)) {
            return td_fail(error, TDBG_IO, "the process of the run does not listen");
        }
    }
    return TDBG_OK;
}

static tdbg_status send_request(struct td_client *c, const char *verb, const struct td_parameter *parameters,
                                struct tdbg_error *error)
{
    struct td_buffer text;
    struct td_json json, *j = &json;
    td_buffer_init(&text, LONGEST_LINE);
    td_json_to_buffer(j, &text);
    td_json_begin_object(j);
    td_json_field_int(j, "id", ++c->id);
    td_json_field_string(j, "do", verb);
    for (const struct td_parameter *p = parameters; p && p->key; p++)
        if (p->text)
            td_json_field_string(j, p->key, p->text);
    td_json_end_object(j);
    td_json_newline(j);
    tdbg_status status = td_json_finish(j) ? send_all(c, text.data, text.size, error) : td_fail_nomem(error);
    td_buffer_release(&text);
    return status;
}

/* An answer that refuses becomes an error. */
static tdbg_status judge(json_t *line, struct tdbg_error *error)
{
    if (json_is_true(json_object_get(line, "ok")))
        return TDBG_OK;
    const char *why = json_string_value(json_object_get(line, "error"));
    return td_fail(error, TDBG_MISUSE, "%s", why ? why : "the run refuses");
}

tdbg_status td_client_ask(struct td_client *c, const char *verb, const struct td_parameter *parameters,
                          json_t **answer, struct tdbg_error *error)
{
    int64_t deadline = now_ms() + c->timeout_ms;
    TD_TRY(send_request(c, verb, parameters, error));
    for (;;) {
        json_t *line;
        TD_TRY(next_line(c, deadline, &line, error));
        if (!line)
            return td_fail(error, TDBG_IO, "the process of the run does not answer");
        if (json_object_get(line, "event")) {
            if (json_array_append_new(c->events, line) != 0)
                return td_fail_nomem(error);
        } else if (json_integer_value(json_object_get(line, "id")) != c->id) {
            json_decref(line); /* of a request that was given up */
        } else {
            tdbg_status status = judge(line, error);
            if (status == TDBG_OK)
                *answer = line;
            else
                json_decref(line);
            return status;
        }
    }
}

json_t *td_client_past_event(struct td_client *c)
{
    json_t *event = json_incref(json_array_get(c->events, 0));
    json_array_remove(c->events, 0);
    return event;
}

tdbg_status td_client_event(struct td_client *c, int timeout_ms, json_t **event, struct tdbg_error *error)
{
    int64_t deadline = now_ms() + timeout_ms;
    if ((*event = td_client_past_event(c)))
        return TDBG_OK;
    for (;;) {
        json_t *line;
        TD_TRY(next_line(c, deadline, &line, error));
        if (!line || json_object_get(line, "event")) {
            *event = line;
            return TDBG_OK;
        }
        json_decref(line);
    }
}
