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

/* Joins neighbours over the smaller half of the gaps. */
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
        struct td_interval *last = &set->items[kept];
        int64_t gap = set->items[i].begin - last->end;
        if (gap > limit) {
            set->items[++kept] = set->items[i];
            continue;
        }
        last->gaps += gap + set->items[i].gaps;
        last->end = set->items[i].end;
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

/* Gaps of an interval that [begin, end) leaves open. */
static int64_t gaps_left(const struct td_interval *interval, int64_t begin, int64_t end)
{
    int64_t from = interval->begin > begin ? interval->begin : begin;
    int64_t to = interval->end < end ? interval->end : end;
    if (!interval->gaps || to <= from)
        return interval->gaps;
    double open = 1 - (double)(to - from) / (double)(interval->end - interval->begin);
    return (int64_t)((double)interval->gaps * open);
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
    struct td_interval whole = {begin, end, 0};
    for (; past < set->count && set->items[past].begin <= end; past++) {
        const struct td_interval *other = &set->items[past];
        whole.gaps += gaps_left(other, begin, end);
        whole.begin = other->begin < whole.begin ? other->begin : whole.begin;
        whole.end = other->end > whole.end ? other->end : whole.end;
    }
    if (past != at + 1) {
        memmove(&set->items[at + 1], &set->items[past], (set->count - past) * sizeof *set->items);
        set->count = set->count + 1 - (past - at);
    }
    set->items[at] = whole;
    return true;
}

int64_t td_intervals_covered(const struct td_intervals *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->items[i].end - set->items[i].begin - set->items[i].gaps;
    return sum;
}

int64_t td_intervals_within(const struct td_intervals *set, int64_t begin, int64_t end)
{
    int64_t sum = 0;
    for (size_t i = find(set, begin); i < set->count && set->items[i].begin < end; i++) {
        int64_t from = set->items[i].begin > begin ? set->items[i].begin : begin;
        int64_t to = set->items[i].end < end ? set->items[i].end : end;
        if (to > from) /* its gaps are taken as even */
            sum += to - from -
                   (int64_t)((double)set->items[i].gaps * (double)(to - from) /
                             (double)(set->items[i].end - set->items[i].begin));
    }
    return sum;
}

void td_intervals_release(struct td_intervals *set)
{
    free(set->items);
    *set = (struct td_intervals){0};
}
