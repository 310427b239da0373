/* team.c: see team.h. What the thread makes is its own until it is joined. */
#include "io/team.h"

#include <pthread.h>
#include <stdlib.h>

struct td_team {
    pthread_t thread;
    bool away; /* there is a thread to be joined */
    atomic_bool stop, back;
    const uint8_t *data;
    size_t size;
    uint64_t starts[TD_STRETCHES + 1];
    unsigned count;
    struct td_stretches *stretches;
};

static void *decode(void *context)
{
    struct td_team *team = context;
    td_stretches_decode(team->stretches, team->data, team->size, team->starts, team->count, &team->stop);
    atomic_store(&team->back, true);
    return NULL;
}

struct td_team *td_team_open(void)
{
    struct td_team *team = calloc(1, sizeof *team);
    if (team && !(team->stretches = td_stretches_open())) {
        free(team);
        return NULL;
    }
    return team;
}

void td_team_close(struct td_team **slot)
{
    struct td_team *team = *slot;
    if (!team)
        return;
    td_team_recall(team);
    td_stretches_close(&team->stretches);
    free(team);
    *slot = NULL;
}

bool td_team_send(struct td_team *team, const uint8_t *data, size_t size, const uint64_t *starts,
                  unsigned count)
{
    team->data = data;
    team->size = size;
    team->count = count;
    memcpy(team->starts, starts, (count + 1) * sizeof *starts);
    atomic_store(&team->stop, false);
    atomic_store(&team->back, false);
    team->away = pthread_create(&team->thread, NULL, decode, team) == 0;
    return team->away;
}

bool td_team_is_back(const struct td_team *team)
{
    return atomic_load(&team->back);
}

struct td_stretches *td_team_return(struct td_team *team)
{
    if (team->away)
        pthread_join(team->thread, NULL);
    team->away = false;
    return team->stretches;
}

void td_team_recall(struct td_team *team)
{
    atomic_store(&team->stop, true);
    (void)td_team_return(team);
}
