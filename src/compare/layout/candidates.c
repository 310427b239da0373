/* candidates.c: see candidates.h.
 *
 * Each side starts as one or more variants (shards joined this way or that, a part of a fused tensor, an axis
 * of ranks taken or summed, key-value heads repeated), a variant being some steps and the shape they lead to.
 * Any two variants of equally many elements are then lined up: the axes of the finer one are permuted until
 * the coarser one is a merge of neighbours.
 */
#include "compare/layout/candidates.h"

#include <stdlib.h>
#include <string.h>

/* Beyond this many axes the permutations are no longer tried: 6! is 720 views to sample. */
enum { MAX_PERMUTED = 6, MAX_CANDIDATES = 512, MAX_VARIANTS = 160 };

/* Priors. Their order is what counts: a step that many dumps need is cheaper than one that few do. */
enum {
    COST_SQUEEZE = 1,
    COST_JOIN = 1,
    COST_SPLIT = 1,
    COST_FIRST = 2,
    COST_PERMUTE = 2,      /* the last axis stays: heads and tokens exchanged */
    COST_PERMUTE_LAST = 3, /* the last axis moves: a transposed matrix */
    COST_SUM = 3,
    COST_REPEAT = 3,
    COST_FUSED = 1,
    COST_BARE_RESHAPE = 4,
    COST_TAKE_FIRST = 2, /* the leading axis holds tensor-parallel ranks */
    COST_TAKE = 5,
    COST_SUM_AXIS = 6,
    COST_LAST = 2,
    COST_CUT = 8,
    COST_CUT_FRONT = 9
};

struct variant {
    struct td_steps steps;
    struct td_shape shape;
    int cost;
    int64_t cut; /* as in td_candidate */
    enum td_proof proof;
};

struct variants {
    int count;
    struct variant list[MAX_VARIANTS];
};

static int64_t elements(const struct td_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= s->size[i];
    return n;
}

static bool same_shape(const struct td_shape *x, const struct td_shape *y)
{
    return x->ndim == y->ndim && memcmp(x->size, y->size, (size_t)x->ndim * sizeof x->size[0]) == 0;
}

static bool add_step(struct variant *v, struct td_step step)
{
    return td_steps_add(&v->steps, step);
}

static void keep(struct variants *all, const struct variant *v)
{
    if (all->count < MAX_VARIANTS)
        all->list[all->count++] = *v;
}

static struct variant squeezed(struct variant v)
{
    struct td_step step = {.kind = TD_STEP_SQUEEZE};
    struct td_shape rest = {0};
    for (int i = 0; i < v.shape.ndim; i++)
        if (v.shape.size[i] == 1)
            step.list.size[step.list.ndim++] = i;
        else
            rest.size[rest.ndim++] = v.shape.size[i];
    if (step.list.ndim == 0 || !add_step(&v, step))
        return v;
    v.shape = rest;
    v.cost += COST_SQUEEZE;
    return v;
}

static void remove_size(struct td_shape *s, int axis)
{
    for (int i = axis; i + 1 < s->ndim; i++)
        s->size[i] = s->size[i + 1];
    s->ndim--;
}

/* --- variants of one side ------------------------------------------------------------------------------ */

/* Experts one by one, as who stacks them does: along an axis of their own, the first. */
static void keep_stacked(struct variants *all, const struct td_item *item)
{
    struct variant v = {.shape = item->parts[0]->shape, .cost = COST_JOIN};
    if (v.shape.ndim < 1 || v.shape.ndim == TD_MAX_DIMS)
        return;
    td_shape_insert(&v.shape, 0, item->part_count);
    add_step(&v, (struct td_step){.kind = TD_STEP_JOIN, .from = 1});
    add_step(&v, (struct td_step){.kind = TD_STEP_RESHAPE, .list = v.shape});
    keep(all, &v);
}

