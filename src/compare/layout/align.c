/* align.c: see align.h. */
#include "compare/layout/align.h"

#include "kernel/compare.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 512 samples put the correlation of unrelated data within +-0.13 (three sigma), 64 within +-0.38: both far
 * below TD_CONVINCING. The few are for a first look at shapes that agree. */
enum { SAMPLES = 512, FIRST_LOOK = 64 };

/* A layout that explains three quarters of the variance is not a coincidence of 512 samples, yet leaves room
 * for a bug on top of it. */
const double TD_CONVINCING = 0.866;

/* Too few elements to tell one order from another by chance. */
static const int64_t SMALLEST = 32;

/* How much more of the variance a costlier layout must explain, on average over the layers, to be preferred.
 */
static const double MARGIN = 0.02;

/* --- scoring ------------------------------------------------------------------------------------------- */

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
    return saa > 0 && sbb > 0 ? sab / sqrt(saa * sbb) : NAN;
}

static tdbg_status correlation(const struct td_operand *a, const struct td_operand *b, int samples,
                               double *out, struct tdbg_error *error)
{
    int64_t indices[SAMPLES];
    double va[SAMPLES], vb[SAMPLES];
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
    return score(a, b, layout, SAMPLES);
}

static bool feasible(const struct td_match *match, const struct td_layout *layout)
{
    struct td_arena arena;
    struct td_operand operand;
    td_arena_init(&arena, TD_MAX_METADATA);
    bool ok = td_operand_make(&operand, match->a, &layout->a, &arena, NULL) == TDBG_OK &&
              td_operand_make(&operand, match->b, &layout->b, &arena, NULL) == TDBG_OK;
    td_arena_release(&arena);
    return ok;
}

/* --- one pair ------------------------------------------------------------------------------------------ */

struct work {
    struct td_candidates candidates;
    double *scores; /* NULL when there was nothing to choose */
    char *group;
};

struct align_run {
    const struct td_matches *matches;
    const struct td_head_sizes *heads;
    struct td_job *job;
    struct work *work;
    _Atomic int status;
};

/* What the pairs written by one line of code have in common: the stage (or the name with its numbers masked)
 * and the shapes. */
static char *group_key(const struct td_match *m)
{
    const char *stage = m->a->layer >= 0 ? m->a->stage : m->a->name;
    size_t size = strlen(stage) + 64 + (size_t)(m->a->part_count + m->b->part_count + 8) * 8 * 24;
    char *key = malloc(size);
    if (!key)
        return NULL;
    size_t at = 0;
    for (const char *p = stage; *p; p++)
        key[at++] = isdigit((unsigned char)*p) ? '#' : *p;
    const struct td_item *sides[] = {m->a, m->b};
    for (int s = 0; s < 2; s++) {
        const struct td_shape *shape = &sides[s]->parts[0]->shape;
        at += (size_t)snprintf(key + at, size - at, "|%d", sides[s]->part_count);
        for (int i = 0; i < shape->ndim && at + 24 < size; i++)
            at += (size_t)snprintf(key + at, size - at, ",%lld", (long long)shape->size[i]);
    }
    snprintf(key + at, size - at, "|%d.%d", m->fused_a.index + 8 * m->fused_a.of,
             m->fused_b.index + 8 * m->fused_b.of);
    return key;
}

