/* grow.h: room for one more item in an array that doubles. False when memory ran out; the array is as before.
 */
#ifndef TD_ANALYSE_GROW_H
#define TD_ANALYSE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static inline bool td_grow(void **items, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 64;
    void *bigger = realloc(*items, wanted * size);
    if (!bigger)
        return false;
    *items = bigger;
    *room = wanted;
    return true;
}

#endif
