/* weights.c: stored tensors under other people's names, by values, roles, words and modules.
 *
 * What exact.c does not pair by the very name is heard here, before the other strategies go by names alone.
 * One assignment over templates (stock.h), for each number of elements: a template that agrees in one layer
 * is a pair in every layer, also where a mistake was planted. Then fused tensors, by where their parts lie in
 * them (sample.h); then what the values cannot tell, a bias of zeros or a norm of ones, by its module: what
 * pairs the weight pairs the bias. At last a tensor stored twice on one side is another name of the first.
 *
 * A pair needs values that agree or correlate, or a role that both names have; and it must be clearly better
 * than the next. The rest is left to the strategies behind: no pair is better than a wrong one.
 */
#include "compare/match/assign.h"
#include "compare/match/stock.h"

#include <math.h>
#include <stdlib.h>

/* Two templates are a pair from so many points on, when the next best has so many less. */
static const double LEAST = 1.2, MARGIN = 0.3;

/* Correlation of a few hundred values that is no chance, whatever the reading. */
static const double CORRELATES = 0.35, FITS_A_PART = 0.5;

/* Cells of one assignment: 200 templates of one size on each side; of all; ways to cut; templates asked for
 * their module. More is left to the names. */
enum { MOST_CELLS = 40000, ALL_CELLS = 100000, ALL_CUTS = 30000, ALL_QUESTIONS = 20000000 };

/* A part that correlates by less in the first layer is not looked at in the others. */
static const double WORTH_A_LOOK = 0.2;

struct hearing {
    struct td_stocks stocks;
    struct td_matching *m;
    size_t *rows, *columns, row_count, column_count; /* templates of one size */
    struct td_bond *bonds;
    size_t cells, cuts, questions; /* that may still be looked at: names and shapes may leave all open */
};

