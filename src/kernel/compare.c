/* compare.c: see compare.h. */
#include "kernel/compare.h"

#include "kernel/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

struct sums {
    uint64_t paired;
    double abs, rel, square, aa, bb, ab, max_rel;
};

static bool order_of(enum td_dtype dtype, double value, double *out)
{
    int64_t bits;
    if (dtype == TD_F32) {
        bits = td_f32_bits((float)value);
        *out = (double)(bits & 0x80000000 ? 0x80000000 - bits : bits);
    } else if (dtype == TD_BF16) {
        bits = td_bf16_round((float)value);
        *out = (double)(bits & 0x8000 ? 0x8000 - bits : bits);
    } else if (dtype == TD_F16) {
        bits = td_f16_round((float)value);
        *out = (double)(bits & 0x8000 ? 0x8000 - bits : bits);
    } else {
        return false;
    }
    return true;
}

static void side_init(struct tdbg_stats *s)
{
    *s = (struct tdbg_stats){.min = INFINITY, .max = -INFINITY};
}

static void side_add(struct tdbg_stats *s, double x)
{
    s->count++;
    if (isnan(x)) {
        s->nan++;
    } else if (isinf(x)) {
        s->inf++;
    } else {
        s->finite++;
        s->zeros += x == 0;
        s->min = fmin(s->min, x);
        s->max = fmax(s->max, x);
        double delta = x - s->mean;
        s->mean += delta / (double)s->finite;
        s->std += delta * (x - s->mean);
        s->norm += x * x;
    }
}

static void side_finish(struct tdbg_stats *s)
{
    s->std = s->finite > 1 ? sqrt(s->std / (double)(s->finite - 1)) : NAN;
    s->norm = sqrt(s->norm);
    s->absmax = fmax(fabs(s->min), fabs(s->max));
    if (s->finite == 0)
        s->mean = s->min = s->max = s->absmax = NAN;
}

tdbg_status td_measure(const struct td_operand *a, const struct td_operand *b, struct td_pool *pool,
                       struct td_job *job, struct td_metrics *out, struct tdbg_error *error)
{
    (void)pool;
    double xa[BLOCK], xb[BLOCK];
    struct td_metrics m = {.count = (uint64_t)a->count, .argmax = -1, .max_ulp = 0};
    struct sums s = {0};
    enum td_dtype dtype = a->parts[0].dtype;
    double ua, ub;
    bool ulps = dtype == b->parts[0].dtype && order_of(dtype, 0, &ua);
    if (!ulps)
        m.max_ulp = NAN;
    side_init(&m.a);
    side_init(&m.b);
    for (int64_t at = 0; at < a->count; at += BLOCK) {
        int64_t n = a->count - at < BLOCK ? a->count - at : BLOCK;
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        TD_TRY(td_operand_load(a, at, n, xa, error));
        TD_TRY(td_operand_load(b, at, n, xb, error));
        for (int64_t i = 0; i < n; i++) {
            side_add(&m.a, xa[i]);
            side_add(&m.b, xb[i]);
            bool both_nan = isnan(xa[i]) && isnan(xb[i]);
            m.nan_both += both_nan;
            m.inf_same += isinf(xa[i]) && xa[i] == xb[i];
            m.differing += !both_nan && xa[i] != xb[i];
            if (!isfinite(xa[i]) || !isfinite(xb[i]))
                continue;
            double d = fabs(xa[i] - xb[i]), rel = d / (fabs(xa[i]) + 1e-8);
            s.paired++;
            s.abs += d;
            s.rel += rel;
            s.max_rel = fmax(s.max_rel, rel);
            s.square += d * d;
            s.aa += xa[i] * xa[i];
            s.bb += xb[i] * xb[i];
            s.ab += xa[i] * xb[i];
            if (m.argmax < 0 || d > m.max_abs) {
                m.max_abs = d;
                m.argmax = at + i;
                m.argmax_a = xa[i];
                m.argmax_b = xb[i];
            }
            if (ulps && order_of(dtype, xa[i], &ua) && order_of(dtype, xb[i], &ub))
                m.max_ulp = fmax(m.max_ulp, fabs(ua - ub));
        }
        td_job_advance(job, (uint64_t)n);
    }
    side_finish(&m.a);
    side_finish(&m.b);
    m.nan_a = m.a.nan;
    m.nan_b = m.b.nan;
    m.inf_a = m.a.inf;
    m.inf_b = m.b.inf;
    m.paired = s.paired;
    double n = s.paired ? (double)s.paired : 1;
    m.mean_abs = s.abs / n;
    m.mean_rel = s.rel / n;
    m.max_rel = s.max_rel;
    m.mse = s.square / n;
    m.rmse = sqrt(m.mse);
    m.norm_d = sqrt(s.square);
    m.dot = s.ab;
    m.cosine = s.aa == 0 && s.bb == 0 ? 1 : s.aa == 0 || s.bb == 0 ? 0 : s.ab / sqrt(s.aa) / sqrt(s.bb);
    m.rel_l2 = s.square == 0 ? 0 : s.aa == 0 ? INFINITY : sqrt(s.square / s.aa);
    m.snr_db = s.square == 0 ? INFINITY : 10 * log10(s.aa / s.square);
    *out = m;
    return TDBG_OK;
}

static bool is_beyond(double a, double b, struct td_tolerance t)
{
    if (isfinite(a) && isfinite(b))
        return fabs(a - b) > t.atol + t.rtol * fabs(a);
    return !(isnan(a) && isnan(b)) && a != b;
}

static double badness(double a, double b)
{
    if (isfinite(a) && isfinite(b))
        return fabs(a - b);
    return (isnan(a) && isnan(b)) || a == b ? 0 : INFINITY;
}

static void keep_worst(struct td_examination *e, int limit, struct td_worst w)
{
    double bad = badness(w.a, w.b);
    if (bad == 0)
        return;
    int at = e->worst_count;
    while (at > 0 && bad > badness(e->worst[at - 1].a, e->worst[at - 1].b))
        at--;
    if (at == limit)
        return;
    int moved = (e->worst_count < limit ? e->worst_count : limit - 1) - at;
    memmove(&e->worst[at + 1], &e->worst[at], (size_t)moved * sizeof w);
    e->worst[at] = w;
    if (e->worst_count < limit)
        e->worst_count++;
}

tdbg_status td_examine(const struct td_operand *a, const struct td_operand *b, struct td_tolerance tolerance,
                       int worst, struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                       struct td_examination *out, struct tdbg_error *error)
{
    (void)pool;
    double xa[BLOCK], xb[BLOCK];
    struct td_examination e = {0};
    e.worst = td_arena_array(arena, (size_t)worst + 1, sizeof *e.worst);
    if (!e.worst)
        return td_fail_nomem(error);
    for (int64_t at = 0; at < a->count; at += BLOCK) {
        int64_t n = a->count - at < BLOCK ? a->count - at : BLOCK;
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        TD_TRY(td_operand_load(a, at, n, xa, error));
        TD_TRY(td_operand_load(b, at, n, xb, error));
        for (int64_t i = 0; i < n; i++) {
            e.beyond += is_beyond(xa[i], xb[i], tolerance);
            keep_worst(&e, worst, (struct td_worst){at + i, xa[i], xb[i]});
        }
    }
    *out = e;
    return TDBG_OK;
}