/* Shard i of one item resembles shard j of another, as far as a sample tells. */
static bool shards_resemble(const struct td_item *a, int i, const struct td_item *b, int j)
{
    struct td_layout both = {.shape = a->parts[i]->shape};
    both.a = both.b = (struct td_steps){.count = 1, .step = {{.kind = TD_STEP_FIRST}}};
    both.a.step[0].from = i;
    both.b.step[0].from = j;
    return a->parts[i]->count == b->parts[j]->count && score(a, b, &both, SAMPLES) > TD_CONVINCING;
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
static double score_ranks(const struct td_match *match, const struct td_layout *layout)
{
    double r = score(match->a, match->b, layout, SAMPLES);
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

/* Scores the candidates where there is anything to choose. Shapes that agree are only looked at twice when
 * their values do not. */
static tdbg_status score_all(const struct align_run *run, const struct td_match *match, struct work *w)
{
    struct td_candidates *all = &w->candidates;
    if (all->count == 0)
        return TDBG_OK;
    if (all->list[0].as_it_stands) {
        if (score(match->a, match->b, &all->list[0].layout, FIRST_LOOK) > TD_CONVINCING ||
            match->a->parts[0]->count < SMALLEST)
            return TDBG_OK;
        TD_TRY(td_candidates_add_rotary(all, run->heads, NULL));
    } else if (all->count == 1 && all->list[0].proof == TD_PROOF_NONE) {
        return TDBG_OK;
    }
    w->scores = calloc((size_t)all->count, sizeof *w->scores);
    if (!w->scores)
        return TDBG_NOMEM;
    for (int c = 0; c < all->count; c++) {
        if (td_job_cancelled(run->job)) /* samples of a cold file are slow */
            return TDBG_CANCELLED;
        w->scores[c] = score_ranks(match, &all->list[c].layout);
    }
    return TDBG_OK;
}

static void prepare(void *context, uint64_t i)
{
    struct align_run *run = context;
    const struct td_match *match = &run->matches->pairs[i];
    struct work *w = &run->work[i];
    if (!match->a || !match->b || atomic_load(&run->status) != TDBG_OK)
        return;
    if (td_job_cancelled(run->job)) {
        atomic_store(&run->status, TDBG_CANCELLED);
        return;
    }
    tdbg_status status = td_candidates_init(&w->candidates, match, run->heads, NULL);
    w->group = group_key(match);
    if (status == TDBG_OK && !w->group)
        status = TDBG_NOMEM;
    if (status == TDBG_OK)
        status = score_all(run, match, w);
    if (status != TDBG_OK)
        atomic_store(&run->status, (int)status);
}

/* --- the vote of the layers ---------------------------------------------------------------------------- */

static double evidence(const struct work *w, int candidate)
{
    double r = w->scores && candidate < w->candidates.count ? w->scores[candidate] : NAN;
    return r > 0 ? r * r : 0;
}

struct verdict_of_group {
    int best; /* -1: none */
    bool by_value;
};

/* Shapes that agree as they stand are taken as they stand, unless every layer says otherwise: one layer in
 * another order is a mistake, all layers in another order are a convention. */
static bool every_layer_needs(const struct align_run *run, const size_t *members, size_t count, int candidate)
{
    for (size_t i = 0; i < count; i++)
        if (evidence(&run->work[members[i]], candidate) < TD_CONVINCING * TD_CONVINCING)
            return false;
    return count > 1;
}

/* Some members have more candidates than others, behind the ones that all have. */
static const struct work *longest(const struct align_run *run, const size_t *members, size_t count)
{
    const struct work *most = &run->work[members[0]];
    for (size_t i = 1; i < count; i++)
        if (run->work[members[i]].candidates.count > most->candidates.count)
            most = &run->work[members[i]];
    return most;
}

/* members[0 .. count) are indices of work. */
static struct verdict_of_group vote(const struct align_run *run, const size_t *members, size_t count)
{
    const struct work *first = longest(run, members, count);
    int n = first->candidates.count, best = -1;
    bool agree = n > 0 && first->candidates.list[0].as_it_stands;
    double best_total = 0, least_total = INFINITY;
    for (int c = 0; c < n; c++) {
        double total = 0, most = 0;
        for (size_t i = 0; i < count; i++) {
            double layer = evidence(&run->work[members[i]], c);
            total += layer;
            most = fmax(most, layer);
        }
        enum td_proof proof = first->candidates.list[c].proof;
        bool fits = proof == TD_PROOF_NONE ||
                    (proof == TD_PROOF_ONCE ? most : total / (double)count) >= TD_CONVINCING * TD_CONVINCING;
        if ((agree && c > 0 && !every_layer_needs(run, members, count, c)) ||
            !feasible(&run->matches->pairs[members[0]], &first->candidates.list[c].layout))
            continue;
        least_total = fmin(least_total, total);
        if (!fits)
            continue;
        if (best < 0 || total > best_total + MARGIN * (double)count) {
            best_total = total;
            best = c;
        }
    }
    return (struct verdict_of_group){best, best_total > least_total + MARGIN * (double)count};
}

static tdbg_status settle(struct td_alignments *out, const struct align_run *run, size_t index,
                          struct verdict_of_group verdict, const struct td_layout *layout,
                          struct tdbg_error *error)
{
    struct td_alignment *alignment = &out->list[index];
    const struct work *w = &run->work[index];
    alignment->layout = layout;
    int other = -1;
    for (int c = 0; w->scores && c < w->candidates.count; c++)
        if (c != verdict.best && w->scores[c] > TD_CONVINCING &&
            (other < 0 || w->scores[c] > w->scores[other] + MARGIN))
            other = c;
    if (other < 0 || evidence(w, other) < evidence(w, verdict.best) + MARGIN)
        return TDBG_OK;
    alignment->other = td_arena_alloc(&out->arena, sizeof *alignment->other);
    if (!alignment->other)
        return td_fail_nomem(error);
    *alignment->other = w->candidates.list[other].layout;
    alignment->other->by_value = true;
    return TDBG_OK;
}

struct key_index {
    const char *key;
    size_t index;
};

static int by_key(const void *x, const void *y)
{
    const struct key_index *a = x, *b = y;
    int order = strcmp(a->key, b->key);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static tdbg_status decide(struct td_alignments *out, const struct align_run *run, struct tdbg_error *error)
{
    size_t n = 0, total = run->matches->count;
    struct key_index *keys = calloc(total + 1, sizeof *keys);
    size_t *members = calloc(total + 1, sizeof *members);
    tdbg_status status = keys && members ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < total; i++)
        if (run->work[i].group && run->work[i].candidates.count)
            keys[n++] = (struct key_index){run->work[i].group, i};
    if (status == TDBG_OK)
        qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0, end; status == TDBG_OK && i < n; i = end) {
        for (end = i; end < n && strcmp(keys[end].key, keys[i].key) == 0; end++)
            members[end - i] = keys[end].index;
        struct verdict_of_group verdict = vote(run, members, end - i);
        if (verdict.best < 0)
            continue;
        struct td_layout *layout = td_arena_alloc(&out->arena, sizeof *layout);
        if (!layout) {
            status = td_fail_nomem(error);
            break;
        }
        *layout = longest(run, members, end - i)->candidates.list[verdict.best].layout;
        layout->by_value = verdict.by_value;
        for (size_t k = i; status == TDBG_OK && k < end; k++)
            status = settle(out, run, keys[k].index, verdict, layout, error);
    }
    free(keys);
    free(members);
    return status;
}

tdbg_status td_align(struct td_alignments *out, const struct td_matches *matches,
                     const struct td_head_sizes *heads, struct td_pool *pool, struct td_job *job,
                     struct tdbg_error *error)
{
    struct td_alignments result = {0};
    struct align_run run = {.matches = matches, .heads = heads, .job = job};
    td_arena_init(&result.arena, TD_MAX_METADATA);
    result.list = td_arena_array(&result.arena, matches->count + 1, sizeof *result.list);
    run.work = calloc(matches->count + 1, sizeof *run.work);
    tdbg_status status = result.list && run.work ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        td_pool_run(pool, matches->count, prepare, &run);
        status = (tdbg_status)atomic_load(&run.status);
        if (status != TDBG_OK)
            td_fail(error, status, status == TDBG_CANCELLED ? "stopped" : "out of memory");
    }
    if (status == TDBG_OK)
        status = decide(&result, &run, error);
    for (size_t i = 0; run.work && i < matches->count; i++) {
        td_candidates_release(&run.work[i].candidates);
        free(run.work[i].scores);
        free(run.work[i].group);
    }
    free(run.work);
    if (status == TDBG_OK)
        *out = result;
    else
        td_arena_release(&result.arena);
    return status;
}

void td_alignments_release(struct td_alignments *alignments)
{
    td_arena_release(&alignments->arena);
    *alignments = (struct td_alignments){0};
}
