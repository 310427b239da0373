/* lane.h: what one thread recorded, on its way to the writer.
 *
 * A ring of events with one thread at each end: the program's puts in, the writer takes out, and neither
 * locks. A full ring makes the program wait: nothing is dropped. A thread finds its lane through a key of the
 * run; the lane of a thread that ended serves the next one that begins. Nobody tells when a thread ends: what
 * runs then may run after the run was closed and the lane is gone. Who needs a lane asks the system.
 *
 *                head                 tail
 *     program ──► │ event │ event │ event │ ──► writer
 */
#ifndef TD_RECORD_LANE_H
#define TD_RECORD_LANE_H

#include "record/last.h"
#include "record/parcel.h"

#include <stdatomic.h>
#include <sys/types.h>

enum { TD_LANE_EVENTS = 1 << 14, TD_MAX_SCOPE_DEPTH = 256 };

enum td_event_kind { TD_EVENT_SPAN, TD_EVENT_TENSOR, TD_EVENT_SCALAR, TD_EVENT_BLOCK, TD_EVENT_SNAPSHOT };

struct td_event {
    enum td_event_kind kind;
    uint32_t ordinal;     /* of the step it belongs to */
    struct td_node *node; /* the scope (span, block), or the name of what is recorded */
    int64_t time_ns;      /* span: of its end */
    union {
        struct {
            int64_t begin_ns;
            double flops, bytes, tokens;
        } span;
        struct {
            int64_t step;
            double value;
        } scalar;
        struct {
            uint64_t address, bytes;
        } block;
        struct td_parcel *parcel;
    };
};

struct td_open_scope {
    struct td_node *node;
    int64_t begin_ns;
    double flops, bytes, tokens;
};

struct td_lane {
    struct td_lane *next; /* of the run's list, which only grows */
    uint32_t thread;      /* its number in the run */
    pid_t owner;          /* the thread that has it, or had it when it ended; under the lock of the run */

    /* the program's end */
    _Alignas(64) _Atomic uint64_t head;
    uint64_t tail_seen; /* how far the writer was when last looked */
    int depth;          /* may exceed the stack: what lies deeper is not recorded */
    struct td_open_scope stack[TD_MAX_SCOPE_DEPTH];
    struct td_tree names;
    struct td_node scopes; /* the parent of the outermost ones, so that no scope is taken for a name */
    struct td_parcels parcels;
    struct td_last last; /* of those handed over by tdbg_output */

    /* the writer's end */
    _Alignas(64) _Atomic uint64_t tail;

    struct td_event ring[TD_LANE_EVENTS];
};

struct td_lane *td_lane_new(uint32_t thread, struct td_budget *budget);
void td_lane_free(struct td_lane *lane);

static inline uint64_t td_lane_waiting(const struct td_lane *lane)
{
    return atomic_load_explicit(&lane->head, memory_order_acquire) -
           atomic_load_explicit(&lane->tail, memory_order_relaxed);
}

/* The event that would come next, to be filled; NULL when the ring is full. Then td_lane_push. */
static inline struct td_event *td_lane_slot(struct td_lane *lane)
{
    uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
    if (head - lane->tail_seen == TD_LANE_EVENTS) {
        lane->tail_seen = atomic_load_explicit(&lane->tail, memory_order_acquire);
        if (head - lane->tail_seen == TD_LANE_EVENTS)
            return NULL;
    }
    return &lane->ring[head % TD_LANE_EVENTS];
}

static inline void td_lane_push(struct td_lane *lane)
{
    uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
    atomic_store_explicit(&lane->head, head + 1, memory_order_release);
}

/* The writer's: the oldest event of a step up to `ordinal`, or NULL; td_lane_drop when done with it. */
static inline struct td_event *td_lane_peek(struct td_lane *lane, uint32_t ordinal)
{
    if (!td_lane_waiting(lane))
        return NULL;
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    struct td_event *event = &lane->ring[tail % TD_LANE_EVENTS];
    return event->ordinal <= ordinal ? event : NULL;
}

static inline void td_lane_drop(struct td_lane *lane)
{
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    atomic_store_explicit(&lane->tail, tail + 1, memory_order_release);
}

#endif
