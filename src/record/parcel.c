/* parcel.c: see parcel.h. */
#include "record/parcel.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, SMALL = 4096 };

static uint64_t cost(const struct td_parcel *parcel)
{
    return sizeof *parcel + parcel->capacity;
}

static void discard(struct td_parcels *p, struct td_parcel *parcel)
{
    atomic_fetch_sub(&p->budget->used, cost(parcel));
    free(parcel->data);
    free(parcel);
}

static void collect(struct td_parcels *p)
{
    struct td_parcel *back = atomic_exchange_explicit(&p->returned, NULL, memory_order_acquire);
    while (back) {
        struct td_parcel *next = back->next;
        back->next = p->idle;
        p->idle = back;
        back = next;
    }
}

static void discard_idle(struct td_parcels *p)
{
    while (p->idle) {
        struct td_parcel *next = p->idle->next;
        discard(p, p->idle);
        p->idle = next;
    }
}

void td_parcels_release(struct td_parcels *p)
{
    collect(p);
    discard_idle(p);
}

static tdbg_status make(struct td_parcel **out, struct td_parcels *p, uint64_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return TDBG_NOMEM;
    size_t capacity = bytes ? ((bytes > SMALL ? bytes : SMALL) + LINE - 1) / LINE * LINE : 0;
    uint64_t price = sizeof(struct td_parcel) + capacity;
    uint64_t used = atomic_fetch_add(&p->budget->used, price);
    if (used && used + price > p->budget->limit) {
        atomic_fetch_sub(&p->budget->used, price);
        return TDBG_LIMIT;
    }
    struct td_parcel *parcel = calloc(1, sizeof *parcel);
    void *data = parcel && capacity ? aligned_alloc(LINE, capacity) : NULL;
    if (!parcel || (capacity && !data)) {
        atomic_fetch_sub(&p->budget->used, price);
        free(parcel);
        return TDBG_NOMEM;
    }
    parcel->capacity = capacity;
    parcel->data = data;
    *out = parcel;
    return TDBG_OK;
}

/* An idle one that is large enough and not wastefully large. */
static struct td_parcel *fitting(struct td_parcels *p, uint64_t bytes)
{
    for (struct td_parcel **at = &p->idle; *at; at = &(*at)->next)
        if ((*at)->capacity >= bytes && (*at)->capacity / 2 <= bytes + SMALL) {
            struct td_parcel *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

tdbg_status td_parcel_take(struct td_parcel **out, struct td_parcels *p, uint64_t bytes)
{
    struct td_parcel *parcel = fitting(p, bytes);
    if (!parcel && atomic_load_explicit(&p->returned, memory_order_relaxed)) {
        collect(p);
        parcel = fitting(p, bytes);
    }
    if (parcel) {
        *out = parcel;
        return TDBG_OK;
    }
    tdbg_status status = make(out, p, bytes);
    if (status != TDBG_OK && p->idle) { /* others of mine may be too small for this one */
        discard_idle(p);
        status = make(out, p, bytes);
    }
    return status;
}

void td_parcel_return(struct td_parcels *p, struct td_parcel *parcel)
{
    struct td_parcel *top = atomic_load_explicit(&p->returned, memory_order_relaxed);
    do
        parcel->next = top;
    while (!atomic_compare_exchange_weak_explicit(&p->returned, &top, parcel, memory_order_release,
                                                  memory_order_relaxed));
}