static void shard_variants(struct variants *all, const struct td_item *item)
{
    struct variant base = {.shape = item->parts[0]->shape};
    if (item->experts == TD_EXPERTS_JOINED) {
        keep_stacked(all, item);
        return;
    }
    if (item->part_count == 1) {
        keep(all, &base);
        return;
    }
    for (int axis = 0; axis < base.shape.ndim; axis++) {
        struct variant v = base;
        v.shape.size[axis] = 0;
        for (int p = 0; p < item->part_count; p++)
            if (item->parts[p]->shape.ndim == base.shape.ndim)
                v.shape.size[axis] += item->parts[p]->shape.size[axis];
        v.cost = COST_JOIN;
        add_step(&v, (struct td_step){.kind = TD_STEP_JOIN, .axis = axis});
        keep(all, &v);
    }
    struct variant first = base, sum = base;
    first.cost = COST_FIRST;
    add_step(&first, (struct td_step){.kind = TD_STEP_FIRST});
    keep(all, &first);
    sum.cost = COST_SUM;
    add_step(&sum, (struct td_step){.kind = TD_STEP_SUM});
    keep(all, &sum);
}

/* Where part `f` of a fused axis of `whole` elements begins when it has `length`: q first, and k and v, the
 * last two, of one size; gate and up alike. */
static int64_t fused_start(struct td_fusion f, int64_t whole, int64_t length)
{
    return f.index == 0 ? 0 : whole - (f.of - f.index) * length;
}

/* Part `f`, `length` long, of an axis that is `groups` times all parts one after the other, in whole units.
 */
static void keep_part(struct variants *all, const struct variant *base, int axis, struct td_fusion f,
                      int64_t length, int64_t groups, int64_t unit, int64_t cut)
{
    int64_t whole = base->shape.size[axis];
    if (whole % (groups * unit) || length % (groups * unit))
        return;
    int64_t slots = whole / (groups * unit), take = length / (groups * unit);
    int64_t from = fused_start(f, slots, take);
    int at = axis + (groups > 1);
    struct variant v = *base;
    if (take < 1 || from < 0 || v.shape.ndim + 2 > TD_MAX_DIMS)
        return;
    if (groups > 1) {
        v.shape.size[axis] = groups;
        td_shape_insert(&v.shape, at, slots);
        if (unit > 1)
            td_shape_insert(&v.shape, at + 1, unit);
        add_step(&v, (struct td_step){.kind = TD_STEP_RESHAPE, .list = v.shape});
        v.cost += COST_SPLIT;
    }
    add_step(&v, (struct td_step){.kind = TD_STEP_SLICE, .axis = at, .from = from, .to = from + take});
    v.shape.size[at] = take;
    v.cost += COST_FUSED;
    v.cut = cut;
    keep(all, &v);
}

/* How many groups of q.. k v there are when a head has `size` channels; 0 when none fit. */
static int64_t groups_of_heads(struct td_fusion f, int64_t whole, int64_t length, int64_t size)
{
    int64_t slots = f.index == 0 ? 0 : whole / length;
    if (f.index == 0 && (whole - length) % (f.of - 1) == 0)
        slots = whole / ((whole - length) / (f.of - 1));
    return slots < 2 || whole % (slots * size) ? 0 : whole / (slots * size);
}

/* Ranks of one shape, joined on `axis`; else 1. */
static int64_t ranks_along(const struct td_item *item, const struct variant *v, int axis)
{
    bool joined =
        v->steps.count == 1 && v->steps.step[0].kind == TD_STEP_JOIN && v->steps.step[0].axis == axis;
    for (int p = 1; p < item->part_count && joined; p++)
        joined = same_shape(&item->parts[p]->shape, &item->parts[0]->shape);
    return joined ? item->part_count : 1;
}

/* The part of `want` elements out of the first `count` variants, which hold it along any of their axes: on
 * each rank or on the whole where `head` is 0, else per group of heads of that size. */
