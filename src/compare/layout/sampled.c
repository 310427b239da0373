/* sampled.c: see sampled.h.
 *
 * Both sides are sampled at the same places of the layout, which a hash spreads evenly, and correlated: blind
 * to a wrong scale or bias, which are mistakes to report and no reason to doubt the layout, and near zero for
 * a wrong layout.
 */
#include "compare/layout/sampled.h"

#include "kernel/compare.h"

#include <math.h>

/* TD_FIT_SAMPLES put the correlation of unrelated data within +-0.13 (three sigma), 64 within +-0.38: both
 * far below TD_CONVINCING. The few are for a first look at shapes that agree. */
enum { FIRST_LOOK = 64 };

/* A layout that explains three quarters of the variance is not a coincidence of 512 samples, yet leaves room
 * for a bug on top of it. */
const double TD_CONVINCING = 0.866;

/* Values that vary less, relative to their mean, are one value and its rounding in float32: the moduli of
 * complex numbers on a circle. */
static const double RIPPLE = 1e-7;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int sample_indices(int64_t count, int samples, int64_t *indices)
{
    int n = count < samples ? (int)count : samples;
    for (int i = 0; i < n; i++)
        indices[i] = count <= samples ? i : (int64_t)(mix((uint64_t)i) % (uint64_t)count);
    return n;
}

static double correlate(const double *a, const double *b, int n)
{
    double ma = 0, mb = 0, saa = 0, sbb = 0, sab = 0;
    int used = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(a[i]) && isfinite(b[i])) {
            ma += a[i];
            mb += b[i];
            used++;
        }
    ma /= used ? used : 1;
    mb /= used ? used : 1;
    for (int i = 0; i < n; i++)
        if (isfinite(a[i]) && isfinite(b[i])) {
            saa += (a[i] - ma) * (a[i] - ma);
            sbb += (b[i] - mb) * (b[i] - mb);
            sab += (a[i] - ma) * (b[i] - mb);
        }
    bool varies = saa > used * RIPPLE * RIPPLE * ma * ma && sbb > used * RIPPLE * RIPPLE * mb * mb;
    return varies ? sab / sqrt(saa * sbb) : NAN;
}

static tdbg_status correlation(const struct td_operand *a, const struct td_operand *b, int samples,
                               double *out, struct tdbg_error *error)
{
    int64_t indices[TD_FIT_SAMPLES];
    double va[TD_FIT_SAMPLES], vb[TD_FIT_SAMPLES];
    int n = sample_indices(a->count, samples, indices);
    TD_TRY(td_operand_gather(a, indices, n, va, error));
    TD_TRY(td_operand_gather(b, indices, n, vb, error));
    for (int i = 0; i < n && samples == FIRST_LOOK; i++) { /* among few, one outlier would decide alone */
        va[i] = cbrt(va[i]);
        vb[i] = cbrt(vb[i]);
    }
    *out = correlate(va, vb, n);
    return TDBG_OK;
}

static double score(const struct td_item *item_a, const struct td_item *item_b,
                    const struct td_layout *layout, int samples)
{
    struct td_arena arena;
    struct td_operand a, b;
    double r = NAN;
    td_arena_init(&arena, TD_MAX_METADATA);
    if (td_operand_make(&a, item_a, &layout->a, &arena, NULL) != TDBG_OK ||
        td_operand_make(&b, item_b, &layout->b, &arena, NULL) != TDBG_OK ||
        correlation(&a, &b, samples, &r, NULL) != TDBG_OK)
        r = NAN;
    td_arena_release(&arena);
    return r;
}

double td_layout_fit(const struct td_item *a, const struct td_item *b, const struct td_layout *layout)
{
    return score(a, b, layout, TD_FIT_SAMPLES);
}

double td_layout_first_look(const struct td_item *a, const struct td_item *b, const struct td_layout *layout)
{
    return score(a, b, layout, FIRST_LOOK);
}

bool td_layout_feasible(const struct td_match *match, const struct td_layout *layout)
{
    struct td_arena arena;
    struct td_operand operand;
    td_arena_init(&arena, TD_MAX_METADATA);
    bool ok = td_operand_make(&operand, match->a, &layout->a, &arena, NULL) == TDBG_OK &&
              td_operand_make(&operand, match->b, &layout->b, &arena, NULL) == TDBG_OK;
    td_arena_release(&arena);
    return ok;
}

/* --- shards --------------------------------------------------------------------------------------------- */

/* Shard i of one item resembles shard j of another, as far as a sample tells. */
static bool shards_resemble(const struct td_item *a, int i, const struct td_item *b, int j)
{
    struct td_layout both = {.shape = a->parts[i]->shape};
    both.a = both.b = (struct td_steps){.count = 1, .step = {{.kind = TD_STEP_FIRST}}};
    both.a.step[0].from = i;
    both.b.step[0].from = j;
    return a->parts[i]->count == b->parts[j]->count && score(a, b, &both, TD_FIT_SAMPLES) > TD_CONVINCING;
}

static bool are_copies(const struct td_item *item)
{
    for (int i = 1; i < item->part_count; i++)
        if (!shards_resemble(item, 0, item, i))
            return false;
    return true;
}

/* The first shard of A is another one of B: ranks in another order, of which the sum tells nothing. */
static bool are_exchanged(const struct td_match *match)
{
    for (int i = 1; i < match->b->part_count; i++)
        if (shards_resemble(match->a, 0, match->b, i))
            return !are_copies(match->a);
    return false;
}

static bool begins_with(const struct td_steps *steps, enum td_step_kind kind)
{
    return steps->count > 0 && steps->step[0].kind == kind;
}

/* How well a layout fits. Where both sides have the shards of all ranks, the first may stand for the others
 * only if they are copies, and their sum only if it is proven: else a mistake of one rank would go unseen. */
double td_match_fit(const struct td_match *match, const struct td_layout *layout)
{
    double r = score(match->a, match->b, layout, TD_FIT_SAMPLES);
    if (match->a->part_count != match->b->part_count)
        return r;
    const struct td_item *items[] = {match->a, match->b};
    const struct td_steps *steps[] = {&layout->a, &layout->b};
    for (int s = 0; s < 2; s++)
        if ((begins_with(steps[s], TD_STEP_FIRST) && !are_copies(items[s])) ||
            (begins_with(steps[s], TD_STEP_SUM) && items[s]->part_count > 1 &&
             (!(r > TD_CONVINCING) || are_exchanged(match))))
            return NAN;
    return r;
}
