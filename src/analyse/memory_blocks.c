/* memory_blocks.c: the two hashes and the series of the collector (see memory_core.h).
 *
 * Both hashes probe linearly and close the gap when an entry goes, so that there are no tombstones and a
 * program that allocates and frees for hours leaves no trace.
 */
#include "analyse/memory_core.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static size_t hash(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(key ^ key >> 29);
}

/* --- Blocks --------------------------------------------------------------------------------------------- */

static struct td_block *block_slot(const struct td_block_map *map, uint64_t address)
{
    size_t mask = map->capacity - 1, i = hash(address) & mask;
    while (map->slots[i].bytes && map->slots[i].address != address)
        i = (i + 1) & mask;
    return &map->slots[i];
}

static bool grow_blocks(struct td_block_map *map)
{
    struct td_block_map larger = {.capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY,
                                  .count = map->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].bytes)
            *block_slot(&larger, map->slots[i].address) = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

struct td_block *td_block_insert(struct td_block_map *map, uint64_t address)
{
    if (map->count >= map->capacity / 3 * 2 && !grow_blocks(map))
        return NULL;
    struct td_block *b = block_slot(map, address);
    map->count++;
    *b = (struct td_block){.address = address};
    return b;
}

struct td_block *td_block_find(const struct td_block_map *map, uint64_t address)
{
    if (!map->capacity)
        return NULL;
    struct td_block *b = block_slot(map, address);
    return b->bytes ? b : NULL;
}

void td_block_remove(struct td_block_map *map, struct td_block *block)
{
    size_t mask = map->capacity - 1, hole = (size_t)(block - map->slots), i = hole;
    for (;;) {
        i = (i + 1) & mask;
        if (!map->slots[i].bytes)
            break;
        size_t home = hash(map->slots[i].address) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* it would move in front of its home */
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole].bytes = 0;
    map->count--;
}

/* --- Granules ------------------------------------------------------------------------------------------- */

static struct td_granule *granule_slot(const struct td_granule_map *map, uint64_t key)
{
    size_t mask = map->capacity - 1, i = hash(key) & mask;
    while (map->slots[i].blocks && map->slots[i].key != key)
        i = (i + 1) & mask;
    return &map->slots[i];
}

static bool grow_granules(struct td_granule_map *map)
{
    struct td_granule_map larger = {.capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY,
                                    .count = map->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].blocks)
            *granule_slot(&larger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

bool td_granule_add(struct td_granule_map *map, uint64_t key)
{
    if (map->count >= map->capacity / 3 * 2 && !grow_granules(map))
        return false;
    struct td_granule *g = granule_slot(map, key);
    map->count += g->blocks == 0;
    g->key = key;
    g->blocks++;
    return true;
}

void td_granule_drop(struct td_granule_map *map, uint64_t key)
{
    struct td_granule *g = granule_slot(map, key);
    if (--g->blocks)
        return;
    size_t mask = map->capacity - 1, hole = (size_t)(g - map->slots), i = hole;
    for (;;) {
        i = (i + 1) & mask;
        if (!map->slots[i].blocks)
            break;
        size_t home = hash(map->slots[i].key) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole].blocks = 0;
    map->count--;
}

/* --- Series --------------------------------------------------------------------------------------------- */

static void halve(struct td_series *s, uint64_t *slots)
{
    for (int i = 0; i < s->used; i += 2) {
        uint64_t second = i + 1 < s->used ? slots[i + 1] : 0;
        slots[i / 2] = slots[i] > second ? slots[i] : second;
    }
    s->used = (s->used + 1) / 2;
    s->shift++;
}

void td_series_put(struct td_series *s, uint64_t *slots, int capacity, int64_t at, uint64_t before,
                   uint64_t after)
{
    if (s->used == 0)
        *s = (struct td_series){.start = at};
    uint64_t past = (uint64_t)at - (uint64_t)s->start;
    while (past >> s->shift >= (uint64_t)capacity)
        halve(s, slots);
    int index = (int)(past >> s->shift);
    while (s->used <= index)
        slots[s->used++] = before;
    if (slots[index] < after)
        slots[index] = after;
}

uint64_t td_series_level(const struct td_series *s, const uint64_t *slots, int64_t at, uint64_t last)
{
    if (s->used == 0 || at < s->start)
        return 0;
    uint64_t index = ((uint64_t)at - (uint64_t)s->start) >> s->shift;
    return index < (uint64_t)s->used ? slots[index] : last;
}
