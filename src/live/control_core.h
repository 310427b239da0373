/* control_core.h: what the files of the control share. Nobody else includes it.
 *
 *     threads of the model          control thread
 *     ───────────────────           ──────────────
 *     observe.c: looks at each      control.c: sockets, lines in and out
 *     tensor, holds the thread      requests.c: what is asked
 *               └────── struct td_control, under one lock ──────┘
 *
 * The lock is held for moments only: statistics, comparisons and copies of values are made without it. That
 * is safe because a held thread is let go by the control thread alone (or by td_control_close, once that
 * thread has ended): while it works for a client, the stopped tensor stays where it is.
 */
#ifndef TD_LIVE_CONTROL_CORE_H
#define TD_LIVE_CONTROL_CORE_H

#include "base/buffer.h"
#include "live/condition.h"
#include "live/control.h"
#include "live/earlier_run.h"

#include <jansson.h>
#include <pthread.h>
#include <sys/types.h>

enum { MOST_CLIENTS = 16, MOST_BREAKPOINTS = 256, MOST_WATCHES = 64, MOST_SEEN = 1 << 16 };

struct breakpoint {
    int number;
    char *pattern, *text; /* text: of the condition, "" for none */
    struct td_condition condition;
    struct td_earlier_run *earlier[TD_MOST_TESTS]; /* of its tests of that kind; borrowed */
    bool enabled, once;
    bool always; /* holds also while nobody is attached */
    uint64_t hits;
};

/* A watch, and its number as people count. */
struct watched {
    int number;
    struct td_watch watch;
};

/* A tensor of the step under way. */
struct seen {
    char *name;
    enum td_dtype dtype;
    struct td_shape shape;
    bool measured;
    struct tdbg_stats stats;
};

/* Why and where a thread is held; lives on its stack. */
struct stop {
    const struct td_moment *moment;
    const struct td_tensor *tensor; /* NULL: a scope begins */
    bool measured;
    struct tdbg_stats stats;
    int breakpoint; /* its number, or 0: a step */
    bool always;
    char reason[256];
};

enum plan_kind { PLAN_NONE, PLAN_STEP, PLAN_NEXT };

/* Where to stop next besides breakpoints. */
struct plan {
    enum plan_kind kind;
    bool any_thread, always;
    uint32_t thread;
    int depth; /* PLAN_NEXT: of the thread's scopes, at most */
};

struct client {
    int fd; /* -1: a free place */
    bool attached, doomed;
    struct td_buffer in, out;
    size_t sent; /* of `out` */
    int file;    /* goes with the next byte of `out` after `file_at`; -1: none */
    size_t file_at;
};

struct td_control {
    tdbg_run *run;
    char *dir;
    pid_t process;
    struct td_observer observer;
    int listener, wake;
    pthread_t thread;

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    bool closing, observing;
    int inside; /* threads of the model that are in the observer */
    int attached;
    struct client clients[MOST_CLIENTS];
    struct breakpoint *breakpoints[MOST_BREAKPOINTS];
    int breakpoint_count, breakpoint_number;
    struct watched *watches[MOST_WATCHES];
    int watch_count, watch_number;
    struct td_earlier_runs earlier;
    struct plan plan;
    struct stop *stop; /* of the thread that is held, or NULL */
    int64_t step;      /* of the last moment */
    bool stepped;      /* there was one */
    bool partial;      /* what came before it in its step was not observed */
    struct seen *seen;
    size_t seen_count, seen_room;
};

/* --- control.c ------------------------------------------------------------------------------------------ */

/* A line to everybody who is attached; under the lock. */
void control_tell(struct td_control *c, const struct td_buffer *line);

/* The observer is set while there is something to look for; under the lock. */
void control_observe(struct td_control *c);

/* --- observe.c ------------------------------------------------------------------------------------------ */

void control_on_tensor(void *context, const struct td_moment *moment, const struct td_tensor *tensor);
void control_on_scope(void *context, const struct td_moment *moment, bool begins);

/* Lets the held thread go; under the lock. */
void control_let_go(struct td_control *c);

void control_forget(struct td_control *c);

/* The members of an object that tell where the run stands; under the lock. */
void control_stop_json(struct td_json *j, const struct stop *stop);

/* --- breakpoints.c -------------------------------------------------------------------------------------- */

/* `when` may be NULL. Under the lock, as are the others. */
TD_CHECK tdbg_status breakpoint_add(struct td_control *c, const char *pattern, const char *when, bool once,
                                    bool always, int *number, struct tdbg_error *error);
void breakpoint_remove(struct td_control *c, int index);
void breakpoints_clear(struct td_control *c);
void breakpoint_json(struct td_json *j, const struct breakpoint *b);

/* TDBG_BREAK and TDBG_WAIT. */
TD_CHECK tdbg_status breakpoints_from_environment(struct td_control *c, struct tdbg_error *error);

/* --- requests.c ----------------------------------------------------------------------------------------- */

/* Answers one line of a client; under the lock, which it may leave for a while. */
void control_answer(struct td_control *c, struct client *client, const char *line, size_t length);

/* --- fetch.c -------------------------------------------------------------------------------------------- */

/* The tensor, or a slice of it, as a .safetensors file in memory. Without the lock. */
TD_CHECK tdbg_status control_copy(int *file, const char *name, const struct td_tensor *tensor,
                                  const char *slice, struct tdbg_error *error);

#endif
