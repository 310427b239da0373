/* examine.c: td_examine of compare.h: the second look at a pair: what is beyond the tolerance, and the worst.
 *
 * Chunks are looked at in parallel, each into a slot of its own; slots join in order. Where much is beyond
 * the tolerance little is among the worst, so a step of elements is first only counted, by a loop of the tier
 * that also says whether there is anything to note in it. Most steps end there: it takes less than a
 * tenth of the time that one element after the other took. What some chunk has as its worst bounds the
 * others: a difference below the least of as many as are asked for is not among them. How soon a chunk learns
 * that depends on the threads, what is kept in the end does not.
 */
#include "kernel/compare.h"

#include "kernel/duet.h"
#include "kernel/element.h"

#include <float.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 256 };

/* By `badness` the worst are ranked: |d|; a NaN or infinity that the other side does not share comes before
 * all. */
struct noted {
    struct td_worst element;
    double badness;
};

struct slot {
    uint64_t beyond;
    int count;
    struct noted *worst; /* `limit` of them */
};

struct pass {
    const struct td_duet *duet;
    struct td_tolerance tolerance;
    int limit;
    struct slot *slots;
    _Atomic uint64_t bound; /* so many differences of at least this are known; the bits order as the double */
};

/* Some elements as doubles: values or moduli, and the sizes of their differences. */
struct step {
    double a[STEP], b[STEP], d[STEP];
};

/* Elements come in the order of their indices, so of equals the first stays. */
static void keep_worst(struct slot *s, int limit, const struct noted *n)
{
    if (n->badness == 0 || limit == 0)
        return;
    int at = s->count;
    while (at > 0 && n->badness > s->worst[at - 1].badness)
        at--;
    if (at == limit)
        return;
    int moved = (s->count < limit ? s->count : limit - 1) - at;
    memmove(&s->worst[at + 1], &s->worst[at], (size_t)moved * sizeof *n);
    s->worst[at] = *n;
    if (s->count < limit)
        s->count++;
}

static void look_closely(const struct pass *pass, struct slot *s, const struct step *step, int64_t start,
                         int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double a = step->a[i], b = step->b[i], d = step->d[i];
        struct noted n = {{start + i, a, b, td_difference(a, b)}, d};
        if (isfinite(a) && isfinite(b)) {
            n.element.difference = b < a && pass->duet->a.dtype != TD_C128 ? -d : d;
            s->beyond += d > pass->tolerance.atol + pass->tolerance.rtol * fabs(a);
        } else {
            bool shared = (isnan(a) && isnan(b)) || a == b;
            n.badness = shared ? 0 : (double)INFINITY;
            s->beyond += !shared;
        }
        keep_worst(s, pass->limit, &n);
    }
}

static void raise_bound(struct pass *pass, const struct slot *s)
{
    uint64_t mine, known = atomic_load_explicit(&pass->bound, memory_order_relaxed);
    if (pass->limit == 0 || s->count < pass->limit)
        return;
    memcpy(&mine, &s->worst[pass->limit - 1].badness, sizeof mine);
    while (mine > known && !atomic_compare_exchange_weak_explicit(&pass->bound, &known, mine,
                                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

/* What a difference must exceed to be among the worst. One that equals the bound may be, as the first of its
 * size. */
static double least_worst(const struct pass *pass, const struct slot *s)
{
    uint64_t bits = atomic_load_explicit(&pass->bound, memory_order_relaxed);
    double own = 0, bound;
    if (pass->limit == 0)
        return DBL_MAX;
    if (s->count == pass->limit)
        own = s->worst[pass->limit - 1].badness;
    memcpy(&bound, &bits, sizeof bound);
    return fmin(fmax(own, nextafter(bound, 0)), DBL_MAX);
}

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    struct pass *pass = context;
    const struct td_duet *duet = pass->duet;
    struct slot *s = &pass->slots[chunk];
    int64_t size_a = (int64_t)td_dtype_size(duet->a.dtype), size_b = (int64_t)td_dtype_size(duet->b.dtype);
    td_beyond_kernel *count_beyond = td_duet_beyond(duet);
    for (int64_t at = 0; at < count; at += STEP) {
        const uint8_t *p = (const uint8_t *)a + at * size_a, *q = (const uint8_t *)b + at * size_b;
        int64_t n = count - at < STEP ? count - at : STEP;
        struct td_beyond found = {.notable = true};
        if (n == STEP && count_beyond)
            found = count_beyond(p, q, n, pass->tolerance.rtol, pass->tolerance.atol, least_worst(pass, s));
        if (found.notable) {
            struct step step;
            td_duet_differences(duet, p, q, n, step.a, step.b, step.d);
            look_closely(pass, s, &step, start + at, n);
        } else {
            s->beyond += found.count;
        }
    }
    raise_bound(pass, s);
}

static tdbg_status join(const struct pass *pass, size_t chunks, struct td_arena *arena,
                        struct td_examination *out, struct tdbg_error *error)
{
    struct slot total = {.worst = calloc((size_t)pass->limit + 1, sizeof *total.worst)};
    struct td_worst *worst = td_arena_array(arena, (size_t)pass->limit + 1, sizeof *worst);
    tdbg_status status = total.worst && worst ? TDBG_OK : td_fail_nomem(error);
    for (size_t c = 0; c < chunks && status == TDBG_OK; c++) {
        total.beyond += pass->slots[c].beyond;
        for (int i = 0; i < pass->slots[c].count; i++)
            keep_worst(&total, pass->limit, &pass->slots[c].worst[i]);
    }
    for (int i = 0; i < total.count; i++)
        worst[i] = total.worst[i].element;
    if (status == TDBG_OK)
        *out = (struct td_examination){.beyond = total.beyond, .worst_count = total.count, .worst = worst};
    free(total.worst);
    return status;
}

tdbg_status td_examine(const struct td_operand *a, const struct td_operand *b, struct td_tolerance tolerance,
                       int worst, struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                       struct td_examination *out, struct tdbg_error *error)
{
    struct td_duet duet;
    TD_TRY(td_duet_init(&duet, a, b, error));
    struct pass pass = {.duet = &duet, .tolerance = tolerance, .limit = worst};
    size_t chunks = (size_t)td_duet_chunks(&duet);
    struct noted *space = calloc(chunks * (size_t)worst + 1, sizeof *space);
    struct td_duet_visitor visitor = {&pass, visit};
    pass.slots = calloc(chunks + 1, sizeof *pass.slots);
    tdbg_status status = pass.slots && space ? TDBG_OK : td_fail_nomem(error);
    for (size_t c = 0; status == TDBG_OK && c < chunks; c++)
        pass.slots[c].worst = space + c * (size_t)worst;
    if (status == TDBG_OK)
        status = td_duet_play(&duet, pool, job, &visitor, error);
    if (status == TDBG_OK)
        status = join(&pass, chunks, arena, out, error);
    free(space);
    free(pass.slots);
    td_duet_release(&duet);
    return status;
}
