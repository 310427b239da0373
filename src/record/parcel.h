/* parcel.h: a tensor on its way from the thread that recorded it to the writer.
 *
 * The values are copied into memory that goes back and forth: the recording thread (the lane) takes an idle
 * parcel, fills it and hands it over in an event; the writer gives it back on a list that only these two
 * touch. Warm memory is what makes a copy cheap. All parcels of a run together stay within a budget.
 */
#ifndef TD_RECORD_PARCEL_H
#define TD_RECORD_PARCEL_H

#include "record/capture.h"
#include "tensor/view.h"

#include <stdatomic.h>

struct td_parcel {
    struct td_parcel *next;
    size_t capacity; /* of data */
    int64_t id;      /* in the order of execution */
    struct td_node *scope;
    enum td_keep keep;
    enum td_dtype dtype;
    struct td_shape shape, kept; /* as the program had it; of the values in data */
    uint64_t bytes;              /* of data; 0 when the statistics are all there is */
    bool measured;               /* stats are filled in */
    struct tdbg_stats stats;
    unsigned char *data; /* aligned to a cache line; NULL where there was no need of it */
};

/* Bytes of all parcels of a run. */
struct td_budget {
    _Atomic uint64_t used;
    uint64_t limit;
};

/* Where a thread keeps its parcels. */
struct td_parcels {
    struct td_budget *budget;             /* borrowed */
    struct td_parcel *idle;               /* the thread's; the last one used first */
    _Atomic(struct td_parcel *) returned; /* by the writer */
};

void td_parcels_release(struct td_parcels *p);

/* One with room for `bytes` (0: without data). LIMIT: the budget is used up, and there will be room once
 * others come back. NOMEM: there will not. A tensor larger than the whole budget gets its parcel once no
 * other is left. */
TD_CHECK tdbg_status td_parcel_take(struct td_parcel **out, struct td_parcels *p, uint64_t bytes);

/* From the writer's thread. */
void td_parcel_return(struct td_parcels *p, struct td_parcel *parcel);

#endif