static struct td_stock *stock(struct hearing *h, int side, size_t i)
{
    return &h->stocks.list[side][i];
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

static double sureness(const struct td_bond *bond)
{
    if (bond->equal > 0)
        return 0.999;
    if (bond->same_role)
        return 0.99;
    return bond->correlation >= 0.8 ? 0.98 : bond->correlation >= 0.6 ? 0.9 : 0.75;
}

static const char *tell(const struct td_bond *bond, struct td_arena *arena)
{
    const char *names = bond->same_role ? ", and the names mean the same" : "";
    if (bond->equal > 0)
        return td_arena_printf(arena, "values agree%s", names);
    if (bond->correlation >= CORRELATES)
        return td_arena_printf(arena, "values correlate by %.2f%s", bond->correlation, names);
    return "the names mean the same";
}

static void pair_all(struct hearing *h, struct td_stock *a, struct td_stock *b, const struct td_bond *bond,
                     const char *evidence, double sure)
{
    struct td_matching *m = h->m;
    a->partner = (size_t)(b - h->stocks.list[1]);
    b->partner = (size_t)(a - h->stocks.list[0]);
    for (size_t i = 0; i < a->count; i++) {
        size_t other = td_stock_mate(m, a, i, b);
        if (other == SIZE_MAX || m->paired[0][a->items[i]] || m->paired[1][other])
            continue;
        td_pair(m, a->items[i], other, bond && bond->same_role ? TD_MATCH_FUZZY : TD_MATCH_VALUE);
        struct td_match *match = &m->pairs[m->count - 1];
        match->sure = sure;
        match->evidence = evidence;
        match->template_a = a->layered ? a->name : NULL;
        match->template_b = b->layered ? b->name : NULL;
    }
}

/* --- one assignment for each size ----------------------------------------------------------------------- */

static bool is_evidence(const struct td_bond *bond, const struct td_stock *a, const struct td_stock *b)
{
    return bond->equal > 0 || bond->correlation >= CORRELATES || (bond->same_role && a->named && b->named);
}

static const struct td_item *item_of(struct hearing *h, int side, const struct td_stock *s, size_t i)
{
    return &h->m->side[side]->items[s->items[i]];
}

/* One tensor, stored twice. */
static bool is_the_same(struct hearing *h, int side, const struct td_stock *x, const struct td_stock *y)
{
    bool same = true;
    struct td_arena scratch;
    if (x->elements != y->elements || x->count != 1 || y->count != 1)
        return false;
    td_arena_init(&scratch, TD_MAX_METADATA);
    struct td_sample p, q;
    same = td_sample_take(&p, item_of(h, side, x, 0), NULL, &scratch) &&
           td_sample_take(&q, item_of(h, side, y, 0), NULL, &scratch) && !p.constant &&
           td_sample_error(&p, &q) <= 0;
    td_arena_release(&scratch);
    return same;
}

/* Another name of the same tensor is no rival. */
static bool is_clear(struct hearing *h, size_t row, size_t column)
{
    double own = h->bonds[row * h->column_count + column].score, next = -1e9;
    for (size_t j = 0; j < h->column_count; j++)
        if (j != column && !is_the_same(h, 1, stock(h, 1, h->columns[j]), stock(h, 1, h->columns[column])))
            next = fmax(next, h->bonds[row * h->column_count + j].score);
    for (size_t i = 0; i < h->row_count; i++)
        if (i != row && !is_the_same(h, 0, stock(h, 0, h->rows[i]), stock(h, 0, h->rows[row])))
            next = fmax(next, h->bonds[i * h->column_count + column].score);
    return own >= next + MARGIN;
}

static tdbg_status fill(struct hearing *h, double *scores, struct tdbg_error *error)
{
    for (size_t i = 0; i < h->row_count; i++) {
        if (td_job_cancelled(h->m->work.job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        for (size_t j = 0; j < h->column_count; j++) {
            struct td_bond *bond = &h->bonds[i * h->column_count + j];
            const struct td_stock *a = stock(h, 0, h->rows[i]), *b = stock(h, 1, h->columns[j]);
            *bond = td_bond_of(&h->stocks, a, b);
            if (!is_evidence(bond, a, b))
                bond->score = fmin(bond->score, 0);
            scores[i * h->column_count + j] = bond->score;
        }
    }
    return TDBG_OK;
}

static tdbg_status assign_group(struct hearing *h, struct tdbg_error *error)
{
    size_t cells = h->row_count * h->column_count;
    if (cells == 0 || cells > MOST_CELLS || cells > h->cells)
        return TDBG_OK;
    h->cells -= cells;
    double *scores = malloc(cells * sizeof *scores);
    size_t *partner = malloc(h->row_count * sizeof *partner);
    h->bonds = malloc(cells * sizeof *h->bonds);
    tdbg_status status = scores && partner && h->bonds ? fill(h, scores, error) : td_fail_nomem(error);
    if (status == TDBG_OK && !td_assign(scores, h->row_count, h->column_count, LEAST, partner))
        status = td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < h->row_count; i++) {
        if (partner[i] == TD_ASSIGNED_TO_NOBODY || !is_clear(h, i, partner[i]))
            continue;
        const struct td_bond *bond = &h->bonds[i * h->column_count + partner[i]];
        pair_all(h, stock(h, 0, h->rows[i]), stock(h, 1, h->columns[partner[i]]), bond,
                 tell(bond, h->m->kept), sureness(bond));
    }
    free(h->bonds);
    h->bonds = NULL;
    free(partner);
    free(scores);
    return status;
}

struct sized {
    int64_t elements;
    size_t at;
};

static int by_elements(const void *x, const void *y)
{
    const struct sized *a = x, *b = y;
    int order = td_compare_numbers(a->elements, b->elements);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

static struct sized *sort_by_elements(struct hearing *h, int side)
{
    size_t count = h->stocks.count[side];
    struct sized *list = td_arena_array(&h->m->scratch, count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = (struct sized){stock(h, side, i)->elements, i};
    if (list && count)
        qsort(list, count, sizeof *list, by_elements);
    return list;
}

static tdbg_status assign_all(struct hearing *h, struct tdbg_error *error)
{
    const struct sized *a = sort_by_elements(h, 0), *b = sort_by_elements(h, 1);
    size_t na = h->stocks.count[0], nb = h->stocks.count[1];
    h->rows = td_arena_array(&h->m->scratch, na + 1, sizeof *h->rows);
    h->columns = td_arena_array(&h->m->scratch, nb + 1, sizeof *h->columns);
    if (!a || !b || !h->rows || !h->columns)
        return td_fail_nomem(error);
    for (size_t i = 0, j = 0; i < na && j < nb;) {
        int64_t elements = a[i].elements < b[j].elements ? a[i].elements : b[j].elements;
        h->row_count = h->column_count = 0;
        for (; i < na && a[i].elements == elements; i++)
            h->rows[h->row_count++] = a[i].at;
        for (; j < nb && b[j].elements == elements; j++)
            h->columns[h->column_count++] = b[j].at;
        TD_TRY(assign_group(h, error));
    }
    return TDBG_OK;
}

/* --- fused tensors -------------------------------------------------------------------------------------- */

enum { MAX_PARTS = 3 };

struct part {
    size_t at;
    struct td_cut_of cut;
    double fit;
};

/* How well the part lies in the whole when it is cut so, over the layers that are looked at. */
static double fit_of(struct hearing *h, int side, const struct td_stock *whole, const struct td_stock *part,
                     const struct td_cut_of *cut)
{
    size_t looks[TD_STOCK_LOOKS];
    int n = td_stock_looks(whole, looks), seen = 0;
    if (h->cuts == 0)
        return 0;
    h->cuts--;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const struct td_item *w = item_of(h, side, whole, looks[i]);
        int64_t layer = w->layer + (side ? -1 : 1) * h->m->layer_offset;
        size_t other = whole->layered ? td_stock_at(h->m, !side, part, layer) : part->items[0];
        struct td_sample p, q;
        struct td_arena scratch;
        if (other == SIZE_MAX)
            continue;
        const struct td_item *x = &h->m->side[!side]->items[other];
        if (x->parts[0]->count != part->elements || w->parts[0]->count != whole->elements)
            continue;
        td_arena_init(&scratch, TD_MAX_METADATA);
        if (td_sample_take(&p, x, NULL, &scratch) && td_sample_cut(&q, x, w, cut, &scratch)) {
            sum += fabs(td_sample_correlation(&p, &q));
            seen++;
        }
        td_arena_release(&scratch);
        if (seen == 1 && i + 1 < n && sum < WORTH_A_LOOK)
            break;
    }
    return seen ? sum / seen : 0;
}

/* Where the part fits best among `rows` of `all` rows: in one run, or in one of each group of heads; the
 * first, the last, or the last but one. */
static void best_cut(struct hearing *h, int side, const struct td_stock *whole, struct part *part)
{
    struct td_stock *p = stock(h, !side, part->at);
    struct td_shape w = td_axes_of(item_of(h, side, whole, 0)), x = td_axes_of(item_of(h, !side, p, 0));
    part->fit = 0;
    if (w.ndim != x.ndim || w.ndim < 1 || w.ndim > 2)
        return;
    for (int turns = 0; turns < (w.ndim == 2 ? 4 : 1); turns++) {
        struct td_cut_of cut = {.part_turned = turns & 1, .whole_turned = turns / 2};
        int64_t rows = x.size[cut.part_turned], all = w.size[cut.whole_turned];
        if (rows >= all || (w.ndim == 2 && x.size[!cut.part_turned] != w.size[!cut.whole_turned]))
            continue;
        for (int64_t groups = 1; groups <= rows / 8 && groups <= 256; groups++) {
            if (rows % groups || all % groups)
                continue;
            int64_t run = rows / groups, period = all / groups;
            int64_t offsets[] = {0, period - run, period - 2 * run};
            for (int i = 0; i < 3; i++) {
                cut.groups = groups;
                cut.offset = offsets[i];
                double fit = cut.offset < 0 || (i && offsets[i] == offsets[i - 1])
                                 ? 0
                                 : fit_of(h, side, whole, p, &cut);
                if (fit > part->fit) {
                    part->fit = fit;
                    part->cut = cut;
                }
            }
        }
    }
}

static bool is_left(const struct td_stock *s)
{
    return s->partner == TD_NO_STOCK && !s->fused;
}

static void pair_part(struct hearing *h, int side, struct td_stock *whole, struct td_stock *part,
                      struct td_fusion fusion, double sure, const char *evidence)
{
    struct td_matching *m = h->m;
    for (size_t i = 0; i < whole->count; i++) {
        size_t w = whole->items[i];
        int64_t layer = m->side[side]->items[w].layer + (side ? -1 : 1) * m->layer_offset;
        size_t p = whole->layered ? td_stock_at(m, !side, part, layer) : part->items[0];
        if (p == SIZE_MAX || m->paired[!side][p])
            continue;
        td_pair(m, side ? p : w, side ? w : p, TD_MATCH_FUSED);
        struct td_match *match = &m->pairs[m->count - 1];
        *(side ? &match->fused_b : &match->fused_a) = fusion;
        match->sure = sure;
        match->evidence = evidence;
        match->template_a = whole->layered ? (side ? part : whole)->name : NULL;
        match->template_b = whole->layered ? (side ? whole : part)->name : NULL;
    }
    part->fused = true;
}

/* The parts of one whole, which are all of its elements, in the order of their places. */
static void pair_fused(struct hearing *h, int side, struct td_stock *whole)
{
    struct part parts[MAX_PARTS], next;
    int of = 0;
    int64_t elements = 0;
    if (whole->elements > INT64_MAX / (MAX_PARTS + 1))
        return;
    for (size_t k = 0; k < h->stocks.count[!side]; k++) {
        const struct td_stock *p = stock(h, !side, k);
        next = (struct part){.at = k};
        if (!is_left(p) || p->layered != whole->layered || p->elements >= whole->elements ||
            p->count != whole->count || p->elements < whole->elements / 8)
            continue;
        best_cut(h, side, whole, &next);
        if (next.fit < FITS_A_PART)
            continue;
        if (of == MAX_PARTS)
            return;
        int at = of++;
        for (; at > 0 && parts[at - 1].cut.offset > next.cut.offset; at--)
            parts[at] = parts[at - 1];
        parts[at] = next;
        elements += p->elements;
    }
    if (of < 2 || elements != whole->elements)
        return;
    for (int i = 1; i < of; i++)
        if (parts[i].cut.groups != parts[0].cut.groups && of == 3 &&
            parts[i].cut.offset == parts[i - 1].cut.offset)
            return;
    for (int i = 0; i < of; i++)
        pair_part(h, side, whole, stock(h, !side, parts[i].at), (struct td_fusion){i, of},
                  parts[i].fit > 0.98 ? 0.999 : 0.95,
                  td_arena_printf(h->m->kept, "its values lie in the fused tensor (correlation %.2f)",
                                  parts[i].fit));
    whole->fused = true;
}

/* --- what the values cannot tell ------------------------------------------------------------------------ */

/* The only template left of a module with that many elements, or TD_NO_STOCK. */
static size_t only_left(struct hearing *h, int side, const struct td_stock *of, int64_t elements)
{
    size_t found = TD_NO_STOCK;
    if (h->questions < h->stocks.count[side])
        return TD_NO_STOCK;
    h->questions -= h->stocks.count[side];
    for (size_t i = 0; i < h->stocks.count[side]; i++) {
        const struct td_stock *s = stock(h, side, i);
        if (!is_left(s) || s->module != of->module || s->elements != elements || s->layered != of->layered)
            continue;
        if (found != TD_NO_STOCK)
            return TD_NO_STOCK;
        found = i;
    }
    return found;
}

/* What pairs the weight pairs the bias. */
static void pair_modules(struct hearing *h)
{
    for (size_t k = 0; k < h->stocks.count[0]; k++) {
        const struct td_stock *a = stock(h, 0, k);
        if (a->partner == TD_NO_STOCK)
            continue;
        const struct td_stock *b = stock(h, 1, a->partner);
        for (size_t i = 0; i < h->stocks.count[0]; i++) {
            struct td_stock *rest = stock(h, 0, i);
            if (!is_left(rest) || rest->module != a->module || rest->layered != a->layered ||
                only_left(h, 0, a, rest->elements) != i)
                continue;
            size_t other = only_left(h, 1, b, rest->elements);
            if (other != TD_NO_STOCK)
                pair_all(h, rest, stock(h, 1, other), NULL, "its module has this partner", 0.97);
        }
    }
}

static bool is_like(const struct td_stock *s, const struct td_stock *like)
{
    return is_left(s) && s->elements == like->elements && s->layered == like->layered;
}

/* The only templates left of a size, in as many layers: there is no other choice. */
static void pair_last(struct hearing *h)
{
    for (size_t k = 0; k < h->stocks.count[0]; k++) {
        struct td_stock *a = stock(h, 0, k);
        size_t other = TD_NO_STOCK, rivals = 0;
        for (size_t i = 0; i < h->stocks.count[0] && is_left(a); i++)
            rivals += i != k && is_like(stock(h, 0, i), a);
        for (size_t i = 0; i < h->stocks.count[1] && is_left(a); i++)
            if (is_like(stock(h, 1, i), a)) {
                rivals += other != TD_NO_STOCK;
                other = i;
            }
        if (other == TD_NO_STOCK || rivals > 0 || stock(h, 1, other)->count != a->count)
            continue;
        struct td_bond bond = td_bond_of(&h->stocks, a, stock(h, 1, other));
        if (bond.score >= 0)
            pair_all(h, a, stock(h, 1, other), &bond, "the only ones of their size that were left", 0.8);
    }
}

/* --- the same tensor twice ------------------------------------------------------------------------------ */

/* A tied embedding is stored under two names on one side. Not where the other side still has one of that
 * size: then the equality may be the mistake. */
static tdbg_status pair_twins(struct hearing *h, enum td_which side, struct tdbg_error *error)
{
    for (size_t i = 0; i < h->stocks.count[side]; i++) {
        struct td_stock *s = stock(h, (int)side, i);
        bool waiting = !is_left(s) || s->count != 1 || s->elements < TD_SAMPLE_POINTS;
        for (size_t k = 0; k < h->stocks.count[!side] && !waiting; k++)
            waiting = is_left(stock(h, !side, k)) && stock(h, !side, k)->elements == s->elements;
        for (size_t k = 0; k < h->stocks.count[side] && !waiting; k++) {
            const struct td_stock *twin = stock(h, (int)side, k);
            if (twin->partner == TD_NO_STOCK || !is_the_same(h, (int)side, s, twin))
                continue;
            TD_TRY(td_pair_alias(h->m, side, s->items[0], twin->items[0], error));
            s->fused = waiting = true;
        }
    }
    return TDBG_OK;
}

tdbg_status td_match_by_weights(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct hearing h = {.m = m, .cells = ALL_CELLS, .cuts = ALL_CUTS, .questions = ALL_QUESTIONS};
    TD_TRY(td_stocks_init(&h.stocks, m, error));
    if (h.stocks.count[0] == 0 || h.stocks.count[1] == 0)
        return TDBG_OK;
    TD_TRY(assign_all(&h, error));
    for (int side = 0; side < 2; side++)
        for (size_t k = 0; k < h.stocks.count[side]; k++) {
            if (td_job_cancelled(m->work.job))
                return td_fail(error, TDBG_CANCELLED, "stopped");
            if (is_left(stock(&h, side, k)))
                pair_fused(&h, side, stock(&h, side, k));
        }
    pair_modules(&h);
    pair_last(&h);
    TD_TRY(pair_twins(&h, TD_SIDE_A, error));
    return pair_twins(&h, TD_SIDE_B, error);
}
