/* coverage.c: see coverage.h.
 *
 * What is counted are the items without a partner: a pair may stand for many of them (the experts of a layer
 * joined, one tensor under several names), and what is in no list at all is a name of something that is.
 * Classes of equal tensors are gone through once, however many of their names stand alone: of 100,000 tensors
 * of zeros each may come with a class of 100,000.
 */
#include "compare/judge/coverage.h"

#include <stdlib.h>

enum { ALONE = 1, CLASS_ALONE = 2, CLASS_PAIRED = 4 };

struct tally {
    unsigned char *marks; /* of each item, by its order */
    size_t count;
};

static unsigned char *mark_of(const struct tally *t, const struct td_item *item)
{
    return item->order < t->count ? &t->marks[item->order] : NULL;
}

static void set_alone(const struct tally *t, const struct td_item *item, bool alone)
{
    unsigned char *mark = mark_of(t, item);
    if (mark)
        *mark = (unsigned char)(alone ? *mark | ALONE : *mark & ~ALONE);
}

static void set_all(const struct tally *t, const struct td_item *item, const struct td_aliases *names,
                    bool alone)
{
    set_alone(t, item, alone);
    if (!names || !names->items || names->count == 0)
        return;
    unsigned char *first = mark_of(t, names->items[0]), seen = alone ? CLASS_ALONE : CLASS_PAIRED;
    if (!first || *first & seen)
        return;
    *first |= seen;
    for (size_t i = 0; i < names->count; i++)
        set_alone(t, names->items[i], alone);
}

/* First everything that stands alone, then what has a partner under another name. */
static tdbg_status share(double *out, const struct td_pair *pairs, size_t count, size_t items, bool of_b,
                         struct tdbg_error *error)
{
    struct tally t = {.marks = calloc(items + 1, 1), .count = items};
    if (!t.marks)
        return td_fail_nomem(error);
    for (int alone = 1; alone >= 0; alone--)
        for (size_t i = 0; i < count; i++) {
            const struct td_pair *p = &pairs[i];
            const struct td_item *own = of_b ? p->b : p->a, *other = of_b ? p->a : p->b;
            if (own && (other == NULL) == (alone == 1))
                set_all(&t, own, p->match ? of_b ? &p->match->aliases_b : &p->match->aliases_a : NULL, alone);
        }
    size_t left = 0;
    for (size_t i = 0; i < items; i++)
        left += t.marks[i] & ALONE;
    free(t.marks);
    *out = items ? (double)(items - left) / (double)items : 0;
    return TDBG_OK;
}

/* What the head of the model put out agrees. */
static bool result_agrees(const struct td_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_pair *p = &pairs[i];
        if (p->a && p->b && !p->a->parameter && p->a->layer < 0 && p->a->role == TD_ROLE_HEAD &&
            p->outcome.ruling.verdict <= TD_WITHIN)
            return true;
    }
    return false;
}

tdbg_status td_coverage_find(struct td_coverage *out, const struct td_pair *pairs, size_t count,
                             size_t items_a, size_t items_b, double needed, struct tdbg_error *error)
{
    struct td_coverage c = {0};
    bool any = false;
    for (size_t i = 0; i < count && !any; i++)
        any = pairs[i].a && pairs[i].b;
    if (any) { /* else what no list holds would count as paired */
        TD_TRY(share(&c.a, pairs, count, items_a, false, error));
        TD_TRY(share(&c.b, pairs, count, items_b, true, error));
    }
    double least = c.a < c.b ? c.a : c.b;
    if (result_agrees(pairs, count))
        needed /= 2;
    c.enough = any && (items_a == items_b ? least : items_a < items_b ? c.a : c.b) >= needed;
    *out = c;
    return TDBG_OK;
}
