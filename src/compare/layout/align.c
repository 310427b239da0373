/* align.c: see align.h. Candidates and their scores, pair by pair and side by side; vote.c decides. */
#include "compare/layout/align.h"

#include "compare/layout/regroup.h"
#include "compare/layout/rotary.h"
#include "compare/layout/sampled.h"
#include "compare/layout/vote.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Too few elements to tell one order from another by chance. */
static const int64_t SMALLEST = 32;

/* A layout in which no more than rounding is left. Where only a quarter of the channels of each head is
 * rotated, the others correlate in any order. */
static const double COMPLETE = 0.98;

struct align_run {
    const struct td_matches *matches;
    const struct td_head_sizes *heads;
    struct td_job *job;
    struct td_ballot *ballots;
    _Atomic int status;
};

/* --- what pairs have in common -------------------------------------------------------------------------- */

/* The stage, or the name, with its numbers masked. */
static void add_stage(char *key, size_t *at, const struct td_item *item)
{
    for (const char *p = item->layer >= 0 ? item->stage : item->name; *p; p++)
        key[(*at)++] = isdigit((unsigned char)*p) ? '#' : *p;
}

static void add_shape(char *key, size_t size, size_t *at, const struct td_item *item)
{
    const struct td_shape *shape = &item->parts[0]->shape;
    *at += (size_t)snprintf(key + *at, size - *at, "|%d", item->part_count);
    for (int i = 0; i < shape->ndim; i++)
        *at += (size_t)snprintf(key + *at, size - *at, ",%lld", (long long)shape->size[i]);
}

/* Both need room for two lists of sizes behind the name. */
static char *new_key(const struct td_item *item, size_t *size)
{
    *size = strlen(item->layer >= 0 ? item->stage : item->name) + 128 + (2 * TD_MAX_DIMS) * 24;
    return malloc(*size);
}

/* What the pairs written by one line of code have in common: the stage and the shapes. */
static char *group_key(const struct td_match *m)
{
    size_t size, at = 0;
    char *key = new_key(m->a, &size);
    if (!key)
        return NULL;
    add_stage(key, &at, m->a);
    add_shape(key, size, &at, m->a);
    add_shape(key, size, &at, m->b);
    snprintf(key + at, size - at, "|%d/%d.%d/%d", m->fused_a.index, m->fused_a.of, m->fused_b.index,
             m->fused_b.of);
    return key;
}

/* What the parts of one fused tensor have in common, in all layers. */
static char *set_key(const struct td_match *m)
{
    bool in_a = m->fused_a.of > 0;
    const struct td_item *whole = in_a ? m->a : m->b;
    size_t size, at = 0;
    char *key = new_key(whole, &size);
    if (!key)
        return NULL;
    add_stage(key, &at, whole);
    add_shape(key, size, &at, whole);
    snprintf(key + at, size - at, "|%d.%d", in_a, in_a ? m->fused_a.of : m->fused_b.of);
    return key;
}

static bool is_part(const struct td_match *m)
{
    return (m->fused_a.of > 0) != (m->fused_b.of > 0);
}

/* --- one pair ------------------------------------------------------------------------------------------- */

static bool has_rotary_role(const struct td_item *item)
{
    bool known = item->role == TD_ROLE_NONE && item->layer >= 0;
    return item->role == TD_ROLE_ATTN_Q || item->role == TD_ROLE_ATTN_K ||
           item->role == TD_ROLE_ATTN_Q_NORM || item->role == TD_ROLE_ATTN_K_NORM ||
           item->role == TD_ROLE_ATTN_Q_ROPE || item->role == TD_ROLE_ATTN_K_ROPE ||
           (known && (strcmp(item->stage, "query_final") == 0 || strcmp(item->stage, "key_final") == 0));
}

/* Whether the channels of each head may be in another order. Some engines keep queries and keys so; what no
 * name tells may be one of them. */
enum rotation { NEVER, PERHAPS, LIKELY };

static enum rotation may_be_rotated(const struct td_match *m)
{
    const struct td_fusion *part = m->fused_a.of ? &m->fused_a : &m->fused_b;
    if (part->of == 3)
        return part->index < 2 ? LIKELY : NEVER;
    if (has_rotary_role(m->a) || has_rotary_role(m->b))
        return LIKELY;
    return m->a->role == TD_ROLE_NONE && !m->a->parameter ? PERHAPS : NEVER;
}

/* What a layout must come to for nobody to look for another. */
static double enough(const struct td_match *m)
{
    return may_be_rotated(m) == NEVER ? TD_CONVINCING : COMPLETE;
}

/* Rotary orders are many and must convince: most are seen to be wrong by a few elements. */
static double score(const struct td_match *match, const struct td_layout *layout)
{
    static const double HOPELESS = 0.5;
    if (layout->rotary && !(td_layout_first_look(match->a, match->b, layout) > HOPELESS))
        return 0;
    return td_match_fit(match, layout);
}

/* Scores the candidates from `first` on. There are many ways to cut a fused tensor, by the sizes that a head
 * may have, and one that fits needs no others beside it. */
static tdbg_status score_from(const struct align_run *run, const struct td_match *match, struct td_ballot *b,
                              int first)
{
    double *scores = reallocarray(b->scores, (size_t)b->candidates.count + 1, sizeof *scores);
    if (!scores)
        return TDBG_NOMEM;
    b->scores = scores;
    bool found = false;
    for (int c = first; c < b->candidates.count; c++) {
        scores[c] = NAN;
        if (found)
            continue;
        if (td_job_cancelled(run->job)) /* samples of a cold file are slow */
            return TDBG_CANCELLED;
        scores[c] = score(match, &b->candidates.list[c].layout);
        found = b->candidates.list[c].cut != 0 && scores[c] > COMPLETE;
    }
    return TDBG_OK;
}

