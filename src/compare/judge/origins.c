/* origins.c: see origins.h.
 *
 * The pairs are gone through in the order of execution, one layer after the other: a visit. What feeds a pair
 * is, as far as the dump tells,
 *
 *     the inputs of its module      where they were dumped (modules.h)
 *     a tensor of the same values   an output that the next module took in
 *     its node in the block         (flow.h): the nearest nodes on the way to it that were measured
 *     what came just before it      a chain, in which whatever agrees lets no error pass
 *
 * and an error is inherited when one of these diverged by enough to explain it. What a layer passes on is the
 * error of the residual stream behind it: measured, or that of its branches, or none where all of it agrees.
 * A norm in front of a branch sees the stream: it is as wrong as the norm is at most.
 *
 * Items of one wave have no order: there an error is born that nothing else in the wave explains, and of the
 * others nobody knows.
 */
#include "compare/judge/origins.h"

#include "compare/judge/flow.h"
#include "compare/judge/modules.h"
#include "compare/name/name.h"
#include "tensor/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stage passes an error on; a softmax or a sum that cancels enlarges it a few times. Beyond that, the stage
 * adds one of its own. A weight that is wrong in a few places spoils more of what is computed with it. */
static const double AMPLIFICATION = 4, OF_WEIGHTS = 16;

/* A NaN or an infinity may become an error of any size. */
static double size_of_error(const struct td_metrics *m)
{
    bool lost = m->nan_a + m->nan_b + m->inf_a + m->inf_b > 0;
    return lost || !isfinite(m->rel_l2) ? INFINITY : m->rel_l2;
}

/* A NaN that only one side has is no small error, however close the rest is. */
static double size_to_explain(const struct td_metrics *m)
{
    return td_metrics_lost(m) > 0 ? INFINITY : m->rel_l2;
}

static bool diverged(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_DIVERGED;
}

static double error_of(const struct td_pair *p)
{
    return diverged(p) ? size_of_error(&p->outcome.metrics) : 0;
}

static bool explains(double fed, const struct td_pair *p)
{
    return fed > 0 && size_to_explain(&p->outcome.metrics) <= AMPLIFICATION * fed;
}

/* --- copies --------------------------------------------------------------------------------------------- */

/* A divergence by what its values are known by. */
struct copy {
    uint64_t count;
    double a, b;
    struct td_pair *pair;
};

static int compare_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_copies(const void *x, const void *y)
{
    const struct copy *p = x, *q = y;
    int order =
        p->count != q->count ? (p->count > q->count) - (p->count < q->count) : compare_doubles(p->a, q->a);
    order = order ? order : compare_doubles(p->b, q->b);
    return order ? order : (p->pair > q->pair) - (p->pair < q->pair);
}

static bool same_values(const struct copy *p, const struct copy *q)
{
    return p->count == q->count && p->a == q->a && p->b == q->b;
}

/* Divergences whose values an earlier one has as well are inherited. */
static bool find_copies(struct td_pair *pairs, size_t count)
{
    enum { LEAST = 16 }; /* of elements: fewer are alike by chance */
    struct copy *list = calloc(count + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct td_metrics *m = &pairs[i].outcome.metrics;
        if (diverged(&pairs[i]) && !pairs[i].a->parameter && m->count >= LEAST && m->a.norm > 0 &&
            m->b.norm > 0)
            list[n++] = (struct copy){m->count, m->a.norm, m->b.norm, &pairs[i]};
    }
    if (n)
        qsort(list, n, sizeof *list, compare_copies);
    for (size_t i = 1, first = 0; i < n; i++) {
        if (!same_values(&list[first], &list[i]))
            first = i;
        else if (list[first].pair->a->wave < list[i].pair->a->wave)
            list[i].pair->outcome.origin = TD_INHERITED;
    }
    free(list);
    return true;
}

/* --- one visit of a layer ------------------------------------------------------------------------------- */

struct walk {
    struct td_pair *pairs;
    enum td_node *nodes; /* of each pair */
    const struct td_modules *modules;
    double carried; /* the error of the residual stream, or of whatever came last */
    double across;  /* of the stacks that ran before this one: what attention across them sees */
};

struct visit {
    struct walk *walk;
    double error[TD_NODES], effective[TD_NODES];
    bool seen[TD_NODES], reached[TD_NODES]; /* measured; or something that leads to it was */
    bool any, any_node, any_error;
    double chain;  /* the error of what came just before */
    double others; /* that of what has no node */
};

static enum td_node node_of(const struct visit *v, const struct td_pair *p)
{
    return v->walk->nodes[p - v->walk->pairs];
}

static bool takes_part(const struct td_pair *p)
{
    return p->a && p->b && td_pair_measured(p) && !p->a->parameter;
}

