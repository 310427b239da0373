/* measure.c: td_measure of compare.h: every metric of a pair from one read of both sides.
 *
 * A block of pairs comes with the statistics of either side (pair.h). A block that is the same bytes on both
 * sides needs only the statistics of one: its differences are zeros, and a.b is the sum of its squares. Of
 * the largest difference only the block is remembered; where in it is looked up at the end, once.
 *
 * As in stats.c, doubles whose squares would leave the range of doubles get a second pass for the sums of
 * squares, over values scaled by a power of two.
 */
#include "kernel/compare.h"

#include "kernel/convert.h"
#include "kernel/duet.h"
#include "kernel/pair.h"
#include "kernel/stats.h"

#include <stdlib.h>
#include <string.h>

/* What a chunk comes to. */
struct slot {
    struct td_partial a, b;
    struct td_pair_partial pair;
    int64_t largest; /* where the block with the largest difference begins; -1: no finite pair yet */
};

struct pass {
    const struct td_duet *duet;
    double scale; /* 1, or a power of two that the elements are multiplied by */
    struct slot *slots;
};

/* A block of one side. */
struct side {
    enum td_dtype dtype;
    const uint8_t *data;
};

#define SLOT_EMPTY ((struct slot){.a = TD_PARTIAL_EMPTY, .b = TD_PARTIAL_EMPTY, .largest = -1})

/* --- one block ------------------------------------------------------------------------------------------ */

enum { STEP = 256 }; /* elements converted at a time where a block need not be; whole rows */

static int64_t convert_step(struct side side, int64_t at, int64_t count, double out[STEP])
{
    int64_t n = count - at < STEP ? count - at : STEP;
    td_convert_f64(side.dtype, side.data + at * (int64_t)td_dtype_size(side.dtype), n, out);
    return n;
}

/* The squares of the sides where both are finite. */
static void sum_squares(struct td_pair_partial *block, struct side a, struct side b, int64_t count)
{
    double x[STEP], y[STEP];
    for (int64_t at = 0; at < count; at += STEP) {
        convert_step(a, at, count, x);
        int64_t n = convert_step(b, at, count, y);
        for (int64_t i = 0; i < n; i++)
            if (isfinite(x[i]) && isfinite(y[i])) {
                block->aa += x[i] * x[i];
                block->bb += y[i] * y[i];
            }
    }
}

static void take_block(struct slot *s, int64_t start, const struct td_pair_partial *block)
{
    if (block->count > block->unpaired && (s->largest < 0 || block->max_abs > s->pair.max_abs))
        s->largest = start;
    td_pair_merge(&s->pair, block);
}

static bool same_bytes(struct side a, struct side b, int64_t count)
{
    return a.dtype == b.dtype && memcmp(a.data, b.data, (size_t)count * td_dtype_size(a.dtype)) == 0;
}

/* Every element equals its partner, NaNs included. */
static struct td_pair_partial pair_with_itself(const struct td_partial *side, int64_t count)
{
    double squares = td_partial_squares(side);
    struct td_pair_partial block = {.aa = squares,
                                    .bb = squares,
                                    .count = (uint64_t)count,
                                    .unpaired = side->nan + side->inf,
                                    .nan_both = side->nan,
                                    .inf_same = side->inf};
    block.sum[TD_SUM_AB] = squares;
    return block;
}

static void visit_reals(const struct td_kernels *kernels, struct slot *s, int64_t start, struct side a,
                        struct side b, int64_t count)
{
    struct td_pair_block both;
    struct td_pair_partial block;
    if (same_bytes(a, b, count)) {
        both.a = both.b = kernels->stats[a.dtype](a.data, count);
        block = pair_with_itself(&both.a, count);
    } else {
        kernels->pairs->loop[a.dtype][b.dtype](a.data, b.data, count, &both);
        block = both.pairs;
        if (block.unpaired == 0) {
            block.aa = td_partial_squares(&both.a);
            block.bb = td_partial_squares(&both.b);
        } else {
            sum_squares(&block, a, b, count);
        }
    }
    td_partial_merge(&s->a, &both.a);
    td_partial_merge(&s->b, &both.b);
    take_block(s, start, &block);
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
    double d = hypot(a[0] - b[0], a[1] - b[1]);
    s->differing += d != 0;
    s->sum[TD_SUM_AB][lane] += a[0] * b[0] + a[1] * b[1];
    td_pair_add_distance(s, lane, x, d);
}

