/* profile_run.h: a recorded run as a profile. Reads the index only, in one pass over its calls. */
#ifndef TD_ANALYSE_PROFILE_RUN_H
#define TD_ANALYSE_PROFILE_RUN_H

#include "analyse/profile.h"
#include "base/job.h"
#include "store/run_store.h"

/* Fills a profile that was only initialised; the caller finishes it. A run that is still under way is seen as
 * it is at this moment. */
TD_CHECK tdbg_status td_run_profile(struct td_profile *profile, struct td_run_store *store,
                                    struct td_job *job, struct tdbg_error *error);

#endif
