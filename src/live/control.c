/* control.c: see control.h. The socket, its clients, and the thread that serves them.
 *
 * All of it is non-blocking and bounded: a line that does not end, a client that does not read and one more
 * client than there are places are thrown out. Lines for clients are queued by whoever has something to
 * tell, threads of the model too, and sent by the control thread.
 */
#include "live/control.h"

#include "live/control_core.h"
#include "live/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONGEST_REQUEST = 1 << 16, MOST_UNSENT = 32 << 20 };

/* --- clients -------------------------------------------------------------------------------------------- */

static void wake_up(struct td_control *c)
{
    uint64_t one = 1;
    (void)!write(c->wake, &one, sizeof one);
}

void control_tell(struct td_control *c, const struct td_buffer *line)
{
    for (int i = 0; i < MOST_CLIENTS; i++) {
        struct client *client = &c->clients[i];
        if (client->fd >= 0 && client->attached)
            td_buffer_append(&client->out, line->data, line->size);
    }
    wake_up(c);
}

void control_observe(struct td_control *c)
{
    bool wanted = !c->closing && (c->attached > 0 || c->breakpoint_count > 0 || c->watch_count > 0 ||
                                  c->plan.kind != PLAN_NONE);
    if (wanted && !c->observing) { /* anew: what happened meanwhile was not seen */
        c->partial = true;
        c->stepped = false;
        control_forget(c);
    }
    if (wanted != c->observing)
        td_run_observe(c->run, wanted ? &c->observer : NULL);
    c->observing = wanted;
}

static void drop(struct td_control *c, struct client *client)
{
    bool attached = client->attached;
    close(client->fd);
    if (client->file >= 0)
        close(client->file);
    td_buffer_release(&client->in);
    td_buffer_release(&client->out);
    *client = (struct client){.fd = -1, .file = -1};
    if (!attached || --c->attached > 0)
        return;
    /* Nobody is left who could continue the model. */
    c->plan = (struct plan){0};
    control_let_go(c);
    control_observe(c);
}

static void welcome(struct td_control *c)
{
    int fd = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (int i = 0; i < MOST_CLIENTS && td_socket_trusted(fd); i++) {
        struct client *client = &c->clients[i];
        if (client->fd >= 0)
            continue;
        *client = (struct client){.fd = fd, .file = -1};
        td_buffer_init(&client->in, LONGEST_REQUEST);
        td_buffer_init(&client->out, MOST_UNSENT);
        return;
    }
    close(fd);
}

/* Whole lines are answered; what is left waits for its end. */
static void answer_lines(struct td_control *c, struct client *client)
{
    size_t at = 0;
    for (;;) {
        const char *begin = client->in.data + at;
        const char *end = client->in.size > at ? memchr(begin, '\n', client->in.size - at) : NULL;
        if (!end)
            break;
        control_answer(c, client, begin, (size_t)(end - begin));
        at += (size_t)(end - begin) + 1;
    }
    client->in.size -= at;
    if (at > 0)
        memmove(client->in.data, client->in.data + at, client->in.size);
}

static void hear(struct td_control *c, struct client *client)
{
    char piece[4096];
    ssize_t count = recv(client->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
        client->doomed = true;
        return;
    }
    if (count < 0)
        return;
    td_buffer_append(&client->in, piece, (size_t)count);
    if (client->in.failed)
        client->doomed = true;
    else
        answer_lines(c, client);
}

static void speak(struct client *client)
{
    struct td_buffer *out = &client->out;
    while (client->sent < out->size) {
        /* The file goes with the first byte of its line. */
        bool before = client->file >= 0 && client->sent < client->file_at;
        size_t end = before ? client->file_at : out->size;
        bool carries = client->file >= 0 && client->sent == client->file_at;
        ssize_t count = td_socket_send(client->fd, out->data + client->sent, end - client->sent,
                                       carries ? client->file : -1);
        if (count < 0) {
            client->doomed = client->doomed || (errno != EAGAIN && errno != EINTR);
            return;
        }
        if (carries) {
            close(client->file);
            client->file = -1;
        }
        client->sent += (size_t)count;
    }
    td_buffer_clear(out);
    client->sent = 0;
}

/* --- the thread ----------------------------------------------------------------------------------------- */