static void visit_complex(const struct td_kernels *kernels, struct slot *s, int64_t start, const double *a,
                          const double *b, int64_t count)
{
    struct td_pair_lanes lanes = {0};
    double x[TD_BLOCK_LENGTH], y[TD_BLOCK_LENGTH];
    td_convert_f64(TD_C128, a, count, x);
    td_convert_f64(TD_C128, b, count, y);
    struct td_partial side_a = kernels->stats[TD_F64](x, count), side_b = kernels->stats[TD_F64](y, count);
    td_partial_merge(&s->a, &side_a);
    td_partial_merge(&s->b, &side_b);
    for (int64_t i = 0; i < count; i++)
        add_complex(&lanes, i % TD_LANES, a + 2 * i, b + 2 * i);
    struct td_pair_partial block = td_pair_finish(&lanes, count);
    sum_squares(&block, (struct side){TD_F64, (const uint8_t *)x}, (struct side){TD_F64, (const uint8_t *)y},
                count);
    take_block(s, start, &block);
}

/* The block times a power of two, in doubles. */
static void scale_block(double scale, struct side side, int64_t count, double *out)
{
    bool complex = side.dtype == TD_C128;
    int64_t n = complex ? 2 * count : count;
    td_convert_f64(complex ? TD_F64 : side.dtype, side.data, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] *= scale;
}

static void visit_integers(const struct td_duet *duet, struct slot *s, int64_t start, struct side a,
                           struct side b, int64_t count)
{
    struct td_pair_lanes lanes = {0};
    double x[TD_BLOCK_LENGTH], y[TD_BLOCK_LENGTH], d[STEP];
    for (int64_t at = 0; at < count; at += STEP) {
        int64_t n = count - at < STEP ? count - at : STEP;
        td_duet_differences(duet, a.data + 8 * at, b.data + 8 * at, n, x + at, y + at, d);
        for (int64_t i = 0; i < n; i++) {
            lanes.differing += d[i] != 0;
            lanes.sum[TD_SUM_AB][i % TD_LANES] += x[at + i] * y[at + i];
            td_pair_add_distance(&lanes, i % TD_LANES, fabs(x[at + i]), d[i]);
        }
    }
    struct td_partial side_a = duet->kernels->stats[TD_F64](x, count);
    struct td_partial side_b = duet->kernels->stats[TD_F64](y, count);
    td_partial_merge(&s->a, &side_a);
    td_partial_merge(&s->b, &side_b);
    struct td_pair_partial block = td_pair_finish(&lanes, count);
    block.aa = td_partial_squares(&side_a);
    block.bb = td_partial_squares(&side_b);
    take_block(s, start, &block);
}

static void visit_sides(const struct pass *pass, struct slot *s, int64_t start, struct side a, struct side b,
                        int64_t count)
{
    const struct td_kernels *kernels = pass->duet->kernels;
    if (a.dtype == TD_I64 || a.dtype == TD_U64)
        visit_integers(pass->duet, s, start, a, b, count);
    else if (a.dtype == TD_C128)
        visit_complex(kernels, s, start, (const void *)a.data, (const void *)b.data, count);
    else
        visit_reals(kernels, s, start, a, b, count);
}

static void visit_scaled(const struct pass *pass, struct slot *s, int64_t start, struct side a, struct side b,
                         int64_t count)
{
    double scaled_a[2 * TD_BLOCK_LENGTH], scaled_b[2 * TD_BLOCK_LENGTH];
    enum td_dtype dtype = a.dtype == TD_C128 ? TD_C128 : TD_F64;
    scale_block(pass->scale, a, count, scaled_a);
    scale_block(pass->scale, b, count, scaled_b);
    visit_sides(pass, s, start, (struct side){dtype, (const uint8_t *)scaled_a},
                (struct side){dtype, (const uint8_t *)scaled_b}, count);
}

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    const struct pass *pass = context;
    struct side x = {pass->duet->a.dtype, a}, y = {pass->duet->b.dtype, b};
    if (pass->scale != 1)
        visit_scaled(pass, &pass->slots[chunk], start, x, y, count);
    else
        visit_sides(pass, &pass->slots[chunk], start, x, y, count);
}