/* Ids, masks and tables of angles stand beside the flow: that they agree stops no error. */
static bool is_beside(const struct td_pair *p)
{
    static const char *const words[] = {"mask", "ids", "position", "positions",
                                        "cos",  "sin", "rotary",   "freqs"};
    enum td_kind kind = td_dtype_facts(p->a->parts[0]->dtype)->kind;
    struct td_word word;
    size_t length = strlen(p->a->stage);
    if (kind != TD_FLOAT && kind != TD_COMPLEX)
        return true;
    for (size_t at = 0; td_word_next(p->a->stage, length, &at, false, &word);)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (td_word_is(&word, words[i]))
                return true;
    return false;
}

static double most_of(const double *errors, uint32_t nodes)
{
    double most = 0;
    for (int n = 0; n < TD_NODES; n++)
        if (nodes >> n & 1)
            most = fmax(most, errors[n]);
    return most;
}

/* What reaches a node that was not measured is what feeds it. A norm that was tells what it saw. */
static void settle(struct visit *v)
{
    for (int n = 1; n < TD_NODES; n++) {
        double *e = &v->effective[n];
        v->reached[n] = v->seen[n];
        for (int from = 1; from < n; from++)
            v->reached[n] =
                v->reached[n] || (td_node_feeders((enum td_node)n) >> from & 1 && v->reached[from]);
        *e = v->seen[n] ? v->error[n] : most_of(v->effective, td_node_feeders((enum td_node)n));
        if (n == TD_NODE_STREAM && !v->seen[n])
            *e = v->seen[TD_NODE_NORM_ATTN] ? fmin(v->walk->carried, v->error[TD_NODE_NORM_ATTN])
                                            : v->walk->carried;
        if (n == TD_NODE_MIDDLE && !v->seen[n] && v->seen[TD_NODE_NORM_MLP])
            *e = fmin(*e, v->error[TD_NODE_NORM_MLP]);
    }
    if (v->seen[TD_NODE_ROUTER] && v->error[TD_NODE_ROUTER] > 0) /* other experts: any error */
        v->effective[TD_NODE_PRODUCT] = v->effective[TD_NODE_DOWN] = v->effective[TD_NODE_ROUTER] = INFINITY;
}

static void survey(struct visit *v, const struct td_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_pair *p = &pairs[i];
        if (!takes_part(p))
            continue;
        enum td_node node = node_of(v, p);
        v->any = v->any || !is_beside(p);
        v->any_error = v->any_error || diverged(p);
        v->any_node = v->any_node || node != TD_NODE_OTHER;
        v->seen[node] = true;
        v->error[node] = fmax(v->error[node], error_of(p));
    }
    settle(v);
}

/* The largest error that feeds a node: the stream's own is told apart from what the norm saw of it. */
static double fed_to_node(const struct visit *v, const struct td_pair *p, enum td_node node)
{
    double fed = most_of(v->effective, td_node_feeders(node));
    if (node == TD_NODE_STREAM || node == TD_NODE_NORM_ATTN)
        fed = v->seen[TD_NODE_STREAM] && node != TD_NODE_STREAM ? v->error[TD_NODE_STREAM] : v->walk->carried;
    else if (node == TD_NODE_NORM_MLP && !v->seen[TD_NODE_MIDDLE])
        fed = fmax(v->effective[TD_NODE_STREAM], v->effective[TD_NODE_NORM_ATTN_POST]);
    bool reached = false;
    for (int from = 1; from < TD_NODES; from++)
        reached = reached || (td_node_feeders(node) >> from & 1 && v->reached[from]);
    if (!reached && p->a->stage_rank == td_stage_places)
        fed = fmax(fed, v->others);
    return p->a->cross ? fmax(fed, v->walk->across) : fed;
}

static double fed_to_other(const struct visit *v, const struct td_pair *p)
{
    double fed = v->chain;
    if (v->any_node)
        fed = fmax(fed, v->effective[p->a->layer >= 0 ? TD_NODE_STREAM : TD_NODE_OUT]);
    return p->a->cross ? fmax(fed, v->walk->across) : fed;
}

/* `certain` feeds the pair, `possible` may. */
static void judge(const struct visit *v, struct td_pair *p, double certain, double possible, bool graph)
{
    struct td_intake in = td_modules_intake(v->walk->modules, p, size_of_error);
    if (in.known && !graph)
        certain = possible = in.inputs;
    certain = fmax(certain, OF_WEIGHTS * in.parameters);
    possible = fmax(possible, certain);
    if (p->outcome.origin == TD_ORIGIN_NONE)
        p->outcome.origin = explains(certain, p)    ? TD_INHERITED
                            : explains(possible, p) ? TD_ORIGIN_NONE
                                                    : TD_BORN;
}

