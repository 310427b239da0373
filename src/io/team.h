/* team.h: stretches of a deflate stream (stretch.h), decoded by a thread of its own. */
#ifndef TD_IO_TEAM_H
#define TD_IO_TEAM_H

#include "io/stretch.h"

struct td_team;

struct td_team *td_team_open(void); /* NULL for no memory */
void td_team_close(struct td_team **team);

/* As td_stretches_decode. The data is borrowed until it is back. False: it cannot start. */
bool td_team_send(struct td_team *team, const uint8_t *data, size_t size, const uint64_t *starts,
                  unsigned count);

/* Whether all that it makes is made. */
bool td_team_is_back(const struct td_team *team);

/* Waits for it. */
struct td_stretches *td_team_return(struct td_team *team);

/* Calls it back at once; what it made is lost. Fine when it is not away. */
void td_team_recall(struct td_team *team);

#endif
