/* match_program.c: see match_program.h.
 *
 * One loop writes the question and reads the answer as the program is ready for either, so that neither side
 * can wait for the other. The program gets a process group of its own: when it is late, whatever it started
 * is late with it. It is always waited for. A program that does not want to read the question is its own
 * affair: SIGPIPE is blocked in this thread while we write, and taken back.
 */
#include "session/match_program.h"

#include "base/buffer.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ANSWER = 64 << 20, TICK_MS = 20 };

struct child {
    pid_t pid;
    int in, out; /* our ends; -1 when closed */
    bool gone;
    int status;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_side(struct td_json *j, const char *key, const struct td_side *side)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (size_t i = 0; i < side->count; i++) {
        const struct td_item *item = &side->items[i];
        const struct td_tensor *t = item->parts[0];
        td_json_begin_object(j);
        td_json_field_string(j, "name", item->name);
        td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
        td_json_key(j, "shape");
        td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
        if (item->part_count > 1)
            td_json_field_int(j, "parts", item->part_count);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

static tdbg_status write_question(struct td_buffer *out, const struct td_side *a, const struct td_side *b,
                                  struct tdbg_error *error)
{
    struct td_json *j = malloc(sizeof *j);
    if (!j)
        return td_fail_nomem(error);
    td_json_to_buffer(j, out);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    write_side(j, "a", a);
    write_side(j, "b", b);
    td_json_end_object(j);
    td_json_newline(j);
    bool written = td_json_finish(j);
    free(j);
    return written ? TDBG_OK : td_fail_nomem(error);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int spawn_shell(struct child *child, const char *command, int in, int out, const sigset_t *mask)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    int code = posix_spawn(&child->pid, "/bin/sh", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static tdbg_status start(struct child *child, const char *command, const sigset_t *mask,
                         struct tdbg_error *error)
{
    int in[2], out[2];
    *child = (struct child){.in = -1, .out = -1};
    if (pipe2(in, O_CLOEXEC) != 0)
        return td_fail_errno(error, "cannot make a pipe");
    if (pipe2(out, O_CLOEXEC) != 0) {
        tdbg_status status = td_fail_errno(error, "cannot make a pipe");
        close(in[0]);
        close(in[1]);
        return status;
    }
    int code = spawn_shell(child, command, in[0], out[1], mask);
    close(in[0]);
    close(out[1]);
    child->in = in[1];
    child->out = out[0];
    if (code != 0) {
        close_end(&child->in);
        close_end(&child->out);
        errno = code;
        return td_fail_errno(error, "cannot start");
    }
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    return TDBG_OK;
}

static void write_some(struct child *child, const struct td_buffer *question, size_t *sent)
{
    ssize_t n = write(child->in, td_buffer_text(question) + *sent, question->size - *sent);
    if (n > 0)
        *sent += (size_t)n;
    bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
    if (broken || *sent == question->size)
        close_end(&child->in);
}

/* All that is there; closes our end at the end of the answer. */
static void read_some(struct child *child, struct td_buffer *answer)
{
    char chunk[65536];
    while (child->out >= 0 && !answer->failed) {
        ssize_t n = read(child->out, chunk, sizeof chunk);
        if (n > 0)
            td_buffer_append(answer, chunk, (size_t)n);
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && errno == EAGAIN)
            return;
        else
            close_end(&child->out);
    }
}

static void look_whether_gone(struct child *child)
{
    if (!child->gone && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
        child->gone = true;
}

/* Until the program has ended and what it wrote is read. */
static tdbg_status converse(struct child *child, const struct td_buffer *question, struct td_buffer *answer,
                            double seconds, struct tdbg_error *error)
{
    double deadline = now() + seconds;
    size_t sent = 0;
    for (;;) {
        look_whether_gone(child);
        if (child->out >= 0)
            read_some(child, answer);
        if (answer->failed)
            return td_fail(error, TDBG_LIMIT, "an answer of more than %d MiB", MAX_ANSWER >> 20);
        if (child->gone)
            return TDBG_OK;
        if (now() > deadline)
            return td_fail(error, TDBG_LIMIT, "no answer after %g seconds", seconds);
        struct pollfd ends[] = {{.fd = child->in, .events = POLLOUT}, {.fd = child->out, .events = POLLIN}};
        if (poll(ends, 2, TICK_MS) > 0 && ends[0].revents)
            write_some(child, question, &sent);
    }
}

static tdbg_status judge(const struct child *child, struct tdbg_error *error)
{
    if (WIFSIGNALED(child->status))
        return td_fail(error, TDBG_IO, "killed by signal %d", WTERMSIG(child->status));
    if (WEXITSTATUS(child->status) != 0)
        return td_fail(error, TDBG_IO, "exit status %d", WEXITSTATUS(child->status));
    return TDBG_OK;
}

static void finish(struct child *child)
{
    close_end(&child->in);
    close_end(&child->out);
    if (child->gone)
        return;
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
        continue;
}

/* Runs the program with SIGPIPE held back from this thread. */
static tdbg_status run(const char *command, const struct td_buffer *question, struct td_buffer *answer,
                       double seconds, struct tdbg_error *error)
{
    sigset_t pipe_signal, before, pending;
    struct child child;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    bool already = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    tdbg_status status = start(&child, command, &before, error);
    if (status == TDBG_OK) {
        status = converse(&child, question, answer, seconds, error);
        finish(&child);
        if (status == TDBG_OK)
            status = judge(&child, error);
    }
    const struct timespec at_once = {0};
    if (!already)
        sigtimedwait(&pipe_signal, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

tdbg_status td_match_program(struct td_pairs *out, const char *command, const struct td_side *a,
                             const struct td_side *b, double seconds, struct tdbg_error *error)
{
    struct td_buffer question, answer;
    td_buffer_init(&question, TD_MAX_METADATA);
    td_buffer_init(&answer, MAX_ANSWER);
    tdbg_status status = write_question(&question, a, b, error);
    if (status == TDBG_OK)
        status = run(command, &question, &answer, seconds > 0 ? seconds : TD_MATCH_PROGRAM_SECONDS, error);
    if (status == TDBG_OK)
        status = td_pairs_parse(out, "its answer", td_buffer_text(&answer), answer.size, true, error);
    td_buffer_release(&answer);
    td_buffer_release(&question);
    if (status != TDBG_OK && error) {
        td_error_prefix(error, command);
        td_error_prefix(error, "matching program");
    }
    return status;
}

tdbg_status td_match_chain_program(struct td_pairs *out, const char *chain, const struct td_side *a,
                                   const struct td_side *b, struct tdbg_error *error)
{
    struct td_match_entry entry;
    while (chain && td_match_chain_next(&chain, &entry)) {
        if (entry.name_length != strlen("program") ||
            strncmp(entry.name, "program", entry.name_length) != 0 || entry.argument_length == 0)
            continue;
        char *command = strndup(entry.argument, entry.argument_length);
        if (!command)
            return td_fail_nomem(error);
        tdbg_status status = td_match_program(out, command, a, b, 0, error);
        free(command);
        return status;
    }
    *out = (struct td_pairs){0};
    return TDBG_OK;
}