static void part_variants(struct variants *all, int count, const struct td_item *item, struct td_fusion f,
                          int64_t want, int64_t head)
{
    for (int i = 0; i < count; i++)
        for (int axis = 0; axis < all->list[i].shape.ndim; axis++) {
            const struct variant base = all->list[i];
            int64_t whole = base.shape.size[axis], rest = elements(&base.shape) / (whole ? whole : 1);
            if (rest == 0 || want % rest || want / rest >= whole)
                continue;
            int64_t length = want / rest;
            int64_t groups = head ? groups_of_heads(f, whole, length, head) : ranks_along(item, &base, axis);
            int64_t cut = ((i * TD_MAX_DIMS + axis) * 1024 + head) * 2 + 1; /* one number for each way */
            if (groups > 1)
                keep_part(all, &base, axis, f, length, groups, head ? head : 1, cut + 1);
            if (!head)
                keep_part(all, &base, axis, f, length, 1, 1, cut);
        }
}

/* One of q, k, v out of [.., qkv, ..]: side by side, on each rank or on the whole; or per head group
 * ([groups, q.. k v, head]), for which many sizes of a head come into question, and so last. The other side
 * is the part of all its ranks, or of each. */
static bool divides_an_axis(const struct td_shape *shape, int64_t head)
{
    for (int i = 0; i < shape->ndim; i++)
        if (shape->size[i] > head && shape->size[i] % head == 0)
            return true;
    return false;
}

static void fused_variants(struct variants *all, const struct td_item *item, struct td_fusion f,
                           const struct td_item *other, const struct td_head_sizes *heads)
{
    int before = all->count;
    int64_t want = elements(&other->parts[0]->shape);
    if (f.of == 2) /* gate and up, channel by channel */
        part_variants(all, before, item, f, want * other->part_count, 1);
    for (int h = -1; h < td_head_sizes_any(heads); h++) {
        int64_t head = h < 0 ? 0 : td_head_size(heads, h);
        if (h >= 0 && (head == 0 || want * other->part_count % head))
            continue;
        /* A dump that shows heads of one size may yet have others: the fused axis is a number of them. */
        if (h >= td_head_sizes_count(heads) && !divides_an_axis(&item->parts[0]->shape, head))
            continue;
        part_variants(all, before, item, f, want * other->part_count, head);
        if (other->part_count > 1)
            part_variants(all, before, item, f, want, head);
    }
    /* The whole fused tensor is no candidate for one of its parts. */
    memmove(all->list, all->list + before, (size_t)(all->count - before) * sizeof all->list[0]);
    all->count -= before;
}

/* A vector or a matrix, whose axes do not tell ranks, batches and heads from anything else. */
static bool is_plain(const struct td_shape *s)
{
    return s->ndim == 1 || s->ndim == 2;
}

/* An axis too many: ranks, of which the first is meant or which add up. */
static void rank_variants(struct variants *all, const struct variant *base, int64_t want)
{
    for (int axis = 0; axis < base->shape.ndim; axis++) {
        int64_t n = base->shape.size[axis];
        if (n < 2 || n > 1024 || elements(&base->shape) / n != want)
            continue;
        struct variant v = *base;
        remove_size(&v.shape, axis);
        v.cost += axis == 0 ? COST_TAKE_FIRST : COST_TAKE;
        v.proof = axis > 0 ? TD_PROOF_ALL : is_plain(&v.shape) ? TD_PROOF_ONCE : TD_PROOF_NONE;
        add_step(&v, (struct td_step){.kind = TD_STEP_TAKE, .axis = axis, .from = 0, .to = 1});
        keep(all, &v);
        v.cost += COST_LAST; /* the last token alone, as logits are computed */
        v.proof = TD_PROOF_ALL;
        v.steps.step[v.steps.count - 1].from = n - 1;
        v.steps.step[v.steps.count - 1].to = n;
        keep(all, &v);
        v = *base;
        remove_size(&v.shape, axis);
        v.cost += COST_SUM_AXIS;
        v.proof = TD_PROOF_ALL;
        if (add_step(&v, (struct td_step){.kind = TD_STEP_SUM, .axis = axis, .from = 1}))
            keep(all, &v);
    }
}

