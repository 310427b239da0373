/* profile_compare.c: see profile_compare.h. */
#include "analyse/profile_compare.h"

#include "analyse/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Two profiles --------------------------------------------------------------------------------------- */

struct compare {
    struct td_profile_comparison *out;
    const struct td_profile *a, *b;
    size_t room;
    double *left, *right; /* room for a value per step of each side */
};

const char *td_change_name(enum td_change change)
{
    static const char *const names[] = {"same", "slower", "faster", "unknown", "only_a", "only_b"};
    return names[change];
}

/* The times of a node in the steps that called it; of the root: of the steps. */
static size_t times_of(const struct td_profile *p, uint32_t node, double *out)
{
    size_t count = 0;
    if (node == TD_PROFILE_ROOT) {
        for (; count < p->kept; count++)
            out[count] = (double)p->steps[count].end_ns - (double)p->steps[count].begin_ns;
        return count;
    }
    const float *series = td_profile_series(p, node);
    for (size_t i = 0; series && i < p->kept; i++)
        if (!isnan(series[i]))
            out[count++] = (double)series[i];
    return count;
}

static bool add_pair(struct compare *c, uint32_t a, uint32_t b, uint32_t depth)
{
    if (c->out->count == c->room) {
        size_t room = c->room ? c->room * 2 : 256;
        struct td_profile_pair *bigger = realloc(c->out->pairs, room * sizeof *bigger);
        if (!bigger)
            return false;
        c->out->pairs = bigger;
        c->room = room;
    }
    struct td_profile_pair *pair = &c->out->pairs[c->out->count++];
    *pair = (struct td_profile_pair){.a = a, .b = b, .depth = depth, .change = TD_CHANGE_UNKNOWN};
    if (a == TD_PROFILE_NONE || b == TD_PROFILE_NONE) {
        pair->change = a == TD_PROFILE_NONE ? TD_CHANGE_ONLY_B : TD_CHANGE_ONLY_A;
        pair->shift = (struct td_shift){.shift = NAN, .p = 1};
        return true;
    }
    size_t m = times_of(c->a, a, c->left), n = times_of(c->b, b, c->right);
    c->out->tested += m >= TD_SHIFT_LEAST && n >= TD_SHIFT_LEAST;
    return td_shift_measure(&pair->shift, c->left, m, c->right, n);
}

/* All below a node of one side that has no partner. */
static bool add_alone(struct compare *c, const struct td_profile *p, uint32_t top, bool is_a, uint32_t depth)
{
    for (uint32_t node = top;;) {
        uint32_t below = p->nodes[node].depth - p->nodes[top].depth;
        if (!add_pair(c, is_a ? node : TD_PROFILE_NONE, is_a ? TD_PROFILE_NONE : node, depth + below))
            return false;
        if (p->nodes[node].first) {
            node = p->nodes[node].first;
            continue;
        }
        while (node != top && !p->nodes[node].next)
            node = p->nodes[node].parent;
        if (node == top)
            return true;
        node = p->nodes[node].next;
    }
}

/* Walks A's tree; what only B has comes at the end of its parent's children. */
static bool pair_up(struct compare *c)
{
    uint32_t node = TD_PROFILE_ROOT, *partner = malloc(c->a->node_count * sizeof *partner);
    bool good = partner != NULL;
    if (good)
        partner[TD_PROFILE_ROOT] = TD_PROFILE_ROOT;
    for (bool down = true; good;) {
        uint32_t next = down ? c->a->nodes[node].first : c->a->nodes[node].next;
        if (!next) {
            uint32_t above = down ? node : c->a->nodes[node].parent;
            uint32_t depth = above == TD_PROFILE_ROOT ? 0 : c->a->nodes[above].depth + 1;
            for (uint32_t i = c->b->nodes[partner[above]].first; good && i; i = c->b->nodes[i].next)
                if (td_profile_find(c->a, above, td_profile_name_of(c->b, i)) == TD_PROFILE_NONE)
                    good = add_alone(c, c->b, i, false, depth);
            if (above == TD_PROFILE_ROOT)
                break;
            node = above;
            down = false;
            continue;
        }
        node = next;
        partner[node] =
            td_profile_find(c->b, partner[c->a->nodes[node].parent], td_profile_name_of(c->a, node));
        down = partner[node] != TD_PROFILE_NONE;
        good = down ? add_pair(c, node, partner[node], c->a->nodes[node].depth)
                    : add_alone(c, c->a, node, true, c->a->nodes[node].depth);
    }
    free(partner);
    return good;
}

/* Benjamini-Hochberg: the largest p that counts when 5 % of what is reported may be chance. Scopes within
 * each other change together, which the method allows. */
static bool chance_of(const struct td_profile_comparison *out, double *chance)
{
    double *p = malloc((out->tested + 1) * sizeof *p);
    size_t count = 0;
    if (!p)
        return false;
    for (size_t i = 0; i < out->count; i++)
        if (!isnan(out->pairs[i].shift.shift) && out->pairs[i].change == TD_CHANGE_UNKNOWN)
            p[count++] = out->pairs[i].shift.p;
    td_order_sort(p, count);
    *chance = -1;
    for (size_t i = 0; i < count; i++)
        if (p[i] <= 0.05 * (double)(i + 1) / (double)count)
            *chance = p[i];
    free(p);
    return true;
}

