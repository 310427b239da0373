/* runs.h: the recorded runs that somebody looks at, each followed once however many look.
 *
 * One thread refreshes them twenty times a second while they are looked at; a run nobody looks at any more
 * is let go after a few seconds. A live run is talked to through its control socket: its state is asked for,
 * and breakpoints hold it only once somebody at the page took it in hand (attached). What a view waits for,
 * it waits for on this thread or on that of a route that may wait; streams only ever take what is there.
 */
#ifndef TD_SERVE_RUNS_H
#define TD_SERVE_RUNS_H

#include "base/buffer.h"
#include "live/control_client.h"

struct td_runs;
struct td_run_view;

struct td_streams;

/* `streams` are told when there is news; borrowed. */
TD_CHECK tdbg_status td_runs_open(struct td_runs **out, struct td_streams *streams, struct tdbg_error *error);

/* All views have been given back. */
void td_runs_close(struct td_runs **runs);

/* The run in a folder; read to its present end, so it may take a while. */
TD_CHECK tdbg_status td_runs_take(struct td_runs *runs, const char *dir, struct td_run_view **out,
                                  struct tdbg_error *error);
void td_runs_give_back(struct td_run_view **view);

/* What a client has seen of a run. All zero: nothing. */
struct td_run_seen {
    uint64_t epoch, serial, control;
};

/* Appends a document of what is newer than `seen`, if anything is. False: the run cannot be read now, as
 * while it is being replaced. Never waits when `patient` is false: somebody else at work means nothing new
 * for now. */
bool td_run_view_news(struct td_run_view *view, struct td_run_seen *seen, bool patient,
                      struct td_buffer *out);

/* Asks the live process, and takes it in hand first unless it is asked to let go. May wait. */
TD_CHECK tdbg_status td_run_view_ask(struct td_run_view *view, const char *verb,
                                     const struct td_parameter *parameters, struct tdbg_error *error);

#endif
