/* arrival.h: how much of an upload is there, for the threads that read its file while it still comes.
 *
 * The connection writes and says how far it is; it never waits. A reader sleeps until a piece worth waking
 * for has come, or the end. A stop is an end at which the reader gives up.
 */
#ifndef TD_SERVE_ARRIVAL_H
#define TD_SERVE_ARRIVAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What must have come for a reader to go on. */
enum { TD_ARRIVAL_PIECE = 1 << 18 };

struct td_file_arrival {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t size; /* these three under the lock */
    bool ended, stopped;
};

void td_file_arrival_init(struct td_file_arrival *arrival, uint64_t size);
void td_file_arrival_release(struct td_file_arrival *arrival);

/* The file has so many bytes now. */
void td_file_arrival_more(struct td_file_arrival *arrival, uint64_t size);

/* Nothing more will come, or (stop) nothing more is wanted. */
void td_file_arrival_end(struct td_file_arrival *arrival, bool stop);

/* How many bytes there are: more than `known`, unless these are all or it was stopped. */
uint64_t td_file_arrival_wait(struct td_file_arrival *arrival, uint64_t known);

/* Whether these are all; `size`: how many there are by now. */
bool td_file_arrival_complete(struct td_file_arrival *arrival, uint64_t *size);

bool td_file_arrival_stopped(struct td_file_arrival *arrival);

#endif
