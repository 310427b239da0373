/* memory.h: what a program did with its memory, from the stream of its allocations and releases.
 *
 * Whoever has such a stream (a recorded run, the allocator shim, a snapshot of a GPU's allocator) feeds it
 * event by event; nothing is kept but the blocks that are live and a few figures per owner, so memory grows
 * with what the program holds and not with how long it ran. An owner is whatever a source can blame: a
 * scope, a call stack. At the end owners that mean the same to a reader are put together as groups.
 *
 *     events ──► td_memory ──► td_memory_report: peak, timeline, leaks, fragmentation, by group
 *
 * Three moments are known in full detail, block by block: the peak, the moment when the most free memory was
 * pinned while more was asked for (the worst), and the end. The first two move while events come in. So
 * nothing is copied when they do: each owner saves its figures when it first changes after the moment, and
 * blocks that die are kept as ghosts until the moment moves on.
 */
#ifndef TD_ANALYSE_MEMORY_H
#define TD_ANALYSE_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a block lies, as far as that tells which other memory it can pin. */
enum td_memory_pool {
    TD_POOL_UNKNOWN, /* gaps of up to 32 MiB between neighbours are holes */
    TD_POOL_HEAP,    /* one contiguous heap: every gap is a hole */
    TD_POOL_MAPPING  /* a mapping of its own, given back as a whole */
};

struct td_memory_event {
    int64_t time_ns;
    uint64_t address, bytes; /* bytes 0: given back */
    uint32_t owner;          /* small and dense; of a release it does not matter */
    enum td_memory_pool pool;
};

struct td_memory;

/* granule: memory comes from and goes back to the system in pieces of about this size; a power of two. */
TD_CHECK tdbg_status td_memory_open(struct td_memory **out, uint64_t granule, struct tdbg_error *error);
void td_memory_close(struct td_memory **memory);

/* Events come in the order they happened; a time that runs backwards counts as the one before. */
TD_CHECK tdbg_status td_memory_add(struct td_memory *m, const struct td_memory_event *event,
                                   struct tdbg_error *error);

/* Memory that the allocator took from the device, in total from now on. Sources that know tell. */
void td_memory_reserve(struct td_memory *m, int64_t time_ns, uint64_t bytes);

/* Keeps the totals of now under a name, and what each owner holds for the first two names in `wanted` (see
 * td_memory_want), else for the first and the last. */
TD_CHECK tdbg_status td_memory_snapshot(struct td_memory *m, const char *name, int64_t time_ns,
                                        struct tdbg_error *error);

/* The two snapshots to compare; "peak" and "end" exist always. Borrowed. */
void td_memory_want(struct td_memory *m, const char *from, const char *to);

/* --- The report ----------------------------------------------------------------------------------------- */

enum td_memory_moment { TD_MOMENT_PEAK, TD_MOMENT_WORST, TD_MOMENT_END, TD_MOMENTS };

struct td_memory_amount {
    uint64_t bytes, blocks;
};

/* What is held at one moment, and the free memory between the blocks that they keep from being given back. */
struct td_memory_view {
    int64_t time_ns;
    struct td_memory_amount live;
    uint64_t reserved; /* 0: not known */
    uint64_t span;     /* from the first block to the last of each stretch */
    uint64_t pinned;   /* pages of 4 KiB with a live byte */
    uint64_t free;     /* in holes: gaps wider than an allocator's own overhead */
    uint64_t holes, largest;
    bool fragmented; /* worth telling: see memory_view.c */
};

enum { TD_MEMORY_CURVE = 32 };

/* Owners that mean the same to a reader, taken together. */
struct td_memory_group {
    struct td_memory_amount at[TD_MOMENTS]; /* held at the moment; at the end: never given back */
    uint64_t pins[TD_MOMENTS];              /* bytes of holes next to its blocks */
    struct td_memory_amount from, to;       /* at the two snapshots */
    struct td_memory_amount asked;          /* over the whole run */
    int64_t first_ns, last_ns;              /* the first and the last allocation */
    uint32_t owner;                         /* the one that held most, to show as the example */
    bool grows;                             /* what it holds at the end was still growing */
    double rate;                            /* then: bytes per second */
    uint64_t curve[TD_MEMORY_CURVE];        /* most held, in equal parts of the run */
};

struct td_memory_point {
    int64_t time_ns; /* where the part of the run begins */
    uint64_t most;   /* held within it */
};

struct td_memory_mark {
    char name[64];
    int64_t time_ns;
    struct td_memory_amount live;
};

struct td_memory_report {
    int64_t begin_ns, end_ns;
    uint64_t allocations, releases, bytes; /* bytes: asked for over the whole run */
    uint64_t unknown;                      /* releases of what was never seen allocated */
    struct td_memory_view views[TD_MOMENTS];
    struct td_memory_group *groups;
    size_t group_count;
    struct td_memory_point *points;
    size_t point_count;
    struct td_memory_mark *marks;
    size_t mark_count;
    char from[64], to[64]; /* the snapshots compared; "" when there were none */
    size_t leaks;          /* groups that grow */
};

/* group_of[owner] < group_count for every owner seen; NULL: each owner is its own group. The run ended at
 * end_ns. Leaves the collector as it is: more may be added, and reported again. */
TD_CHECK tdbg_status td_memory_report_make(struct td_memory *m, const uint32_t *group_of, size_t group_count,
                                           int64_t end_ns, struct td_memory_report *out,
                                           struct tdbg_error *error);
void td_memory_report_release(struct td_memory_report *r);

/* Owners seen so far: one more than the largest. */
size_t td_memory_owners(const struct td_memory *m);

/* What an owner held at the peak or holds now, whichever is more. */
uint64_t td_memory_weight(const struct td_memory *m, size_t owner);

#endif