/* --- the largest difference ----------------------------------------------------------------------------- */

struct search {
    const struct td_duet *duet;
    double largest;
    int64_t argmax; /* -1: not found yet */
    double a, b;
};

/* The first pair of the block whose difference is the largest; part by part, as it may be anywhere, and the
 * parts that are all smaller are passed over. */
static void visit_largest(void *context, int64_t chunk, int64_t start, const void *a, const void *b,
                          int64_t count)
{
    (void)chunk;
    struct search *s = context;
    const uint8_t *p = a, *q = b;
    int64_t size_a = (int64_t)td_dtype_size(s->duet->a.dtype),
            size_b = (int64_t)td_dtype_size(s->duet->b.dtype);
    td_beyond_kernel *look = td_duet_beyond(s->duet);
    double x[STEP], y[STEP], d[STEP], smaller = nextafter(s->largest, -1);
    for (int64_t at = 0; at < count && s->argmax < 0; at += STEP) {
        int64_t taken = count - at < STEP ? count - at : STEP;
        if (look && taken == STEP && !look(p + at * size_a, q + at * size_b, STEP, 0, 0, smaller).notable)
            continue;
        td_duet_differences(s->duet, p + at * size_a, q + at * size_b, taken, x, y, d);
        for (int64_t i = 0; i < taken && s->argmax < 0; i++)
            if (d[i] == s->largest) {
                s->argmax = start + at + i;
                s->a = x[i];
                s->b = y[i];
            }
    }
}

