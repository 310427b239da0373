/* lane.c: see lane.h. */
#include "record/lane.h"

#include <stdlib.h>
#include <string.h>

struct td_lane *td_lane_new(uint32_t thread, struct td_budget *budget)
{
    struct td_lane *lane = aligned_alloc(_Alignof(struct td_lane), sizeof *lane);
    if (!lane)
        return NULL;
    memset(lane, 0, offsetof(struct td_lane, ring)); /* the ring is touched as it is used */
    lane->thread = thread;
    td_tree_init(&lane->names);
    lane->parcels.budget = budget;
    return lane;
}

void td_lane_free(struct td_lane *lane)
{
    td_parcels_release(&lane->parcels);
    td_tree_release(&lane->names);
    free(lane);
}
