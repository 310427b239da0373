/* crowds.c: see crowds.h.
 *
 * The bounds count elements. One that is read costs its load and the products with the other tokens, some
 * nanoseconds; a pair of prints costs its values and, whatever their number, grams and names.
 */
#include "compare/match/crowds.h"

#include <stdlib.h>

/* Read for the prints of one side; kept of them (128 MiB). A model of 100 stages takes a hundredth. */
#define MOST_READ (INT64_C(1) << 29)
#define MOST_KEPT (INT64_C(1) << 24)

/* Compared between both sides, each pair once: about three seconds. 170 templates of one width, looked at in
 * four layers, with as many values as a print can keep, stay below. */
#define MOST_COMPARED 0x1p32

/* What a pair of prints costs beside its values. */
static const double A_PAIR = 1500;

size_t td_crowds_afford(const struct td_schemes *s, size_t *items, size_t count)
{
    int64_t read = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct td_print_cost cost = td_print_cost(&s->side->items[items[i]], &s->tokens);
        if (cost.read > MOST_READ - read || cost.kept > MOST_KEPT - kept)
            return i;
        read += cost.read;
        kept += cost.kept;
    }
    return count;
}

struct heard {
    int64_t width, values;
    size_t item;
    int side;
};

/* All of one width: heard[first, first + count). */
struct crowd {
    size_t first, count;
    double work;
};

static int by_width(const void *x, const void *y)
{
    const struct heard *a = x, *b = y;
    if (a->width != b->width)
        return a->width < b->width ? -1 : 1;
    if (a->side != b->side)
        return a->side - b->side;
    return (a->item > b->item) - (a->item < b->item);
}

static int by_work(const void *x, const void *y)
{
    const struct crowd *a = x, *b = y;
    if (a->work != b->work)
        return a->work < b->work ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

static size_t list_heard(const struct td_schemes s[2], struct heard *out)
{
    size_t count = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < s[side].side->count; i++) {
            const struct td_reading *r = s[side].readings[i];
            if (r && r->count)
                out[count++] = (struct heard){r->prints[0].width,
                                              (int64_t)r->prints[0].rows * r->prints[0].kept, i, side};
        }
    return count;
}

static struct crowd crowd_at(const struct heard *heard, size_t count, size_t first)
{
    size_t end = first;
    double on_side[2] = {0}, values = 0;
    for (; end < count && heard[end].width == heard[first].width; end++) {
        on_side[heard[end].side]++;
        if ((double)heard[end].values > values)
            values = (double)heard[end].values;
    }
    return (struct crowd){first, end - first, on_side[0] * on_side[1] * (values + A_PAIR)};
}

tdbg_status td_crowds_silence(struct td_schemes s[2], struct td_arena *arena, struct tdbg_error *error)
{
    size_t most = s[0].side->count + s[1].side->count + 1, crowds = 0;
    struct heard *heard = td_arena_array(arena, most, sizeof *heard);
    struct crowd *list = td_arena_array(arena, most, sizeof *list);
    if (!heard || !list)
        return td_fail_nomem(error);
    size_t count = list_heard(s, heard);
    if (count)
        qsort(heard, count, sizeof *heard, by_width);
    for (size_t i = 0; i < count; i += list[crowds++].count)
        list[crowds] = crowd_at(heard, count, i);
    if (crowds)
        qsort(list, crowds, sizeof *list, by_work);
    double work = 0;
    for (size_t k = 0; k < crowds; k++) {
        work += list[k].work;
        for (size_t i = list[k].first; work > MOST_COMPARED && i < list[k].first + list[k].count; i++)
            s[heard[i].side].readings[heard[i].item] = NULL;
    }
    return TDBG_OK;
}