static tdbg_status find_largest(const struct td_duet *duet, const struct slot *total, struct search *out,
                                struct tdbg_error *error)
{
    *out = (struct search){.duet = duet, .largest = total->pair.max_abs, .argmax = -1};
    if (total->largest < 0)
        return TDBG_OK;
    struct td_duet_visitor visitor = {out, visit_largest};
    return td_duet_play_block(duet, total->largest, &visitor, error);
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void merge_slots(struct slot *to, const struct slot *next)
{
    td_partial_merge(&to->a, &next->a);
    td_partial_merge(&to->b, &next->b);
    if (next->largest >= 0 && (to->largest < 0 || next->pair.max_abs > to->pair.max_abs))
        to->largest = next->largest;
    td_pair_merge(&to->pair, &next->pair);
}

static double ratio(double x, double y)
{
    return x == 0 ? 0 : x / y;
}

static void report_side(const struct td_partial *total, const struct td_partial *scaled, double scale,
                        struct tdbg_stats *out)
{
    struct td_partial p = *total;
    if (scale != 1)
        td_partial_complete(&p, scaled);
    td_partial_report(&p, scale, out);
}

/* The largest of both sides; 0 where nothing is finite. */
static double absmax(const struct slot *s)
{
    double a = s->a.finite ? fmax(fabs(s->a.min), fabs(s->a.max)) : 0;
    double b = s->b.finite ? fmax(fabs(s->b.min), fabs(s->b.max)) : 0;
    return fmax(a, b);
}

/* Rounding may carry it past one. */
static double cosine(double dot, double norm_a, double norm_b)
{
    if (norm_a == 0 || norm_b == 0)
        return norm_a == 0 && norm_b == 0;
    double c = dot / norm_a / norm_b;
    return c > 1 ? 1 : c < -1 ? -1 : c;
}

/* Counts, maxima and relative differences come from `total`; what needs squares from `scaled`, where all
 * values are `scale` times as large. */
static struct td_metrics conclude(const struct slot *total, const struct slot *scaled, double scale,
                                  const struct search *largest, bool ulps)
{
    const struct td_pair_partial *p = &total->pair, *q = &scaled->pair;
    struct td_metrics m = {.count = p->count,
                           .paired = p->count - p->unpaired,
                           .nan_both = p->nan_both,
                           .inf_same = p->inf_same,
                           .differing = p->differing,
                           .max_abs = p->max_abs,
                           .max_rel = p->max_rel,
                           .argmax = largest->argmax,
                           .argmax_a = largest->a,
                           .argmax_b = largest->b,
                           .max_ulp = ulps ? p->max_ulp : (double)NAN};
    report_side(&total->a, &scaled->a, scale, &m.a);
    report_side(&total->b, &scaled->b, scale, &m.b);
    m.nan_a = m.a.nan;
    m.nan_b = m.b.nan;
    m.inf_a = m.a.inf;
    m.inf_b = m.b.inf;
    double n = m.paired ? (double)m.paired : 1, square = q->sum[TD_SUM_SQUARE];
    double norm_a = sqrt(q->aa), norm_b = sqrt(q->bb);
    m.mean_abs = q->sum[TD_SUM_ABS] / n / scale;
    m.mean_rel = p->sum[TD_SUM_REL] / n;
    m.mse = square / n / scale / scale;
    m.rmse = sqrt(square / n) / scale;
    m.norm_d = sqrt(square) / scale;
    m.dot = q->sum[TD_SUM_AB] / scale / scale;
    m.cosine = cosine(q->sum[TD_SUM_AB], norm_a, norm_b);
    m.rel_l2 = ratio(sqrt(square), norm_a);
    m.snr_db = square == 0 ? (double)INFINITY : 20 * log10(norm_a / sqrt(square));
    return m;
}

/* Parts are joined as doubles: no float type to count units of. */
static bool has_ulps(const struct td_operand *a, const struct td_operand *b)
{
    return a->part_count == 1 && b->part_count == 1 && a->parts[0].dtype == b->parts[0].dtype &&
           a->parts[0].dtype <= TD_BF16;
}

static tdbg_status play(const struct td_duet *duet, double scale, struct td_pool *pool, struct td_job *job,
                        struct slot *out, struct tdbg_error *error)
{
    size_t chunks = (size_t)td_duet_chunks(duet);
    struct pass pass = {.duet = duet, .scale = scale, .slots = malloc((chunks + 1) * sizeof *pass.slots)};
    struct td_duet_visitor visitor = {&pass, visit};
    if (!pass.slots)
        return td_fail_nomem(error);
    for (size_t i = 0; i < chunks; i++)
        pass.slots[i] = SLOT_EMPTY;
    tdbg_status status = td_duet_play(duet, pool, job, &visitor, error);
    *out = SLOT_EMPTY;
    for (size_t i = 0; i < chunks && status == TDBG_OK; i++)
        merge_slots(out, &pass.slots[i]);
    free(pass.slots);
    return status;
}

tdbg_status td_measure(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                       struct td_job *job, struct td_metrics *out, struct tdbg_error *error)
{
    struct td_duet duet;
    struct slot total, scaled;
    struct search largest;
    TD_TRY(td_duet_init(&duet, a, b, error));
    tdbg_status status = play(&duet, 1, pool, job, &total, error);
    double scale = 1;
    if (status == TDBG_OK) {
        scale = td_spread_scale(absmax(&total));
        scaled = total;
        if (scale != 1)
            status = play(&duet, scale, pool, NULL, &scaled, error);
    }
    if (status == TDBG_OK)
        status = find_largest(&duet, &total, &largest, error);
    if (status == TDBG_OK)
        *out = conclude(&total, &scaled, scale, &largest, has_ulps(a, b));
    td_duet_release(&duet);
    return status;
}

static tdbg_status wrap(struct td_tensor *out, const double *values, int64_t count, struct tdbg_error *error)
{
    *out = (struct td_tensor){
        .name = "", .dtype = TD_F64, .shape = {.ndim = 1, .size = {count}}, .count = count};
    return td_view_packed(&out->view, values, (uint64_t)count * sizeof *values, TD_F64, &out->shape, error);
}

tdbg_status td_measure_doubles(const double *a, const double *b, int64_t count, struct td_metrics *out,
                               struct tdbg_error *error)
{
    struct td_tensor tensors[2];
    const struct td_tensor *stored[2] = {&tensors[0], &tensors[1]};
    struct td_operand sides[2];
    TD_TRY(wrap(&tensors[0], a, count, error));
    TD_TRY(wrap(&tensors[1], b, count, error));
    for (int i = 0; i < 2; i++)
        sides[i] = (struct td_operand){.shape = tensors[i].shape,
                                       .count = count,
                                       .part_count = 1,
                                       .parts = &tensors[i],
                                       .stored = &stored[i]};
    return td_measure(&sides[0], &sides[1], NULL, NULL, out, error);
}
