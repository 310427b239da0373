/* examine.c: td_examine of compare.h: the second look at a pair: what is beyond the tolerance, and the worst.
 *
 * Chunks are looked at in parallel, each into a slot of its own; slots join in order. A pair this is asked
 * for has diverged, so the pass is not the common case: it works on doubles and keeps to plain loops.
 */
#include "kernel/compare.h"

#include "kernel/convert.h"
#include "kernel/duet.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t beyond;
    int worst_count;
    struct td_worst *worst; /* `limit` of them */
};

struct pass {
    const struct td_duet *duet;
    struct td_tolerance tolerance;
    int limit;
    struct slot *slots;
};

static bool is_beyond(double a, double b, struct td_tolerance t)
{
    if (isfinite(a) && isfinite(b))
        return fabs(a - b) > t.atol + t.rtol * fabs(a);
    return !(isnan(a) && isnan(b)) && a != b;
}

/* By what the worst are ranked: a NaN or infinity that the other side does not share comes before all. */
static double badness(double a, double b)
{
    if (isfinite(a) && isfinite(b))
        return fabs(a - b);
    return (isnan(a) && isnan(b)) || a == b ? 0 : (double)INFINITY;
}

/* Elements come in the order of their indices, so of equals the first stays. */
static void keep_worst(struct slot *s, int limit, const struct td_worst *w)
{
    double bad = badness(w->a, w->b);
    if (bad == 0 || limit == 0)
        return;
    int at = s->worst_count;
    while (at > 0 && bad > badness(s->worst[at - 1].a, s->worst[at - 1].b))
        at--;
    if (at == limit)
        return;
    int moved = (s->worst_count < limit ? s->worst_count : limit - 1) - at;
    memmove(&s->worst[at + 1], &s->worst[at], (size_t)moved * sizeof *w);
    s->worst[at] = *w;
    if (s->worst_count < limit)
        s->worst_count++;
}

static void visit(void *context, int64_t chunk, int64_t start, const void *a, const void *b, int64_t count)
{
    struct pass *pass = context;
    struct slot *s = &pass->slots[chunk];
    double x[TD_BLOCK_LENGTH], y[TD_BLOCK_LENGTH];
    td_convert_f64(pass->duet->a.dtype, a, count, x);
    td_convert_f64(pass->duet->b.dtype, b, count, y);
    for (int64_t i = 0; i < count; i++) {
        s->beyond += is_beyond(x[i], y[i], pass->tolerance);
        keep_worst(s, pass->limit, &(struct td_worst){start + i, x[i], y[i]});
    }
}

static tdbg_status join(const struct pass *pass, size_t chunks, struct td_arena *arena,
                        struct td_examination *out, struct tdbg_error *error)
{
    struct slot total = {.worst = td_arena_array(arena, (size_t)pass->limit + 1, sizeof *total.worst)};
    if (!total.worst)
        return td_fail_nomem(error);
    for (size_t c = 0; c < chunks; c++) {
        total.beyond += pass->slots[c].beyond;
        for (int i = 0; i < pass->slots[c].worst_count; i++)
            keep_worst(&total, pass->limit, &pass->slots[c].worst[i]);
    }
    *out = (struct td_examination){
        .beyond = total.beyond, .worst_count = total.worst_count, .worst = total.worst};
    return TDBG_OK;
}

tdbg_status td_examine(const struct td_operand *a, const struct td_operand *b, struct td_tolerance tolerance,
                       int worst, struct td_pool *pool, struct td_job *job, struct td_arena *arena,
                       struct td_examination *out, struct tdbg_error *error)
{
    struct td_duet duet;
    TD_TRY(td_duet_init(&duet, a, b, error));
    struct pass pass = {.duet = &duet, .tolerance = tolerance, .limit = worst};
    size_t chunks = (size_t)td_duet_chunks(&duet);
    struct td_worst *space = calloc(chunks * (size_t)worst + 1, sizeof *space);
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