/* Fewer elements than the other side by a whole factor: heads that the other side has repeated. */
static void repeat_variants(struct variants *all, const struct variant *base, int64_t want,
                            const struct td_head_sizes *heads)
{
    int64_t have = elements(&base->shape);
    if (have == 0 || want % have)
        return;
    int64_t times = want / have;
    for (int axis = 0; axis <= base->shape.ndim && base->shape.ndim + 1 < TD_MAX_DIMS; axis++) {
        struct variant v = *base;
        td_shape_insert(&v.shape, axis, times);
        v.cost += COST_REPEAT;
        v.proof = is_plain(&base->shape) ? TD_PROOF_ONCE : TD_PROOF_NONE;
        if (add_step(&v, (struct td_step){.kind = TD_STEP_REPEAT, .axis = axis, .to = times}))
            keep(all, &v);
    }
    for (int axis = 0; axis < base->shape.ndim && base->shape.ndim + 2 < TD_MAX_DIMS; axis++)
        for (int h = 0; h < heads->all; h++) { /* [kv * d]: the repeat goes between kv and d */
            int64_t d = heads->size[h];
            if (base->shape.size[axis] % d || base->shape.size[axis] == d)
                continue;
            struct variant v = *base;
            v.shape.size[axis] /= d;
            td_shape_insert(&v.shape, axis + 1, d);
            v.cost += COST_REPEAT + COST_SPLIT;
            v.proof = is_plain(&base->shape) ? TD_PROOF_ONCE : TD_PROOF_NONE;
            add_step(&v, (struct td_step){.kind = TD_STEP_RESHAPE, .list = v.shape});
            td_shape_insert(&v.shape, axis + 1, times);
            if (add_step(&v, (struct td_step){.kind = TD_STEP_REPEAT, .axis = axis + 1, .to = times}))
                keep(all, &v);
        }
}

/* The one axis that is longer than the other side's where all others agree as they stand; else -1. */
static int longer_axis(const struct td_shape *shape, const struct td_shape *other)
{
    int axis = -1;
    if (shape->ndim != other->ndim)
        return -1;
    for (int i = 0; i < other->ndim; i++) {
        if (shape->size[i] == other->size[i])
            continue;
        if (axis >= 0 || shape->size[i] < other->size[i])
            return -1;
        axis = i;
    }
    return axis;
}

/* Padding cut off behind or in front: of the axis that is longer, or where the axes are not those of the
 * other side, of any whose other elements can be the other side's. */
static void cut_variants(struct variants *all, const struct variant *base, const struct td_shape *other)
{
    int longer = longer_axis(&base->shape, other);
    int64_t want = elements(other), have = elements(&base->shape);
    for (int axis = 0; axis < base->shape.ndim && want > 0 && have > 0; axis++) {
        int64_t whole = base->shape.size[axis], rest = have / whole, kept = want / rest;
        if (longer >= 0 ? axis != longer : kept < 2 || kept * rest != want)
            continue;
        for (int front = 0; front < 2; front++) {
            struct variant v = *base;
            int64_t from = front ? whole - kept : 0;
            v.shape.size[axis] = kept;
            v.cost += (front ? COST_CUT_FRONT : COST_CUT) + (longer < 0);
            v.proof = TD_PROOF_ALL;
            if (add_step(&v, (struct td_step){
                                 .kind = TD_STEP_SLICE, .axis = axis, .from = from, .to = from + kept}))
                keep(all, &v);
        }
    }
}

/* --- lining two variants up ---------------------------------------------------------------------------- */

static bool only_squeezes(const struct td_steps *steps)
{
    return steps->count == 0 || (steps->count == 1 && steps->step[0].kind == TD_STEP_SQUEEZE);
}

