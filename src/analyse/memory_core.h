/* memory_core.h: the collector from the inside; private to src/analyse/memory*.c.
 *
 * Live blocks are in an open hash by address. Beside it a second one counts blocks per granule (a piece in
 * which memory goes back to the system), but only those at the ends of blocks: granules inside a block have
 * no other owner and are just a number. So an event costs a few probes, whatever the size of the block.
 */
#ifndef TD_ANALYSE_MEMORY_CORE_H
#define TD_ANALYSE_MEMORY_CORE_H

#include "analyse/memory.h"

enum { SERIES_SLOTS = 32, GROWTH_SLOTS = 32, TIMELINE_SLOTS = 256, MOVING_MOMENTS = 2, MAX_MARKS = 4096 };

struct td_block {
    uint64_t address, bytes;
    uint64_t number; /* of the event that made it */
    uint32_t owner;
    enum td_memory_pool pool;
};

struct td_block_map {
    struct td_block *slots; /* bytes 0: empty */
    size_t capacity, count; /* capacity: a power of two, or 0 */
};

/* NULL when there is no memory. The address must not be there yet. */
struct td_block *td_block_insert(struct td_block_map *map, uint64_t address);
struct td_block *td_block_find(const struct td_block_map *map, uint64_t address);
void td_block_remove(struct td_block_map *map, struct td_block *block);

struct td_granule {
    uint64_t key, blocks; /* key: address / granule; blocks 0: empty */
};

struct td_granule_map {
    struct td_granule *slots;
    size_t capacity, count;
};

/* One block more or less at the granule; false when there is no memory. */
bool td_granule_add(struct td_granule_map *map, uint64_t key);
void td_granule_drop(struct td_granule_map *map, uint64_t key);

/* The most of a level in each of some equal parts of a clock; the parts double in length when it runs on. The
 * clock is time, or the number of allocations: a program that waits does not leak less. */
struct td_series {
    int64_t start;
    int shift, used; /* a part is 2^shift ticks; used: parts so far, 0 before the first */
};

/* The level was `before` since the last call and is `after` from `at` on. */
void td_series_put(struct td_series *s, uint64_t *slots, int capacity, int64_t at, uint64_t before,
                   uint64_t after);

/* The level around `at`; after the last call it is `last`. */
uint64_t td_series_level(const struct td_series *s, const uint64_t *slots, int64_t at, uint64_t last);

/* A moment that moves while events come in. */
struct td_moment_state {
    uint64_t number; /* of the event that made it */
    uint64_t epoch;  /* how often it has moved */
    uint64_t score;  /* what it is the largest of */
    int64_t time_ns;
    struct td_memory_amount live;
    uint64_t reserved;
    struct td_block *ghosts; /* alive at the moment, dead now */
    size_t ghost_count, ghost_capacity;
};

struct td_owner {
    struct td_memory_amount live, asked;
    struct {
        struct td_memory_amount live;
        uint64_t epoch; /* of the moment this was saved for */
    } saved[MOVING_MOMENTS];
    int64_t first_ns, last_ns;
    int64_t first; /* allocation of the program, by its number */
    struct td_series by_time, by_number;
    uint64_t times[SERIES_SLOTS], numbers[GROWTH_SLOTS];
};

/* What each owner held at a named snapshot. */
struct td_holdings {
    bool taken;
    char name[64];
    struct td_memory_amount *amounts;
    size_t count;
};

struct td_memory {
    uint64_t granule;
    int64_t begin_ns, now_ns;
    uint64_t events, allocations, releases, unknown;
    struct td_memory_amount live, asked;
    uint64_t reserved;

    struct td_block_map blocks;
    struct td_granule_map granules;
    uint64_t inner_bytes;  /* granules inside one block */
    uint64_t pooled_bytes; /* live bytes that are no mapping of their own */
    struct td_moment_state moments[MOVING_MOMENTS];

    struct td_owner *owners;
    size_t owner_count, owner_capacity;

    struct td_series timeline;
    uint64_t most[TIMELINE_SLOTS];

    struct td_memory_mark *marks;
    size_t mark_count, mark_capacity;
    const char *want[2]; /* NULL: the first and the last */
    int64_t want_ns[2];  /* a snapshot that is named by its time; -1: none, or taken */
    struct td_holdings holdings[2];
};

/* Snapshots that are named by a time, once it has come: what is live now was live then. */
TD_CHECK tdbg_status td_memory_take_wanted(struct td_memory *m, int64_t until_ns, struct tdbg_error *error);

/* What the owner held at a moving moment. */
struct td_memory_amount td_owner_at(const struct td_owner *o, const struct td_moment_state *moment,
                                    int index);

/* Fills the view's span, pages and holes; pins[owner] grows by the holes next to its blocks. */
TD_CHECK tdbg_status td_memory_view_make(const struct td_memory *m, enum td_memory_moment moment,
                                         struct td_memory_view *view, uint64_t *pins,
                                         struct tdbg_error *error);

#endif