static bool judge(struct td_profile_comparison *out)
{
    double step = out->pairs[0].shift.median_a, chance;
    if (!chance_of(out, &chance))
        return false;
    for (size_t i = 0; i < out->count; i++) {
        struct td_profile_pair *pair = &out->pairs[i];
        const struct td_shift *s = &pair->shift;
        if (pair->change != TD_CHANGE_UNKNOWN || isnan(s->shift))
            continue;
        double least = fmax(0.02 * s->median_a, isnan(step) ? 0 : 0.001 * step);
        pair->change = TD_CHANGE_NONE;
        if (s->p > chance || s->low * s->high <= 0 || fabs(s->shift) < least)
            continue;
        pair->change = s->shift > 0 ? TD_CHANGE_SLOWER : TD_CHANGE_FASTER;
        out->slower += s->shift > 0;
        out->faster += s->shift < 0;
    }
    return true;
}

tdbg_status td_profile_compare(struct td_profile_comparison *out, const struct td_profile *a,
                               const struct td_profile *b, struct tdbg_error *error)
{
    *out = (struct td_profile_comparison){0};
    struct compare c = {.out = out, .a = a, .b = b};
    c.left = malloc((a->kept + 1) * sizeof *c.left);
    c.right = malloc((b->kept + 1) * sizeof *c.right);
    bool good = c.left && c.right && add_pair(&c, TD_PROFILE_ROOT, TD_PROFILE_ROOT, 0) && pair_up(&c);
    good = good && judge(out);
    free(c.left);
    free(c.right);
    if (good)
        return TDBG_OK;
    td_profile_comparison_release(out);
    return td_fail_nomem(error);
}

void td_profile_comparison_release(struct td_profile_comparison *comparison)
{
    free(comparison->pairs);
    *comparison = (struct td_profile_comparison){0};
}

/* --- Several ranks -------------------------------------------------------------------------------------- */

/* The node of the same path in another profile, or TD_PROFILE_NONE. */
static uint32_t same_path(const struct td_profile *p, uint32_t node, const struct td_profile *other)
{
    uint32_t way[512], at = TD_PROFILE_ROOT;
    size_t depth = 0;
    for (; node != TD_PROFILE_ROOT; node = p->nodes[node].parent) {
        if (depth == 512)
            return TD_PROFILE_NONE;
        way[depth++] = node;
    }
    while (depth-- > 0 && at != TD_PROFILE_NONE)
        at = td_profile_find(other, at, td_profile_name_of(p, way[depth]));
    return at;
}

static double excess_of(const struct td_straggler *s)
{
    return s->own - s->others;
}

static void keep_worst(struct td_straggler *out, size_t *found, struct td_straggler one)
{
    size_t at = *found;
    if (at < TD_STRAGGLERS)
        (*found)++;
    else if (excess_of(&out[--at]) >= excess_of(&one))
        return;
    for (; at > 0 && excess_of(&out[at - 1]) < excess_of(&one); at--)
        out[at] = out[at - 1];
    out[at] = one;
}

static bool is_above(const struct td_profile *p, uint32_t above, uint32_t node)
{
    while (node != TD_PROFILE_ROOT && node != above)
        node = p->nodes[node].parent;
    return node == above;
}

/* A scope is not at fault for what one below it explains. */
static void drop_explained(const struct td_profile *const *profiles, struct td_straggler *out, size_t *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < *found; i++) {
        bool explained = false;
        for (size_t k = 0; k < *found; k++)
            explained = explained || (k != i && out[k].rank == out[i].rank && out[k].node != out[i].node &&
                                      excess_of(&out[k]) > 0.8 * excess_of(&out[i]) &&
                                      is_above(profiles[out[i].rank], out[i].node, out[k].node));
        out[i].explained = explained;
    }
    for (size_t i = 0; i < *found; i++)
        if (!out[i].explained)
            out[kept++] = out[i];
    *found = kept;
}

struct ranks {
    const struct td_profile *const *profiles;
    size_t count;
    double *work;    /* a value per step */
    double *medians; /* a value per rank */
};

/* Rank `rank` in `node` of its profile, against the others. */
static bool lags(const struct ranks *r, size_t rank, uint32_t node, double step, struct td_straggler *out)
{
    size_t others = 0;
    double own = td_order_median(r->work, times_of(r->profiles[rank], node, r->work));
    for (size_t i = 0; i < r->count; i++) {
        uint32_t same = i == rank ? TD_PROFILE_NONE : same_path(r->profiles[rank], node, r->profiles[i]);
        if (same == TD_PROFILE_NONE)
            continue;
        double median = td_order_median(r->work, times_of(r->profiles[i], same, r->work));
        if (!isnan(median))
            r->medians[others++] = median;
    }
    double usual = td_order_median(r->medians, others);
    *out = (struct td_straggler){.rank = rank, .node = node, .own = own, .others = usual};
    return others > 0 && own > 1.1 * usual && own - usual > 0.01 * step;
}

tdbg_status td_profile_stragglers(const struct td_profile *const *profiles, size_t count,
                                  struct td_straggler out[TD_STRAGGLERS], size_t *found,
                                  struct tdbg_error *error)
{
    size_t kept = 1;
    for (size_t i = 0; i < count; i++)
        kept = profiles[i]->kept > kept ? profiles[i]->kept : kept;
    struct ranks r = {.profiles = profiles,
                      .count = count,
                      .work = malloc(kept * sizeof *r.work),
                      .medians = malloc((count + 1) * sizeof *r.medians)};
    *found = 0;
    bool good = r.work && r.medians;
    for (size_t rank = 0; good && rank < count; rank++) {
        const struct td_profile *p = profiles[rank];
        for (uint32_t node = 0; node < p->node_count; node++) {
            struct td_straggler one;
            if ((node == TD_PROFILE_ROOT || p->nodes[node].series != TD_PROFILE_NONE) &&
                lags(&r, rank, node, p->step_spread.p50, &one))
                keep_worst(out, found, one);
        }
    }
    drop_explained(profiles, out, found);
    free(r.work);
    free(r.medians);
    return good ? TDBG_OK : td_fail_nomem(error);
}