/* Each side is read from its first element to its last. */
static bool keeps_order(const struct td_steps *steps)
{
    for (int i = 0; i < steps->count; i++)
        if (steps->step[i].kind != TD_STEP_SQUEEZE && steps->step[i].kind != TD_STEP_RESHAPE)
            return false;
    return true;
}

bool td_candidates_push(struct td_candidates *c, const struct td_candidate *candidate)
{
    if (c->count == MAX_CANDIDATES)
        return true;
    if (c->count == c->capacity) {
        int capacity = c->capacity ? c->capacity * 2 : 16;
        struct td_candidate *list = reallocarray(c->list, (size_t)capacity, sizeof *list);
        if (!list)
            return false;
        c->list = list;
        c->capacity = capacity;
    }
    c->list[c->count++] = *candidate;
    return true;
}

static bool push(struct td_candidates *c, const struct variant *a, const struct variant *b)
{
    const struct td_candidate candidate = {
        .layout = {.a = a->steps, .b = b->steps, .shape = a->shape, .part = a->cut || b->cut},
        .cost = a->cost + b->cost,
        .cut = a->cut ? a->cut : b->cut,
        .plain = keeps_order(&a->steps) && keeps_order(&b->steps),
        .as_it_stands = only_squeezes(&a->steps) && only_squeezes(&b->steps),
        .proof = a->proof > b->proof ? a->proof : b->proof,
    };
    return td_candidates_push(c, &candidate);
}

/* Every axis of `coarse` is a product of neighbouring axes of `fine`. */
static bool merges_to(const struct td_shape *fine, const struct td_shape *coarse)
{
    int at = 0;
    for (int i = 0; i < coarse->ndim; i++) {
        int64_t product = 1;
        int first = at;
        while (at < fine->ndim && (product < coarse->size[i] || at == first))
            product *= fine->size[at++];
        if (product != coarse->size[i])
            return false;
    }
    return at == fine->ndim;
}

static bool next_permutation(int64_t *p, int n)
{
    int i = n - 2;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return false;
    int j = n - 1;
    while (p[j] < p[i])
        j--;
    int64_t t = p[i];
    p[i] = p[j];
    p[j] = t;
    for (int l = i + 1, r = n - 1; l < r; l++, r--) {
        t = p[l];
        p[l] = p[r];
        p[r] = t;
    }
    return true;
}

static bool is_identity(const struct td_shape *order)
{
    for (int i = 0; i < order->ndim; i++)
        if (order->size[i] != i)
            return false;
    return true;
}

static bool line_up(struct td_candidates *c, const struct variant *a, const struct variant *b)
{
    if (elements(&a->shape) != elements(&b->shape))
        return true;
    bool move_a = a->shape.ndim > b->shape.ndim || (a->shape.ndim == b->shape.ndim && c->b_in_order);
    const struct variant *fine = move_a ? a : b, *coarse = move_a ? b : a;
    int n = fine->shape.ndim;
    bool natural = false;
    struct td_shape order = {.ndim = n};
    for (int i = 0; i < n; i++)
        order.size[i] = i;
    do {
        struct td_shape permuted = {.ndim = n};
        for (int i = 0; i < n; i++)
            permuted.size[i] = fine->shape.size[order.size[i]];
        if (!merges_to(&permuted, &coarse->shape))
            continue;
        struct variant f = *fine, k = *coarse;
        bool identity = is_identity(&order);
        natural = natural || identity;
        if (!identity) {
            if (!add_step(&f, (struct td_step){.kind = TD_STEP_PERMUTE, .list = order}))
                continue;
            f.cost += n && order.size[n - 1] == n - 1 ? COST_PERMUTE : COST_PERMUTE_LAST;
        }
        f.shape = permuted;
        if (!same_shape(&permuted, &k.shape)) {
            if (!add_step(&k, (struct td_step){.kind = TD_STEP_RESHAPE, .list = permuted}))
                continue;
            k.cost += COST_SPLIT;
            k.shape = permuted;
        }
        if (!push(c, move_a ? &f : &k, move_a ? &k : &f))
            return false;
    } while (n <= MAX_PERMUTED && next_permutation(order.size, n));

    if (!natural) { /* the same elements in the same order, under another shape */
        struct variant r = *b;
        if (add_step(&r, (struct td_step){.kind = TD_STEP_RESHAPE, .list = a->shape})) {
            r.shape = a->shape;
            r.cost += COST_BARE_RESHAPE;
            return push(c, a, &r);
        }
    }
    return true;
}

