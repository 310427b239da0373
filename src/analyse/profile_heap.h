/* profile_heap.h: which scope holds how much memory, as allocations and releases go by.
 *
 * Blocks of one step are gathered and put in the order of time, as threads deliver them late. What is held is
 * a table by address with a cap; a program that holds more blocks than that is told of without memory.
 */
#ifndef TD_ANALYSE_PROFILE_HEAP_H
#define TD_ANALYSE_PROFILE_HEAP_H

#include "analyse/profile.h"
#include "store/run_store.h"

struct td_profile_heap {
    struct td_heap_event *events; /* of the step under way */
    size_t event_count, event_room;
    int64_t step;
    struct td_heap_block *blocks; /* open addressing by address; 0: free */
    size_t block_count, block_room;
    bool lost; /* too many blocks: what is held is not known */

    /* Told what is held in all after each event, in the order of time; may be NULL. */
    void (*watch)(void *context, int64_t time_ns, int64_t held);
    void *context;
};

TD_CHECK tdbg_status td_profile_heap_add(struct td_profile_heap *heap, struct td_profile *profile,
                                         int64_t step, const struct td_run_block *block, uint32_t node,
                                         struct tdbg_error *error);

/* What is gathered counts now. */
TD_CHECK tdbg_status td_profile_heap_flush(struct td_profile_heap *heap, struct td_profile *profile,
                                           struct tdbg_error *error);
void td_profile_heap_release(struct td_profile_heap *heap);

#endif
