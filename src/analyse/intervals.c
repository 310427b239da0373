/* intervals.c: the union of intervals. Calls come nearly in order, so the place of a new one is looked for
 * from the end, and most calls only stretch the last interval or append. */
#include "analyse/intervals.h"

#include <stdlib.h>
#include <string.h>

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Closes the smaller half of the gaps. */
static bool coarsen(struct td_intervals *set)
{
    int64_t *gaps = malloc((set->count - 1) * sizeof *gaps);
    if (!gaps)
        return false;
    for (size_t i = 1; i < set->count; i++)
        gaps[i - 1] = set->items[i].begin - set->items[i - 1].end;
    qsort(gaps, set->count - 1, sizeof *gaps, by_length);
    int64_t limit = gaps[(set->count - 1) / 2];
    free(gaps);
    size_t kept = 0;
    for (size_t i = 1; i < set->count; i++) {
        if (set->items[i].begin - set->items[kept].end <= limit)
            set->items[kept].end = set->items[i].end;
        else
            set->items[++kept] = set->items[i];
    }
    set->count = kept + 1;
    return true;
}

/* The first interval that ends at or after `begin`. */
static size_t find(const struct td_intervals *set, int64_t begin)
{
    size_t low = 0, high = set->count;
    if (high > 0 && set->items[high - 1].end < begin)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->items[middle].end < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool td_intervals_add(struct td_intervals *set, int64_t begin, int64_t end)
{
    if (end <= begin)
        return true;
    if (!set->items && !(set->items = malloc(TD_INTERVALS * sizeof *set->items)))
        return false;
    if (set->count == TD_INTERVALS && !coarsen(set))
        return false;
    size_t at = find(set, begin), past = at;
    for (; past < set->count && set->items[past].begin <= end; past++) {
        begin = set->items[past].begin < begin ? set->items[past].begin : begin;
        end = set->items[past].end > end ? set->items[past].end : end;
    }
    if (past != at + 1) {
        memmove(&set->items[at + 1], &set->items[past], (set->count - past) * sizeof *set->items);
        set->count = set->count + 1 - (past - at);
    }
    set->items[at] = (struct td_interval){begin, end};
    return true;
}

int64_t td_intervals_covered(const struct td_intervals *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->items[i].end - set->items[i].begin;
    return sum;
}

int64_t td_intervals_within(const struct td_intervals *set, int64_t begin, int64_t end)
{
    int64_t sum = 0;
    for (size_t i = find(set, begin); i < set->count && set->items[i].begin < end; i++) {
        int64_t from = set->items[i].begin > begin ? set->items[i].begin : begin;
        int64_t to = set->items[i].end < end ? set->items[i].end : end;
        sum += to > from ? to - from : 0;
    }
    return sum;
}

void td_intervals_release(struct td_intervals *set)
{
    free(set->items);
    *set = (struct td_intervals){0};
}
