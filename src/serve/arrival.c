/* arrival.c: see arrival.h. */
#include "serve/arrival.h"

void td_file_arrival_init(struct td_file_arrival *arrival, uint64_t size)
{
    *arrival = (struct td_file_arrival){.size = size};
    pthread_mutex_init(&arrival->lock, NULL);
    pthread_cond_init(&arrival->changed, NULL);
}

void td_file_arrival_release(struct td_file_arrival *arrival)
{
    pthread_cond_destroy(&arrival->changed);
    pthread_mutex_destroy(&arrival->lock);
}

void td_file_arrival_more(struct td_file_arrival *arrival, uint64_t size)
{
    pthread_mutex_lock(&arrival->lock);
    bool enough = size / TD_ARRIVAL_PIECE > arrival->size / TD_ARRIVAL_PIECE;
    arrival->size = size;
    pthread_mutex_unlock(&arrival->lock);
    if (enough)
        pthread_cond_signal(&arrival->changed);
}

void td_file_arrival_end(struct td_file_arrival *arrival, bool stop)
{
    pthread_mutex_lock(&arrival->lock);
    arrival->ended = true;
    arrival->stopped = arrival->stopped || stop;
    pthread_cond_signal(&arrival->changed);
    pthread_mutex_unlock(&arrival->lock);
}

uint64_t td_file_arrival_wait(struct td_file_arrival *arrival, uint64_t known)
{
    pthread_mutex_lock(&arrival->lock);
    while (!arrival->ended && arrival->size < known + TD_ARRIVAL_PIECE)
        pthread_cond_wait(&arrival->changed, &arrival->lock);
    uint64_t size = arrival->stopped ? known : arrival->size;
    pthread_mutex_unlock(&arrival->lock);
    return size;
}

bool td_file_arrival_complete(struct td_file_arrival *arrival, uint64_t *size)
{
    pthread_mutex_lock(&arrival->lock);
    bool complete = arrival->ended;
    *size = arrival->size;
    pthread_mutex_unlock(&arrival->lock);
    return complete;
}

bool td_file_arrival_stopped(struct td_file_arrival *arrival)
{
    pthread_mutex_lock(&arrival->lock);
    bool stopped = arrival->stopped;
    pthread_mutex_unlock(&arrival->lock);
    return stopped;
}
