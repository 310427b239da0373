/* run_state.h: whether a run is still being recorded, as far as its facts and this machine tell. */
#ifndef TD_STORE_RUN_STATE_H
#define TD_STORE_RUN_STATE_H

#include "store/run_store.h"

/* "ended", "running", or "broken off": the process is gone and never said goodbye. Where it ran elsewhere and
 * nobody can know, it counts as running. */
const char *td_run_state(const struct td_run_facts *facts);

/* Another process of this machine has not ended it, and lives. */
bool td_run_is_others(const struct td_run_facts *facts);

#endif
