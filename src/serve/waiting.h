/* waiting.h: threads for routes that wait: for a disk, for a comparison.
 *
 * A thread of the HTTP library serves many connections in turn; a route that waits there holds all of them
 * up. Such a request is taken from the library (its connection suspended), run on a thread of its own, and
 * given back. Threads live as long as their request; there are never more than a cap.
 */
#ifndef TD_SERVE_WAITING_H
#define TD_SERVE_WAITING_H

#include <pthread.h>
#include <stdbool.h>

struct td_waiting {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int running;
    bool ended;
};

void td_waiting_init(struct td_waiting *w);

/* Waits until all have ended; from here on none begins. */
void td_waiting_end(struct td_waiting *w);

void td_waiting_release(struct td_waiting *w);

/* Calls run(context) on a thread of its own. False: there are too many, there is no memory, or it
 * has ended. */
bool td_waiting_start(struct td_waiting *w, void (*run)(void *context), void *context);

#endif
