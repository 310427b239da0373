/* twins.c: see twins.h.
 *
 * What the prints of the layers that were looked at say is a relation of templates, "the input of the norm of
 * layer L is the output of layer L - 1", which is then tried on every layer. Values decide each.
 */
#include "compare/match/twins.h"

#include "compare/match/words.h"
#include "kernel/load.h"

#include <stdlib.h>
#include <string.h>

/* Fewer elements are equal by chance: counters, a token each. */
enum { SMALLEST = 16 };

/* Relations of one template that are tried. */
enum { MOST_RELATIONS = 4 };

/* --- prints --------------------------------------------------------------------------------------------- */

static const struct td_print *print_of(const struct td_schemes *s, size_t item)
{
    const struct td_reading *r = s->readings[item];
    return r && r->count && !r->prints[0].constant && s->side->items[item].parts[0]->count >= SMALLEST
               ? &r->prints[0]
               : NULL;
}

static int by_hash(const void *x, const void *y)
{
    const struct td_twin *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static uint64_t hash_of(const struct td_print *p)
{
    return td_hash_more(TD_HASH_START, p->values, (size_t)p->rows * (size_t)p->kept * sizeof *p->values);
}

tdbg_status td_twins_init(struct td_twins *out, const struct td_schemes *schemes, struct td_arena *arena,
                          struct tdbg_error *error)
{
    *out = (struct td_twins){.schemes = schemes};
    out->list = td_arena_array(arena, schemes->side->count + 1, sizeof *out->list);
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t k = 0; k < schemes->count; k++)
        for (size_t i = 0; i < schemes->list[k].count; i++) {
            const struct td_print *p = print_of(schemes, schemes->list[k].items[i]);
            if (p)
                out->list[out->count++] = (struct td_twin){hash_of(p), schemes->list[k].items[i], k};
        }
    if (out->count)
        qsort(out->list, out->count, sizeof *out->list, by_hash);
    return TDBG_OK;
}

/* The twins that have the hash. */
static size_t find(const struct td_twins *t, uint64_t hash, size_t *first)
{
    size_t low = 0, high = t->count, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->list[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < t->count && t->list[low + n].hash == hash)
        n++;
    *first = low;
    return n;
}

static bool has_paired_twin(const struct td_twins *t, size_t scheme, size_t item)
{
    const struct td_print *p = print_of(t->schemes, item);
    if (!p)
        return false;
    size_t first, n = find(t, hash_of(p), &first);
    for (size_t i = first; i < first + n; i++)
        if (t->list[i].scheme != scheme && t->schemes->list[t->list[i].scheme].partner != TD_NO_SCHEME &&
            td_print_equal(p, print_of(t->schemes, t->list[i].item)))
            return true;
    return false;
}

bool td_twins_cover(const struct td_twins *twins, size_t scheme)
{
    const struct td_scheme *s = &twins->schemes->list[scheme];
    size_t looked_at = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (!twins->schemes->readings[s->items[i]])
            continue;
        looked_at++;
        if (!has_paired_twin(twins, scheme, s->items[i]))
            return false;
    }
    return looked_at > 0;
}

bool td_twins_are(const struct td_schemes *schemes, size_t x, size_t y)
{
    const struct td_scheme *a = &schemes->list[x], *b = &schemes->list[y];
    for (size_t i = 0; i < a->count; i++) {
        const struct td_print *p = print_of(schemes, a->items[i]);
        size_t other = p ? td_scheme_at(schemes, b, schemes->side->items[a->items[i]].layer) : SIZE_MAX;
        const struct td_print *q = other != SIZE_MAX ? print_of(schemes, other) : NULL;
        if (p && q && td_print_equal(p, q))
            return true;
    }
    return false;
}

/* --- every value ---------------------------------------------------------------------------------------- */

