/* measure.c: td_measure of compare.h: every metric of a pair from one read of both sides.
 *
 * While a block is in the cache it is gone over three times: each side's own statistics (the loops of
 * stats.h) and the sums over pairs (pair.h). Where the largest difference lies is looked up afterwards, and
 * only in blocks that raise it.
 */
#include "kernel/compare.h"

#include "kernel/convert.h"
#include "kernel/duet.h"
#include "kernel/pair.h"
#include "kernel/stats.h"

#include <stdlib.h>

/* What a chunk comes to. */
struct slot {
    struct td_partial a, b;
    struct td_pair_partial pair;
    int64_t argmax; /* -1: no finite pair yet */
    double argmax_a, argmax_b;
};

struct pass {
    const struct td_duet *duet;
    struct slot *slots;
};

#define SLOT_EMPTY ((struct slot){.a = TD_PARTIAL_EMPTY, .b = TD_PARTIAL_EMPTY, .argmax = -1})

/* --- one block ------------------------------------------------------------------------------------------ */

/* The first pair of the block whose difference is `largest`. */
static void find_largest(struct slot *s, enum td_dtype ta, const uint8_t *a, enum td_dtype tb,
                         const uint8_t *b, int64_t start, int64_t count, double largest)
{
    enum { STEP = 256 };
    double x[STEP], y[STEP];
    for (int64_t at = 0; at < count; at += STEP) {
        int64_t n = count - at < STEP ? count - at : STEP;
        td_convert_f64(ta, a + at * (int64_t)td_dtype_size(ta), n, x);
        td_convert_f64(tb, b + at * (int64_t)td_dtype_size(tb), n, y);
        for (int64_t i = 0; i < n; i++)
            if (fabs(x[i] - y[i]) == largest) {
                s->argmax = start + at + i;
                s->argmax_a = x[i];
                s->argmax_b = y[i];
                return;
            }
    }
}

static void take_block(struct slot *s, const struct td_pair_lanes *lanes, int64_t count, bool *raised)
{
    struct td_pair_partial block = td_pair_finish(lanes, count);
    *raised = block.count > block.unpaired && (s->argmax < 0 || block.max_abs > s->pair.max_abs);
    td_pair_merge(&s->pair, &block);
}

static void visit_reals(struct pass *pass, struct slot *s, int64_t start, const void *a, const void *b,
                        int64_t count)
{
    const struct td_duet *d = pass->duet;
    struct td_pair_lanes lanes = {0};
    struct td_partial side_a = d->kernels->stats[d->a.dtype](a, count);
    struct td_partial side_b = d->kernels->stats[d->b.dtype](b, count);
    bool raised;
    td_partial_merge(&s->a, &side_a);
    td_partial_merge(&s->b, &side_b);
    d->kernels->pairs->loop[d->a.dtype][d->b.dtype](a, b, count, &lanes);
    take_block(s, &lanes, count, &raised);
    if (raised)
        find_largest(s, d->a.dtype, a, d->b.dtype, b, start, count, s->pair.max_abs);
}

/* Adds one pair of complex numbers: differences and sizes by modulus, a.b as the real part of a conj(b). */
static void add_complex(struct td_pair_lanes *s, int64_t lane, const double *a, const double *b)
{
    double x = hypot(a[0], a[1]), y = hypot(b[0], b[1]);
    if (!isfinite(x) || !isfinite(y)) {
        bool nan_a = isnan(x), nan_b = isnan(y);
        s->unpaired++;
        s->nan_both += nan_a && nan_b;
        s->inf_same += isinf(x) && isinf(y) && a[0] == b[0] && a[1] == b[1];
        s->differing += !(nan_a && nan_b) && !(a[0] == b[0] && a[1] == b[1]);
        return;
    }
    double d = hypot(a[0] - b[0], a[1] - b[1]), rel = d / (x + TD_REL_EPSILON);
    s->differing += d != 0;
    s->sum[TD_SUM_ABS][lane] += d;
    s->sum[TD_SUM_REL][lane] += rel;
    s->sum[TD_SUM_SQUARE][lane] += d * d;
    s->sum[TD_SUM_AA][lane] += x * x;
    s->sum[TD_SUM_BB][lane] += y * y;
    s->sum[TD_SUM_AB][lane] += a[0] * b[0] + a[1] * b[1];
    s->max_abs = d > s->max_abs ? d : s->max_abs;
    s->max_rel = rel > s->max_rel ? rel : s->max_rel;
}

