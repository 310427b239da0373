/* observer.h: somebody who looks over the shoulder of a recorded program: breakpoints.
 *
 * While one is set, the recording threads call it at every scope and tensor, before anything is kept. It runs
 * in the program's own thread and may hold it as long as it likes: that is how a run stops. While none is
 * set, recording costs one more load.
 */
#ifndef TD_RECORD_OBSERVER_H
#define TD_RECORD_OBSERVER_H

#include "tdbg.h"
#include "tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

struct td_node;

struct td_moment {
    int64_t step; /* its number */
    uint32_t thread;
    const char *name;            /* of the tensor or the scope */
    int depth;                   /* how many scopes of the thread are open, this one not counted */
    const struct td_node *scope; /* the innermost, and through its parents the others; NULL: none */
};

struct td_observer {
    void *context;
    void (*tensor)(void *context, const struct td_moment *moment, const struct td_tensor *tensor);
    void (*scope)(void *context, const struct td_moment *moment, bool begins);
};

/* Borrowed by the run; NULL takes it away. Afterwards a call that began before may still be under way: an
 * observer outlives its run. */
void td_run_observe(tdbg_run *run, const struct td_observer *observer);

/* Other rules from now on; the text of struct tdbg_run_options. */
TD_CHECK tdbg_status td_run_set_capture(tdbg_run *run, const char *rules, struct tdbg_error *error);

/* Into the index, with the time and step of now. */
void td_run_note(tdbg_run *run, const char *kind, const char *text);

#endif
