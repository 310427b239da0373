/* shape.c: what is left when names tell nothing: tensors of one shape, and then of like values.
 *
 * Shapes count without axes of size 1 and without the order of the axes, which is the layout's business. The
 * only tensor of a shape on either side goes with the only one on the other. Where a shape occurs more often,
 * and where the names say that they are different stages, or a single element says nothing, the values
 * decide: the quantiles of a sample, which no layout changes. Two tensors are a pair when each is the other's
 * nearest, near enough, and clearly nearer than the next. Otherwise they stay as they are: no pair is better
 * than a wrong one.
 */
#include "compare/match/strategy.h"

#include "compare/name/place.h"
#include "kernel/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE = 4096, /* tensors of up to this many elements are sampled in full, so that no layout matters */
    RUNS = 16,    /* larger ones in runs spread over the tensor */
    RUN = 64,
    QUANTILES = 17,
    MAX_GROUP = 2000 /* of one shape on a side: with more than that alike, values would be chance */
};

/* Quantiles of 1024 samples scatter by some 3 % of the spread; twice the distance is clearly farther. */
static const double near_enough = 0.05, clearly = 2.0;

/* How sure a pair is that nothing but quantiles, or a shape that only two have, has made. */
static const double SURE_BY_VALUES = 0.9, SURE_BY_SHAPE = 0.7;

struct shaped {
    struct td_shape shape; /* without ones, ascending */
    size_t index, order;
    bool sampled;
    double quantile[QUANTILES];
};

struct group {
    struct shaped *list;
    size_t count;
};