static void visit_complex(struct pass *pass, struct slot *s, int64_t start, const double *a, const double *b,
                          int64_t count)
{
    struct td_pair_lanes lanes = {0};
    double modulus[TD_BLOCK_LENGTH];
    bool raised;
    td_convert_f64(TD_C128, a, count, modulus);
    struct td_partial side = pass->duet->kernels->stats[TD_F64](modulus, count);
    td_partial_merge(&s->a, &side);
    td_convert_f64(TD_C128, b, count, modulus);
    side = pass->duet->kernels->stats[TD_F64](modulus, count);
    td_partial_merge(&s->b, &side);
    for (int64_t i = 0; i < count; i++)
        add_complex(&lanes, i % TD_LANES, a + 2 * i, b + 2 * i);
    take_block(s, &lanes, count, &raised);
    for (int64_t i = 0; i < count && raised; i++)
        if (hypot(a[2 * i] - b[2 * i], a[2 * i + 1] - b[2 * i + 1]) == s->pair.max_abs) {
            s->argmax = start + i;
            s->argmax_a = hypot(a[2 * i], a[2 * i + 1]);
            s->argmax_b = hypot(b[2 * i], b[2 * i + 1]);
            break;
        }
}

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    struct pass *pass = context;
    if (pass->duet->a.dtype == TD_C128)
        visit_complex(pass, &pass->slots[chunk], start, a, b, count);
    else
        visit_reals(pass, &pass->slots[chunk], start, a, b, count);
}

/* --- the answer ------------------------------------------------------------------------------------------
 */

static void merge_slots(struct slot *to, const struct slot *next)
{
    td_partial_merge(&to->a, &next->a);
    td_partial_merge(&to->b, &next->b);
    if (next->argmax >= 0 && (to->argmax < 0 || next->pair.max_abs > to->pair.max_abs)) {
        to->argmax = next->argmax;
        to->argmax_a = next->argmax_a;
        to->argmax_b = next->argmax_b;
    }
    td_pair_merge(&to->pair, &next->pair);
}

static double ratio(double x, double y)
{
    return x == 0 ? 0 : x / y;
}

static struct td_metrics conclude(const struct slot *total, bool ulps)
{
    const struct td_pair_partial *p = &total->pair;
    struct td_metrics m = {.count = p->count,
                           .paired = p->count - p->unpaired,
                           .nan_both = p->nan_both,
                           .inf_same = p->inf_same,
                           .differing = p->differing,
                           .max_abs = p->max_abs,
                           .max_rel = p->max_rel,
                           .argmax = total->argmax,
                           .argmax_a = total->argmax_a,
                           .argmax_b = total->argmax_b,
                           .max_ulp = ulps ? p->max_ulp : (double)NAN};
    td_partial_report(&total->a, 1, &m.a);
    td_partial_report(&total->b, 1, &m.b);
    m.nan_a = m.a.nan;
    m.nan_b = m.b.nan;
    m.inf_a = m.a.inf;
    m.inf_b = m.b.inf;
    double n = m.paired ? (double)m.paired : 1, square = p->sum[TD_SUM_SQUARE];
    double norm_a = sqrt(p->sum[TD_SUM_AA]), norm_b = sqrt(p->sum[TD_SUM_BB]);
    m.mean_abs = p->sum[TD_SUM_ABS] / n;
    m.mean_rel = p->sum[TD_SUM_REL] / n;
    m.mse = square / n;
    m.rmse = sqrt(m.mse);
    m.norm_d = sqrt(square);
    m.dot = p->sum[TD_SUM_AB];
    m.cosine = norm_a == 0 && norm_b == 0 ? 1 : norm_a == 0 || norm_b == 0 ? 0 : m.dot / norm_a / norm_b;
    m.rel_l2 = ratio(m.norm_d, norm_a);
    m.snr_db = square == 0 ? (double)INFINITY : 20 * log10(norm_a / m.norm_d);
    return m;
}

static bool same_float(const struct td_operand *a, const struct td_operand *b)
{
    return a->parts[0].dtype == b->parts[0].dtype && a->parts[0].dtype <= TD_BF16;
}

tdbg_status td_measure(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                       struct td_job *job, struct td_metrics *out, struct tdbg_error *error)
{
    struct td_duet duet;
    TD_TRY(td_duet_init(&duet, a, b, error));
    struct pass pass = {.duet = &duet};
    size_t chunks = (size_t)td_duet_chunks(&duet);
    struct td_duet_visitor visitor = {&pass, visit};
    pass.slots = malloc((chunks + 1) * sizeof *pass.slots);
    tdbg_status status = pass.slots ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i <= chunks; i++)
        pass.slots[i] = SLOT_EMPTY;
    if (status == TDBG_OK)
        status = td_duet_play(&duet, pool, job, &visitor, error);
    if (status == TDBG_OK) {
        struct slot total = SLOT_EMPTY;
        for (size_t i = 0; i < chunks; i++)
            merge_slots(&total, &pass.slots[i]);
        *out = conclude(&total, same_float(a, b) && a->part_count == 1 && b->part_count == 1);
    }
    free(pass.slots);
    td_duet_release(&duet);
    return status;
}