/* Sleeps until something happens; `ready[0]` is the listener, [1] the wake-up, then the clients. */
static void await(struct td_control *c, struct pollfd ready[MOST_CLIENTS + 2])
{
    ready[0] = (struct pollfd){.fd = c->listener, .events = POLLIN};
    ready[1] = (struct pollfd){.fd = c->wake, .events = POLLIN};
    for (int i = 0; i < MOST_CLIENTS; i++) {
        const struct client *client = &c->clients[i];
        bool unsent = client->out.size > client->sent;
        ready[i + 2] = (struct pollfd){.fd = client->fd, .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
    }
    pthread_mutex_unlock(&c->lock);
    int count = poll(ready, MOST_CLIENTS + 2, -1);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; count < 0 && i < MOST_CLIENTS + 2; i++)
        ready[i].revents = 0;
    uint64_t drained;
    if (ready[1].revents)
        (void)!read(c->wake, &drained, sizeof drained);
}

static void *serve(void *context)
{
    struct td_control *c = context;
    struct pollfd ready[MOST_CLIENTS + 2];
    pthread_mutex_lock(&c->lock);
    while (!c->closing) {
        await(c, ready);
        for (int i = 0; i < MOST_CLIENTS && !c->closing; i++) {
            struct client *client = &c->clients[i];
            if (client->fd < 0)
                continue;
            if (ready[i + 2].fd == client->fd && ready[i + 2].revents)
                hear(c, client);
            speak(client);
            if (client->doomed || client->out.failed)
                drop(c, client);
        }
        if (ready[0].revents)
            welcome(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Signals are the program's business. */
static int start_thread(struct td_control *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&c->thread, NULL, serve, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* --- beginning and end ---------------------------------------------------------------------------------- */

static void release(struct td_control *c)
{
    if (c->listener >= 0)
        close(c->listener);
    if (c->wake >= 0)
        close(c->wake);
    breakpoints_clear(c);
    for (int i = 0; i < c->watch_count; i++) {
        td_watch_release(&c->watches[i]->watch);
        free(c->watches[i]);
    }
    control_forget(c);
    free(c->seen);
    td_earlier_runs_release(&c->earlier);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->dir);
    free(c);
}

static tdbg_status prepare(struct td_control *c, const char *dir, struct tdbg_error *error)
{
    c->dir = strdup(dir);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!c->dir)
        return td_fail_nomem(error);
    if (c->wake < 0)
        return td_fail_errno(error, "cannot make the control socket");
    TD_TRY(breakpoints_from_environment(c, error));
    return td_socket_listen(&c->listener, dir, TD_RUN_CONTROL, error);
}

tdbg_status td_control_open(struct td_control **out, tdbg_run *run, const char *dir, struct tdbg_error *error)
{
    struct td_control *c = calloc(1, sizeof *c);
    if (!c)
        return td_fail_nomem(error);
    *c = (struct td_control){.run = run, .process = getpid(), .listener = -1, .wake = -1};
    c->observer = (struct td_observer){.context = c, .tensor = control_on_tensor, .scope = control_on_scope};
    for (int i = 0; i < MOST_CLIENTS; i++)
        c->clients[i] = (struct client){.fd = -1, .file = -1};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    tdbg_status status = prepare(c, dir, error);
    if (status == TDBG_IO && c->breakpoint_count == 0 && c->plan.kind == PLAN_NONE) {
        /* A folder that can hold no socket is no reason not to record; who set breakpoints must know. */
        td_run_note(run, "control", error ? error->message : "no control socket");
        release(c);
        *out = NULL;
        return TDBG_OK;
    }
    if (status == TDBG_OK && (errno = start_thread(c)) != 0)
        status = td_fail_errno(error, "cannot start the control thread");
    if (status != TDBG_OK) {
        release(c);
        return status;
    }
    pthread_mutex_lock(&c->lock);
    control_observe(c);
    c->partial = c->partial && !c->observing; /* from the very beginning */
    pthread_mutex_unlock(&c->lock);
    *out = c;
    return TDBG_OK;
}

static void say_farewell(struct td_control *c)
{
    struct td_buffer line;
    struct td_json j;
    td_buffer_init(&line, 1 << 10);
    td_json_to_buffer(&j, &line);
    td_json_begin_object(&j);
    td_json_field_string(&j, "event", "end");
    td_json_end_object(&j);
    td_json_newline(&j);
    if (td_json_finish(&j))
        control_tell(c, &line);
    td_buffer_release(&line);
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (c->clients[i].fd >= 0)
            speak(&c->clients[i]);
}

void td_control_close(struct td_control **control)
{
    struct td_control *c = *control;
    *control = NULL;
    if (!c || getpid() != c->process) /* a forked child has neither the thread nor the run */
        return;
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    control_observe(c);
    wake_up(c);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);

    pthread_mutex_lock(&c->lock);
    say_farewell(c);
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (c->clients[i].fd >= 0)
            drop(c, &c->clients[i]);
    control_let_go(c);
    while (c->inside > 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);

    int folder = open(c->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        unlinkat(folder, TD_RUN_CONTROL, 0);
        close(folder);
    }
    release(c);
}