/* Stable, so that equal costs keep the order in which they were thought of; the lists are short. */
static void sort_by_cost(struct td_candidates *c)
{
    for (int i = 1; i < c->count; i++) {
        struct td_candidate x = c->list[i];
        int j = i;
        for (; j > 0 && c->list[j - 1].cost > x.cost; j--)
            c->list[j] = c->list[j - 1];
        c->list[j] = x;
    }
}

/* The cheap variants of both sides against each other; only when nothing has equally many elements, the
 * far-fetched ones. */
static bool combine(struct td_candidates *out, struct variants *a, struct variants *b,
                    const struct td_head_sizes *heads)
{
    int na = a->count, nb = b->count;
    bool ok = true;
    for (int i = 0; i < na && ok; i++)
        for (int j = 0; j < nb && ok; j++)
            ok = line_up(out, &a->list[i], &b->list[j]);
    if (!ok || out->count)
        return ok;
    for (int i = 0; i < na && ok; i++)
        for (int j = 0; j < nb && ok; j++) {
            const struct variant x = a->list[i], y = b->list[j];
            int64_t ex = elements(&x.shape), ey = elements(&y.shape);
            a->count = b->count = 0;
            repeat_variants(ex < ey ? a : b, ex < ey ? &x : &y, ex < ey ? ey : ex, heads);
            rank_variants(ex > ey ? a : b, ex > ey ? &x : &y, ex > ey ? ey : ex);
            cut_variants(ex > ey ? a : b, ex > ey ? &x : &y, ex > ey ? &y.shape : &x.shape);
            for (int k = 0; k < a->count && ok; k++)
                ok = line_up(out, &a->list[k], &y);
            for (int k = 0; k < b->count && ok; k++)
                ok = line_up(out, &x, &b->list[k]);
            a->list[i] = x;
            b->list[j] = y;
        }
    return ok;
}

static tdbg_status side_variants(struct variants *out, const struct td_item *item, struct td_fusion fusion,
                                 const struct td_item *other, const struct td_head_sizes *heads)
{
    shard_variants(out, item);
    if (fusion.of > 0)
        fused_variants(out, item, fusion, other, heads);
    for (int i = 0; i < out->count; i++)
        out->list[i] = squeezed(out->list[i]);
    return TDBG_OK;
}

tdbg_status td_candidates_init(struct td_candidates *out, const struct td_match *match,
                               const struct td_head_sizes *heads, struct tdbg_error *error)
{
    *out = (struct td_candidates){.b_in_order = !td_tensor_is_dense(match->b->parts[0]) &&
                                                td_tensor_is_dense(match->a->parts[0])};
    struct variants *both = malloc(2 * sizeof *both); /* large and mostly unused: not worth clearing */
    if (!both)
        return td_fail_nomem(error);
    td_arena_init(&out->orders, TD_MAX_METADATA);
    both[0].count = both[1].count = 0;
    tdbg_status status = side_variants(&both[0], match->a, match->fused_a, match->b, heads);
    if (status == TDBG_OK)
        status = side_variants(&both[1], match->b, match->fused_b, match->a, heads);
    if (status == TDBG_OK && !combine(out, &both[0], &both[1], heads))
        status = td_fail_nomem(error);
    free(both);
    if (status != TDBG_OK) {
        td_candidates_release(out);
        return status;
    }
    sort_by_cost(out);
    return TDBG_OK;
}

void td_candidates_release(struct td_candidates *c)
{
    free(c->list);
    td_arena_release(&c->orders);
    *c = (struct td_candidates){0};
}