/* The items of a wave that have no node: which of them comes first is not known. */
static void visit_others(struct visit *v, struct td_pair *pairs, size_t count)
{
    double most = 0, second = 0, before = v->chain;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!takes_part(&pairs[i]) || node_of(v, &pairs[i]) != TD_NODE_OTHER)
            continue;
        double error = error_of(&pairs[i]);
        any = any || error > 0 || !is_beside(&pairs[i]);
        second = fmax(second, fmin(most, error));
        most = fmax(most, error);
    }
    for (size_t i = 0; i < count; i++) {
        struct td_pair *p = &pairs[i];
        if (!takes_part(p) || !diverged(p) || node_of(v, p) != TD_NODE_OTHER)
            continue;
        double certain = fed_to_other(v, p), others = error_of(p) == most ? second : most;
        judge(v, p, certain, fmax(certain, others), false);
    }
    v->chain = any ? most : before;
    v->others = any ? most : v->others;
}

static void visit_nodes(struct visit *v, struct td_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct td_pair *p = &pairs[i];
        enum td_node node = takes_part(p) ? node_of(v, p) : TD_NODE_OTHER;
        if (node == TD_NODE_OTHER)
            continue;
        double fed = fed_to_node(v, p, node);
        if (diverged(p))
            judge(v, p, fed, fed, p->a->stage_rank < td_stage_places);
        if (node != TD_NODE_CONSTANT)
            v->chain = most_of(v->error, td_node_branches(node));
    }
}

static size_t end_of_wave(const struct td_pair *pairs, size_t begin, size_t end)
{
    const struct td_item *first = NULL;
    for (; begin < end; begin++) {
        if (!takes_part(&pairs[begin]))
            continue;
        if (first && pairs[begin].a->wave != first->wave)
            return begin;
        first = first ? first : pairs[begin].a;
    }
    return end;
}

static void visit_layer(struct walk *walk, size_t begin, size_t end)
{
    struct visit v = {.walk = walk, .chain = walk->carried};
    survey(&v, walk->pairs + begin, end - begin);
    for (size_t i = begin, next; i < end; i = next) {
        next = end_of_wave(walk->pairs, i, end);
        visit_nodes(&v, walk->pairs + i, next - i);
        visit_others(&v, walk->pairs + i, next - i);
    }
    if (v.any && !v.any_error)
        walk->carried = 0;
    else if (v.any && v.any_node)
        walk->carried = fmax(v.effective[TD_NODE_OUT], v.seen[TD_NODE_OTHER] ? v.chain : 0);
    else if (v.any)
        walk->carried = v.chain;
}

static int64_t layer_of(const struct td_pair *p)
{
    return p->a ? p->a->layer : -1;
}

/* A visit: one layer, with what has none behind it; or what has none in front of the first. */
static size_t end_of_visit(const struct td_pair *pairs, size_t begin, size_t count)
{
    int64_t layer = layer_of(&pairs[begin]);
    while (begin < count && (layer_of(&pairs[begin]) < 0 || layer_of(&pairs[begin]) == layer))
        begin++;
    return begin;
}

/* --- the first ------------------------------------------------------------------------------------------ */

/* How many times what the rule allows. */
static double beyond_floor(const struct td_pair *p)
{
    double size = size_to_explain(&p->outcome.metrics);
    return p->outcome.ruling.floor > 0 ? size / p->outcome.ruling.floor : size;
}

/* In the first wave that has any; there the largest, but not what another of them explains. */
static struct td_pair *find_first(struct td_pair *pairs, size_t count)
{
    struct td_pair *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct td_pair *p = &pairs[i];
        if (!diverged(p))
            continue;
        bool inherited = p->outcome.origin == TD_INHERITED,
             before = first && first->outcome.origin == TD_INHERITED;
        if (!first || p->a->wave < first->a->wave ||
            (p->a->wave == first->a->wave &&
             (inherited != before ? before : beyond_floor(p) > beyond_floor(first))))
            first = p;
    }
    return first;
}

static void walk_through(struct walk *walk, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (takes_part(&walk->pairs[i]))
            walk->nodes[i] = td_node_of(walk->pairs[i].a);
    for (size_t i = 0, end; i < count; i = end) {
        end = end_of_visit(walk->pairs, i, count);
        if (layer_of(&walk->pairs[i]) == 0)
            walk->across = fmax(walk->across, walk->carried);
        visit_layer(walk, i, end);
    }
}

struct td_pair *td_origins_find(struct td_pair *pairs, size_t count, enum td_order_evidence order)
{
    struct td_modules *modules = td_modules_open(pairs, count);
    struct walk walk = {.pairs = pairs, .modules = modules};
    walk.nodes = calloc(count + 1, sizeof *walk.nodes);
    bool ok = modules && walk.nodes && find_copies(pairs, count);
    if (ok)
        walk_through(&walk, count);
    for (size_t i = 0; i < count; i++) {
        if (!diverged(&pairs[i]))
            continue;
        if (!ok || pairs[i].a->parameter)
            pairs[i].outcome.origin = TD_BORN; /* a weight is computed from nothing */
        else if (order == TD_ORDER_UNKNOWN && pairs[i].outcome.origin == TD_INHERITED)
            pairs[i].outcome.origin = TD_ORIGIN_NONE;
    }
    free(walk.nodes);
    td_modules_close(&modules);
    return find_first(pairs, count);
}