/* Where there is anything to choose. Shapes that agree are only looked at twice when their values do not. */
static tdbg_status score_all(const struct align_run *run, const struct td_match *match, struct td_ballot *b)
{
    const struct td_candidates *all = &b->candidates;
    if (all->count == 0)
        return TDBG_OK;
    if (all->list[0].as_it_stands) {
        if (match->a->parts[0]->count < SMALLEST ||
            td_layout_first_look(match->a, match->b, &all->list[0].layout) > enough(match))
            return TDBG_OK;
    } else if (all->count == 1 && all->list[0].proof == TD_PROOF_NONE && may_be_rotated(match) == NEVER) {
        return TDBG_OK;
    }
    return score_from(run, match, b, 0);
}

/* Runs work(run, match, ballot) unless somebody failed before. */
static void guarded(struct align_run *run, uint64_t i,
                    tdbg_status (*work)(const struct align_run *run, const struct td_match *match,
                                        struct td_ballot *b))
{
    const struct td_match *match = &run->matches->pairs[i];
    if (!match->a || !match->b || atomic_load(&run->status) != TDBG_OK)
        return;
    tdbg_status status = td_job_cancelled(run->job) ? TDBG_CANCELLED : work(run, match, &run->ballots[i]);
    if (status != TDBG_OK)
        atomic_store(&run->status, (int)status);
}

static tdbg_status prepare_one(const struct align_run *run, const struct td_match *match, struct td_ballot *b)
{
    TD_TRY(td_candidates_init(&b->candidates, match, run->heads, NULL));
    b->group = group_key(match);
    b->set = is_part(match) ? set_key(match) : NULL;
    if (!b->group || (is_part(match) && !b->set))
        return TDBG_NOMEM;
    return score_all(run, match, b);
}

static void prepare(void *context, uint64_t i)
{
    guarded(context, i, prepare_one);
}

/* q, k and v in one tensor on both sides. */
static bool is_fused_whole(const struct td_match *match)
{
    return !is_part(match) && (match->a->role == TD_ROLE_ATTN_QKV || match->b->role == TD_ROLE_ATTN_QKV);
}

/* Where nothing fits yet, the channels of each head in another order: of what may be rotated, and of what has
 * one shape on both sides. Where no name tells, for sizes of a head that the dump shows. */
static tdbg_status rotate_one(const struct align_run *run, const struct td_match *match, struct td_ballot *b)
{
    struct td_candidates *all = &b->candidates;
    enum rotation rotation = may_be_rotated(match);
    bool wanted = rotation == LIKELY || (rotation == PERHAPS && !run->heads->guessed);
    if (!b->scores || (!wanted && !all->list[0].as_it_stands && !is_fused_whole(match)))
        return TDBG_OK;
    for (int c = 0; c < all->count; c++)
        if ((b->cut == 0 || all->list[c].cut == b->cut) && b->scores[c] > enough(match))
            return TDBG_OK;
    int before = all->count;
    if (is_fused_whole(match)) {
        TD_TRY(td_candidates_add_regrouped(all, run->heads, NULL));
        return score_from(run, match, b, before);
    }
    int sizes = rotation == LIKELY ? td_head_sizes_count(run->heads) : run->heads->count;
    TD_TRY(td_candidates_add_rotary(all, b->cut, sizes, wanted, run->heads, NULL));
    return score_from(run, match, b, before);
}

static void rotate(void *context, uint64_t i)
{
    guarded(context, i, rotate_one);
}

static tdbg_status run_all(struct align_run *run, struct td_pool *pool, void (*work)(void *, uint64_t),
                           struct tdbg_error *error)
{
    td_pool_run(pool, run->matches->count, work, run);
    tdbg_status status = (tdbg_status)atomic_load(&run->status);
    if (status == TDBG_OK)
        return TDBG_OK;
    return td_fail(error, status, status == TDBG_CANCELLED ? "stopped" : "out of memory");
}

tdbg_status td_align(struct td_alignments *out, const struct td_matches *matches,
                     const struct td_head_sizes *heads, struct td_pool *pool, struct td_job *job,
                     struct tdbg_error *error)
{
    struct td_alignments result = {0};
    struct align_run run = {.matches = matches, .heads = heads, .job = job};
    td_arena_init(&result.arena, TD_MAX_METADATA);
    result.list = td_arena_array(&result.arena, matches->count + 1, sizeof *result.list);
    run.ballots = calloc(matches->count + 1, sizeof *run.ballots);
    tdbg_status status = result.list && run.ballots ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK)
        status = run_all(&run, pool, prepare, error);
    if (status == TDBG_OK)
        status = td_vote_on_cuts(matches, run.ballots, error);
    if (status == TDBG_OK)
        status = run_all(&run, pool, rotate, error);
    if (status == TDBG_OK)
        status = td_vote(&result, matches, run.ballots, error);
    for (size_t i = 0; run.ballots && i < matches->count; i++) {
        td_candidates_release(&run.ballots[i].candidates);
        free(run.ballots[i].scores);
        free(run.ballots[i].group);
        free(run.ballots[i].set);
    }
    free(run.ballots);
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
