/* head_sizes.c: how wide a head may be, as candidates.h needs to know.
 *
 * A last axis of three tells little: it may be the hidden width of a batch, or the tokens of a map of
 * attention. It is a head where the same dump has a tensor that is as wide as all the heads together: a query
 * [tokens, heads, size] beside one [tokens, heads * size], or beside a weight of that many rows. Those come
 * first. A last axis that could be a head, with nothing beside it, comes second; the usual sizes come last,
 * and always, because the values decide among all of them and a wrong size fits by no chance.
 */
#include "compare/layout/candidates.h"

#include <stdlib.h>

/* Of models that exist. A size with nothing to show for it must look like a head. */
enum { NARROWEST = 4, NARROWEST_UNPROVEN = 8, WIDEST = 512, MOST_SEEN = TD_MOST_HEAD_SIZES - 16 };

/* A width that some tensor has, and how many elements that one holds. */
struct width {
    int64_t size, elements; /* or one of the two below */
};

/* Of a parameter, whose other axes tell nothing; of a tensor of tokens and channels and nothing else. */
enum { OF_PARAMETER = -1, OF_MATRIX = -2 };

struct widths {
    struct width *list;
    size_t count;
};

struct seen {
    int64_t size;
    size_t proofs; /* tensors that have the heads apart, where others have them merged */
    int order;
};

struct survey {
    struct widths widths;
    int count;
    struct seen seen[MOST_SEEN];
};

static int compare_widths(const void *x, const void *y)
{
    const struct width *a = x, *b = y;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return (a->elements > b->elements) - (a->elements < b->elements);
}

/* All axes but the last and one more have size 1. */
static bool is_matrix(const struct td_shape *shape)
{
    int longer = 0;
    for (int i = 0; i + 1 < shape->ndim; i++)
        longer += shape->size[i] > 1;
    return longer <= 1;
}

static void add_widths(struct widths *all, const struct td_item *item)
{
    const struct td_tensor *t = item->parts[0];
    int last = t->shape.ndim - 1;
    for (int i = item->parameter ? 0 : last; i >= 0 && i <= last; i++)
        all->list[all->count++] = (struct width){t->shape.size[i], item->parameter ? OF_PARAMETER : t->count};
    if (!item->parameter && last >= 0 && is_matrix(&t->shape))
        all->list[all->count++] = (struct width){t->shape.size[last], OF_MATRIX};
}

static bool has_width(const struct widths *all, int64_t size, int64_t elements)
{
    struct width key = {size, elements};
    return bsearch(&key, all->list, all->count, sizeof key, compare_widths) != NULL;
}

/* All its heads side by side are as wide as another tensor. The axis of a parameter is no proof where `size`
 * is the width of tokens or of another parameter: the batch times that is one by chance. */
static bool is_proven(const struct widths *all, const struct td_tensor *t)
{
    int last = t->shape.ndim - 1;
    int64_t size = t->shape.size[last];
    bool is_width = has_width(all, size, OF_PARAMETER) || has_width(all, size, OF_MATRIX);
    for (int i = 0; i < last; i++) {
        int64_t heads = t->shape.size[i];
        if (heads > 1 && heads <= INT64_MAX / WIDEST &&
            (has_width(all, heads * size, t->count) ||
             (!is_width && has_width(all, heads * size, OF_PARAMETER))))
            return true;
    }
    return false;
}

/* Neither a map of attention, whose last axis is as long as another, nor the width of tokens. */
static bool is_possible(const struct widths *all, const struct td_tensor *t)
{
    int last = t->shape.ndim - 1;
    int64_t size = t->shape.size[last];
    for (int i = 0; i < last; i++)
        if (t->shape.size[i] == size)
            return false;
    return size >= NARROWEST_UNPROVEN && !has_width(all, size, OF_MATRIX);
}

static void see(struct survey *s, const struct td_item *item)
{
    const struct td_tensor *t = item->parts[0];
    if (t->shape.ndim < 3 || t->count == 0)
        return;
    int64_t size = t->shape.size[t->shape.ndim - 1];
    if (size < NARROWEST || size > WIDEST)
        return;
    bool proven = is_proven(&s->widths, t);
    int at = 0;
    while (at < s->count && s->seen[at].size != size)
        at++;
    if (at == MOST_SEEN || (!proven && !is_possible(&s->widths, t)))
        return;
    if (at == s->count)
        s->seen[s->count++] = (struct seen){.size = size, .order = at};
    s->seen[at].proofs += proven;
}

static bool is_listed(const struct td_head_sizes *heads, int64_t size)
{
    for (int i = 0; i < heads->all; i++)
        if (heads->size[i] == size)
            return true;
    return false;
}

static void list(struct td_head_sizes *heads, int64_t size)
{
    if (!is_listed(heads, size))
        heads->size[heads->all++] = size;
}

static int by_proofs(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;
    if (a->proofs != b->proofs)
        return a->proofs > b->proofs ? -1 : 1;
    return a->order - b->order;
}

/* The proven ones; else those that could be, else the usual. The rest behind. */
static void list_sizes(struct td_head_sizes *out, struct survey *s)
{
    /* Of published models; 8 and 16 are what tests of them use. */
    static const int64_t usual[] = {64, 128, 256, 32, 80, 96, 112, 160, 192, 40, 48, 16, 8};
    *out = (struct td_head_sizes){.guessed = s->count == 0};
    qsort(s->seen, (size_t)s->count, sizeof s->seen[0], by_proofs);
    bool proven = s->count > 0 && s->seen[0].proofs > 0;
    int at = 0;
    while (at < s->count && (s->seen[at].proofs > 0) == proven)
        list(out, s->seen[at++].size);
    out->count = out->all;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        list(out, usual[i]);
    while (at < s->count)
        list(out, s->seen[at++].size);
    if (out->guessed)
        out->count = out->all;
}

tdbg_status td_head_sizes_find(struct td_head_sizes *out, const struct td_side *const *sides, int count,
                               struct tdbg_error *error)
{
    struct survey s = {0};
    size_t items = 0;
    for (int i = 0; i < count; i++)
        items += sides[i]->count;
    s.widths.list = calloc(items + 1, (TD_MAX_DIMS + 1) * sizeof *s.widths.list);
    if (!s.widths.list)
        return td_fail_nomem(error);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sides[i]->count; k++)
            add_widths(&s.widths, &sides[i]->items[k]);
    qsort(s.widths.list, s.widths.count, sizeof *s.widths.list, compare_widths);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sides[i]->count; k++)
            see(&s, &sides[i]->items[k]);
    list_sizes(out, &s);
    free(s.widths.list);
    return TDBG_OK;
}

int td_head_sizes_count(const struct td_head_sizes *heads)
{
    return heads->guessed ? td_head_sizes_any(heads) : heads->all;
}

int td_head_sizes_any(const struct td_head_sizes *heads)
{
    return heads->all + WIDEST + 1 - NARROWEST;
}

int64_t td_head_size(const struct td_head_sizes *heads, int index)
{
    if (index < heads->all)
        return heads->size[index];
    int64_t size = NARROWEST + index - heads->all;
    return is_listed(heads, size) ? 0 : size;
}