static int compare_sizes(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static int compare_shapes(const struct shaped *a, const struct shaped *b)
{
    if (a->shape.ndim != b->shape.ndim)
        return a->shape.ndim < b->shape.ndim ? -1 : 1;
    for (int i = 0; i < a->shape.ndim; i++)
        if (a->shape.size[i] != b->shape.size[i])
            return a->shape.size[i] < b->shape.size[i] ? -1 : 1;
    return 0;
}

static int compare_shaped(const void *x, const void *y)
{
    const struct shaped *a = x, *b = y;
    int order = compare_shapes(a, b);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Shards are left out: which shape they have together is not known yet. */
static tdbg_status group_init(struct group *out, struct td_matching *m, enum td_which which,
                              struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    *out = (struct group){.list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++) {
        const struct td_item *item = &side->items[i];
        if (!td_is_free(m, which, i) || item->part_count != 1)
            continue;
        struct shaped *s = &out->list[out->count++];
        s->index = i;
        s->order = item->order;
        for (int axis = 0; axis < item->parts[0]->shape.ndim; axis++)
            if (item->parts[0]->shape.size[axis] != 1)
                s->shape.size[s->shape.ndim++] = item->parts[0]->shape.size[axis];
        qsort(s->shape.size, (size_t)s->shape.ndim, sizeof s->shape.size[0], compare_sizes);
    }
    qsort(out->list, out->count, sizeof *out->list, compare_shaped);
    return TDBG_OK;
}

static int compare_values(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static size_t load_sample(const struct td_tensor *t, double *values)
{
    int64_t count = 0, runs = t->count <= WHOLE ? 1 : RUNS, run = t->count <= WHOLE ? t->count : RUN;
    for (int64_t i = 0; i < runs; i++) {
        int64_t start = runs == 1 ? 0 : (t->count - run) / (runs - 1) * i;
        if (td_load_f64(t, start, run, values + count, NULL) != TDBG_OK)
            return 0;
        count += run;
    }
    size_t finite = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            values[finite++] = values[i];
    return finite;
}

static void take_sample(const struct td_matching *m, enum td_which which, struct shaped *s)
{
    double values[WHOLE];
    size_t n = load_sample(m->side[which]->items[s->index].parts[0], values);
    s->sampled = n > 0;
    if (n == 0)
        return;
    qsort(values, n, sizeof values[0], compare_values);
    for (size_t q = 0; q < QUANTILES; q++)
        s->quantile[q] = values[q * (n - 1) / (QUANTILES - 1)];
}

/* Of the quantiles, relative to their spread (to their size where all are alike). Zeros are like nothing. */
static double distance(const struct shaped *a, const struct shaped *b)
{
    if (!a->sampled || !b->sampled)
        return INFINITY;
    double apart = 0, mean = 0, spread = 0;
    for (int q = 0; q < QUANTILES; q++)
        mean += a->quantile[q] / QUANTILES;
    for (int q = 0; q < QUANTILES; q++) {
        double d = a->quantile[q] - b->quantile[q], s = a->quantile[q] - mean;
        apart += d * d;
        spread += s * s;
    }
    if (spread == 0)
        spread = QUANTILES * mean * mean;
    return spread > 0 ? sqrt(apart / spread) : INFINITY;
}

static void pair_by_shape(struct td_matching *m, size_t a, size_t b, double sure)
{
    td_pair(m, a, b, TD_MATCH_SHAPE);
    m->pairs[m->count - 1].sure = sure;
}

struct nearest {
    size_t which;
    double best, next;
};

static void note(struct nearest *n, size_t which, double d)
{
    if (d < n->best) {
        n->next = n->best;
        n->best = d;
        n->which = which;
    } else if (d < n->next) {
        n->next = d;
    }
}

static bool is_sure(const struct nearest *n)
{
    return n->best <= near_enough && n->next > clearly * n->best;
}

static tdbg_status pair_by_value(struct td_matching *m, struct shaped *a, size_t na, struct shaped *b,
                                 size_t nb, struct tdbg_error *error)
{
    struct nearest *from = calloc(na + nb, sizeof *from), *to = from + na;
    if (!from)
        return td_fail_nomem(error);
    for (size_t i = 0; i < na + nb; i++) {
        from[i] = (struct nearest){0, INFINITY, INFINITY};
        take_sample(m, i < na ? TD_SIDE_A : TD_SIDE_B, i < na ? &a[i] : &b[i - na]);
    }
    for (size_t i = 0; i < na; i++)
        for (size_t j = 0; j < nb; j++) {
            if (td_layers_clash(m, a[i].index, b[j].index))
                continue;
            double d = distance(&a[i], &b[j]);
            note(&from[i], j, d);
            note(&to[j], i, d);
        }
    for (size_t i = 0; i < na; i++)
        if (is_sure(&from[i]) && is_sure(&to[from[i].which]) && to[from[i].which].which == i)
            pair_by_shape(m, a[i].index, b[from[i].which].index, SURE_BY_VALUES);
    free(from);
    return TDBG_OK;
}

/* The shape alone does not make these a pair. */
static bool needs_values(const struct td_matching *m, const struct shaped *a, const struct shaped *b)
{
    const struct td_item *x = &m->side[TD_SIDE_A]->items[a->index], *y = &m->side[TD_SIDE_B]->items[b->index];
    enum td_role role_x = m->identity[TD_SIDE_A][a->index].role,
                 role_y = m->identity[TD_SIDE_B][b->index].role;
    return a->shape.ndim == 0 || (td_place_find(x->name).dumped && td_place_find(y->name).dumped) ||
           (role_x != TD_ROLE_NONE && role_y != TD_ROLE_NONE && role_x != role_y);
}

static size_t run_length(const struct group *g, size_t from)
{
    size_t n = 1;
    while (from + n < g->count && compare_shapes(&g->list[from], &g->list[from + n]) == 0)
        n++;
    return n;
}

tdbg_status td_match_by_shape(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct group a, b;
    bool alone = m->side[TD_SIDE_A]->count == 1 && m->side[TD_SIDE_B]->count == 1;
    if (alone && m->count == 0) { /* whoever names two tensors means them, whatever their shapes */
        td_pair(m, 0, 0, TD_MATCH_SHAPE);
        return TDBG_OK;
    }
    TD_TRY(group_init(&a, m, TD_SIDE_A, error));
    TD_TRY(group_init(&b, m, TD_SIDE_B, error));
    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        struct shaped *x = &a.list[i], *y = &b.list[j];
        int order = compare_shapes(x, y);
        size_t na = order <= 0 ? run_length(&a, i) : 0, nb = order >= 0 ? run_length(&b, j) : 0;
        i += na;
        j += nb;
        if (order != 0)
            continue;
        if (na == 1 && nb == 1 && !needs_values(m, x, y)) {
            if (!td_layers_clash(m, x->index, y->index))
                pair_by_shape(m, x->index, y->index, SURE_BY_SHAPE);
        } else if (na <= MAX_GROUP && nb <= MAX_GROUP) {
            TD_TRY(pair_by_value(m, x, na, y, nb, error));
        }
    }
    return TDBG_OK;
}