static bool equal_values(const struct td_tensor *x, const struct td_tensor *y)
{
    enum { CHUNK = 4096 };
    if (x->count != y->count)
        return false;
    if (x->sparse || y->sparse || td_view_overlaps(&x->view) || td_view_overlaps(&y->view))
        return false; /* more elements than are stored: not worth the walk */
    const void *a = td_direct(x), *b = td_direct(y);
    if (a && b && x->dtype == y->dtype)
        return memcmp(a, b, (size_t)x->count * td_dtype_size(x->dtype)) == 0;
    double left[CHUNK], right[CHUNK];
    for (int64_t at = 0; at < x->count; at += CHUNK) {
        int64_t n = x->count - at < CHUNK ? x->count - at : CHUNK;
        if (td_load_f64(x, at, n, left, NULL) != TDBG_OK || td_load_f64(y, at, n, right, NULL) != TDBG_OK ||
            memcmp(left, right, (size_t)n * sizeof *left) != 0)
            return false;
    }
    return true;
}

/* "Item of layer L is that of layer L + shift of the other template." */
struct relation {
    size_t scheme;
    int64_t shift;
};

static size_t find_relations(const struct td_twins *t, size_t scheme, struct relation out[MOST_RELATIONS])
{
    const struct td_schemes *s = t->schemes;
    const struct td_scheme *mine = &s->list[scheme];
    size_t count = 0;
    for (size_t i = 0; i < mine->count; i++) {
        const struct td_print *p = print_of(s, mine->items[i]);
        size_t first, n = p ? find(t, hash_of(p), &first) : 0;
        for (size_t k = 0; k < n && count < MOST_RELATIONS; k++) {
            const struct td_twin *twin = &t->list[first + k];
            int64_t shift = s->side->items[twin->item].layer - s->side->items[mine->items[i]].layer;
            bool known = twin->scheme == scheme || s->list[twin->scheme].partner == TD_NO_SCHEME;
            for (size_t r = 0; r < count; r++)
                known = known || (out[r].scheme == twin->scheme &&
                                  (out[r].shift == shift || !s->list[twin->scheme].layered));
            if (!known)
                out[count++] = (struct relation){twin->scheme, shift};
        }
    }
    return count;
}

/* An item that is to get a twin. */
struct candidate {
    size_t item, count;
    size_t twins[MOST_RELATIONS]; /* which it may be equal to */
    size_t found;                 /* the one it is; SIZE_MAX: none */
};

struct search {
    const struct td_side *side;
    struct td_job *job;
    struct candidate *list;
    size_t count;
};

static void compare_candidate(void *context, uint64_t i)
{
    const struct search *s = context;
    struct candidate *c = &s->list[i];
    const struct td_tensor *mine = s->side->items[c->item].parts[0];
    for (size_t k = 0; k < c->count && c->found == SIZE_MAX && !td_job_cancelled(s->job); k++)
        if (equal_values(mine, s->side->items[c->twins[k]].parts[0]))
            c->found = c->twins[k];
}

static void list_candidates(const struct td_matching *m, enum td_which which, const struct td_twins *t,
                            struct search *out)
{
    const struct td_schemes *s = t->schemes;
    struct relation relations[MOST_RELATIONS];
    for (size_t k = 0; k < s->count; k++) {
        size_t count = find_relations(t, k, relations);
        for (size_t i = 0; count && i < s->list[k].count; i++) {
            struct candidate c = {.item = s->list[k].items[i], .found = SIZE_MAX};
            for (size_t r = 0; r < count; r++) {
                int64_t layer = s->side->items[c.item].layer + relations[r].shift;
                size_t other = td_scheme_at(s, &s->list[relations[r].scheme], layer);
                if (other != SIZE_MAX && other != c.item && m->paired[which][other])
                    c.twins[c.count++] = other;
            }
            if (c.count && !m->paired[which][c.item])
                out->list[out->count++] = c;
        }
    }
}

tdbg_status td_twins_attach(struct td_matching *m, const struct td_schemes schemes[2],
                            const struct td_twins twins[2], struct tdbg_error *error)
{
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++) {
        struct search s = {.side = m->side[which], .job = m->work.job};
        s.list = td_arena_array(&m->scratch, schemes[which].side->count + 1, sizeof *s.list);
        if (!s.list)
            return td_fail_nomem(error);
        list_candidates(m, which, &twins[which], &s);
        td_pool_run(m->work.pool, s.count, compare_candidate, &s);
        if (td_job_cancelled(m->work.job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        for (size_t i = 0; i < s.count; i++)
            if (s.list[i].found != SIZE_MAX)
                TD_TRY(td_pair_alias(m, which, s.list[i].item, s.list[i].found, error));
    }
    return TDBG_OK;
}
