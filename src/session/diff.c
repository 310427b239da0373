/* diff.c: the order of a comparison. See diff.h.
 *
 *     open both -> items (shards joined) -> pairs -> layouts -> measure and judge -> origins -> diagnosis
 *
 * Small pairs are measured side by side, one to a thread; a pair too large for that gets all threads.
 */
#include "session/diff.h"

#include "compare/layout/align.h"
#include "compare/diagnose/doctor.h"
#include "compare/judge/origins.h"
#include "compare/judge/grid.h"
#include "compare/judge/settle.h"
#include "compare/layout/layout_text.h"
#include "kernel/block.h"
#include "session/judge.h"
#include "session/match_program.h"
#include "session/missing.h"
#include "session/reference.h"
#include "session/repair.h"
#include "session/replicas.h"
#include "session/side.h"
#include "session/vanished.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on a pair is worth splitting over the threads: a few chunks of the kernels for each. */
static const int64_t LARGE = INT64_C(1) << 21;

/* How many divergences get a diagnosis: the first is the one that matters, a few more born elsewhere help. */
enum { MAX_DIAGNOSES = 8 };

struct diff_run {
    struct td_diff *diff;
    const struct td_diff_options *options;
    struct td_head_sizes heads;
    struct td_references references;
    struct td_judge judge;
    int64_t tokens;
    struct td_pool *pool;
    struct td_job *job;
    struct td_arena *scratch; /* one for each pair: what its worker allocates */
};

/* --- preparation ---------------------------------------------------------------------------------------- */

/* The length of the sequence: the size that most activations have in common. The first of four axes counts
 * sequences, and of two that are as frequent a batch is the far smaller one, though tokens may well be fewer
 * than heads: by half at least. */
static int64_t find_tokens(const struct td_side *side)
{
    int64_t sizes[64];
    size_t counts[64] = {0}, known = 0, best = 0;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_shape *shape = &side->items[i].parts[0]->shape;
        int last = side->items[i].parameter ? 0 : shape->ndim - 1; /* which holds channels */
        for (int d = shape->ndim == 4; d < last; d++) {
            size_t k = 0;
            while (k < known && sizes[k] != shape->size[d])
                k++;
            if (k == 64 || shape->size[d] < 2)
                continue;
            if (k == known)
                sizes[known++] = shape->size[d];
            counts[k]++;
        }
    }
    for (size_t k = 1; k < known; k++)
        if (counts[k] > counts[best] || (counts[k] == counts[best] && sizes[k] >= 2 * sizes[best]))
            best = k;
    return known ? sizes[best] : 0;
}

static void survey(struct diff_run *run)
{
    const struct td_side *sides[] = {&run->diff->side_a, &run->diff->side_b};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++) {
            const struct td_item *item = &sides[s]->items[i];
            td_head_sizes_add(&run->heads, &item->parts[0]->shape);
            if (item->layer + 1 > run->judge.layers)
                run->judge.layers = item->layer + 1;
        }
    td_head_sizes_guess(&run->heads);
    run->tokens = find_tokens(&run->diff->side_a);
    for (int s = 0; s < 2; s++)
        run->judge.grid[s] = td_side_grid(sides[s]);
}

/* The user's pairs come first, then what his program answers, then the strategies. */
static tdbg_status pair_up(struct diff_run *run, struct tdbg_error *error)
{
    struct td_diff *diff = run->diff;
    struct td_match_options options = run->options->match;
    struct td_pairs answered = {0};
    TD_TRY(td_match_chain_program(&answered, options.strategy, &diff->side_a, &diff->side_b, error));
    size_t given = options.manual_count, total = given + answered.count;
    struct td_name_pair *all = calloc(total + 1, sizeof *all);
    tdbg_status status = all ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        if (given)
            memcpy(all, options.manual, given * sizeof *all);
        if (answered.count)
            memcpy(all + given, answered.list, answered.count * sizeof *all);
        options.manual = all;
        options.manual_count = total;
        status = td_match_sides(&diff->matches, &diff->side_a, &diff->side_b, &options,
                                &(struct td_work){run->pool, run->job, NULL}, error);
    }
    free(all);
    td_pairs_release(&answered);
    return status;
}

/* The layout that was given instead of the one that was found. */
static tdbg_status lay_out_by_hand(struct diff_run *run, struct td_pair *p, struct td_alignment *alignment,
                                   struct tdbg_error *error)
{
    struct tdbg_error why;
    struct td_layout *given = td_arena_alloc(&run->diff->arena, sizeof *given);
    if (!given)
        return td_fail_nomem(error);
    if (td_layout_parse(given, run->options->layout, &p->a->parts[0]->shape, &p->b->parts[0]->shape, &why) !=
        TDBG_OK) {
        p->ruling.verdict = TD_ERROR;
        snprintf(p->ruling.reason, sizeof p->ruling.reason, "%.180s", why.message);
        given = NULL;
    }
    alignment->layout = given;
    alignment->other = NULL; /* what a person said counts */
    return TDBG_OK;
}

static tdbg_status lay_out_pairs(struct diff_run *run, struct tdbg_error *error)
{
    struct td_diff *diff = run->diff;
    int axes = run->options->layout ? td_layout_text_axes(run->options->layout) : -1;
    size_t by_hand = 0;
    diff->count = diff->matches.count;
    diff->pairs = td_arena_array(&diff->arena, diff->count + 1, sizeof *diff->pairs);
    run->scratch = calloc(diff->count + 1, sizeof *run->scratch);
    if (!diff->pairs || !run->scratch)
        return td_fail_nomem(error);
    for (size_t i = 0; i < diff->count; i++) {
        const struct td_match *m = &diff->matches.pairs[i];
        const struct td_item *named = m->a ? m->a : m->b;
        struct td_pair *p = &diff->pairs[i];
        *p = (struct td_pair){.a = m->a,
                              .b = m->b,
                              .match = m,
                              .strategy = m->strategy,
                              .layer = named->layer,
                              .stage = named->stage,
                              .name = named->name};
        td_arena_init(&run->scratch[i], TD_MAX_METADATA);
        if (!m->a || !m->b) {
            p->ruling.verdict = m->a ? TD_ONLY_A : TD_ONLY_B;
            snprintf(p->ruling.reason, sizeof p->ruling.reason, "no partner in %c", m->a ? 'B' : 'A');
        } else if (axes == m->b->parts[0]->shape.ndim) {
            TD_TRY(lay_out_by_hand(run, p, &diff->alignments.list[i], error));
            by_hand++;
        }
        p->layout = diff->alignments.list[i].layout;
    }
    if (axes >= 0 && by_hand == 0)
        return td_fail(error, TDBG_MISUSE, "layout '%s' fits no pair: no tensor of B has %d axes",
                       run->options->layout, axes);
    return TDBG_OK;
}

/* --- one pair ------------------------------------------------------------------------------------------- */

static int64_t elements(const struct td_pair *p)
{
    return p->a->parts[0]->count * p->a->part_count;
}

static void judge_one(struct diff_run *run, size_t index, struct td_pool *pool)
{
    struct td_pair *p = &run->diff->pairs[index];
    struct tdbg_error error;
    if (!p->a || !p->b || p->ruling.verdict == TD_ERROR || td_job_cancelled(run->job))
        return;
    if (!p->layout)
        td_pair_refuse_shapes(p);
    else if (td_judge_pair(&run->judge, p, pool, &run->scratch[index], &error) != TDBG_OK)
        td_pair_give_up(p, error.message);
}

static void judge_small(void *context, uint64_t index)
{
    struct diff_run *run = context;
    const struct td_pair *p = &run->diff->pairs[index];
    if (p->a && p->b && elements(p) < LARGE)
        judge_one(run, index, NULL);
}

/* What measuring will report to the job, so that who watches knows how far it is. */
static void announce(struct diff_run *run)
{
    uint64_t chunks = 0;
    for (size_t i = 0; run->job && i < run->diff->count; i++) {
        const struct td_pair *p = &run->diff->pairs[i];
        if (p->a && p->b && p->layout)
            chunks += (uint64_t)((elements(p) + TD_CHUNK_LENGTH - 1) / TD_CHUNK_LENGTH);
    }
    if (run->job)
        atomic_fetch_add_explicit(&run->job->total, chunks * TD_CHUNK_LENGTH, memory_order_relaxed);
}

static void judge_all(struct diff_run *run)
{
    announce(run);
    td_pool_run(run->pool, run->diff->count, judge_small, run);
    for (size_t i = 0; i < run->diff->count; i++) {
        const struct td_pair *p = &run->diff->pairs[i];
        if (p->a && p->b && elements(p) >= LARGE)
            judge_one(run, i, run->pool);
    }
}

/* --- the run as a whole --------------------------------------------------------------------------------- */

static tdbg_status profile(struct diff_run *run, struct td_pair *p, struct tdbg_error *error)
{
    struct td_operand a, b;
    TD_TRY(td_operand_make(&a, p->a, &p->layout->a, &run->diff->arena, error));
    TD_TRY(td_operand_make(&b, p->b, &p->layout->b, &run->diff->arena, error));
    return td_profile(&a, &b, run->pool, run->job, &run->diff->arena, &p->profile, error);
}

/* The divergences worth a diagnosis. */
struct patients {
    struct diff_run *run;
    int count;
    struct td_pair *list[MAX_DIAGNOSES];
    tdbg_status status[MAX_DIAGNOSES];
    struct tdbg_error error[MAX_DIAGNOSES];
};

static void diagnose(struct patients *patients, uint64_t i, struct td_pool *pool)
{
    const struct diff_run *run = patients->run;
    const struct td_diff *diff = run->diff;
    struct td_pair *p = patients->list[i];
    struct td_case c = {.item_a = p->a,
                        .item_b = p->b,
                        .layout = p->layout,
                        .other = diff->alignments.list[p - diff->pairs].other,
                        .metrics = &p->metrics,
                        .profile = p->profile,
                        .floor = p->ruling.noise,
                        .missing = p->cut == TD_CUT_MISSING ? p->ruling.reason : NULL,
                        .a = &diff->side_a,
                        .heads = &run->heads,
                        .tokens = run->tokens,
                        .job = run->job};
    patients->status[i] = td_job_cancelled(run->job)
                              ? td_fail(&patients->error[i], TDBG_CANCELLED, "stopped")
                              : td_diagnose(&c, pool, p->diagnosis, &patients->error[i]);
}

static void diagnose_one(void *context, uint64_t i)
{
    diagnose(context, i, NULL);
}

/* Side by side: each is a long piece of work for one thread. One alone is shared out. */
static tdbg_status diagnose_born(struct diff_run *run, struct tdbg_error *error)
{
    struct td_diff *diff = run->diff;
    struct patients patients = {.run = run};
    for (size_t i = 0; i < diff->count && patients.count < MAX_DIAGNOSES; i++) {
        struct td_pair *p = &diff->pairs[i];
        if (p->ruling.verdict != TD_DIVERGED || (p->origin != TD_BORN && p != diff->first))
            continue;
        p->diagnosis = td_arena_alloc(&diff->arena, sizeof *p->diagnosis);
        if (!p->diagnosis)
            return td_fail_nomem(error);
        patients.list[patients.count++] = p;
        TD_TRY(profile(run, p, error));
    }
    if (patients.count == 1)
        diagnose(&patients, 0, run->pool);
    else
        td_pool_run(run->pool, (uint64_t)patients.count, diagnose_one, &patients);
    for (int i = 0; i < patients.count; i++)
        if (patients.status[i] != TDBG_OK)
            return td_fail(error, patients.status[i], "%s", patients.error[i].message);
    return TDBG_OK;
}

void td_summary_add(struct td_summary *s, const struct td_pair *p)
{
    size_t *const counters[] = {&s->identical, &s->within, &s->diverged, &s->errors, &s->only_a, &s->only_b};
    s->pairs += p->a && p->b;
    ++*counters[p->ruling.verdict];
}

static tdbg_status compare(struct diff_run *run, struct tdbg_error *error)
{
    struct td_diff *diff = run->diff;
    TD_TRY(td_side_of_choice(&diff->side_a, &diff->choice_a, error));
    TD_TRY(td_side_of_choice(&diff->side_b, &diff->choice_b, error));
    survey(run);
    TD_TRY(pair_up(run, error));
    TD_TRY(td_order_settle(&diff->matches, &diff->side_a, &diff->side_b, error));
    TD_TRY(td_align(&run->diff->alignments, &diff->matches, &run->heads, run->pool, run->job, error));
    TD_TRY(td_references_open(&run->references, run->options->reference, &diff->side_a, &diff->side_b,
                              &run->heads, run->pool, run->job, error));
    TD_TRY(lay_out_pairs(run, error));
    judge_all(run);
    if (td_job_cancelled(run->job))
        return td_fail(error, TDBG_CANCELLED, "stopped");
    TD_TRY(td_repair_stored(diff, &run->judge, &run->heads, run->pool, run->scratch, error));
    TD_TRY(td_check_replicas(diff, &run->judge, run->pool, run->scratch, error));
    TD_TRY(td_check_missing(diff, &run->judge, run->tokens, run->pool, run->scratch, error));
    TD_TRY(td_forgive_vanished(diff, error));
    diff->first = td_origins_find(diff->pairs, diff->count, diff->side_a.order);
    TD_TRY(diagnose_born(run, error));
    for (size_t i = 0; i < diff->count; i++)
        td_summary_add(&diff->summary, &diff->pairs[i]);
    return TDBG_OK;
}

/* A file that was cut short under way has left zeros in anything that was computed since. */
static tdbg_status verify(const struct td_diff *diff, struct tdbg_error *error)
{
    const struct td_side *sides[] = {&diff->side_a, &diff->side_b};
    const struct td_input *inputs[] = {diff->a, diff->b};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++) {
            tdbg_status status = td_item_verify(&sides[s]->items[i], error);
            if (status != TDBG_OK) {
                td_error_prefix(error, sides[s]->items[i].name);
                td_error_prefix(error, td_input_path(inputs[s]));
                return status;
            }
        }
    return TDBG_OK;
}

static void adopt_scratch(struct diff_run *run)
{
    struct td_diff *diff = run->diff;
    for (size_t i = 0; run->scratch && i < diff->count; i++) {
        struct td_pair *p = &diff->pairs[i];
        struct td_worst *kept = td_arena_array(&diff->arena, (size_t)p->worst_count + 1, sizeof *kept);
        if (kept && p->worst_count)
            memcpy(kept, p->worst, (size_t)p->worst_count * sizeof *kept);
        p->worst = kept;
        p->worst_count = kept ? p->worst_count : 0;
        td_arena_release(&run->scratch[i]);
    }
    free(run->scratch);
}

struct opening {
    const char *paths[2];
    struct td_choice *choices[2];
    struct td_job *job;
    atomic_bool stopped; /* by a side that failed */
    tdbg_status status[2];
    struct tdbg_error errors[2];
};

/* When one side fails, the other need not go on. */
static void open_one(void *context, uint64_t i)
{
    struct opening *o = context;
    o->status[i] = td_choice_open(o->choices[i], o->paths[i], o->job, &o->errors[i]);
    if (o->status[i] != TDBG_OK && o->job && !atomic_exchange(&o->job->cancelled, true))
        atomic_store(&o->stopped, true);
}

/* Side by side: it takes long where many files are listed or an archive is unpacked. */
static tdbg_status open_sides(struct diff_run *run, const char *path_a, const char *path_b,
                              struct tdbg_error *error)
{
    struct td_diff *diff = run->diff;
    struct opening o = {{path_a, path_b}, {&diff->choice_a, &diff->choice_b}, .job = run->job};
    td_pool_run(run->pool, 2, open_one, &o);
    diff->a = diff->choice_a.input;
    diff->b = diff->choice_b.input;
    if (atomic_load(&o.stopped))
        atomic_store(&run->job->cancelled, false);
    bool b_failed = o.status[0] == TDBG_OK || (o.status[0] == TDBG_CANCELLED && o.status[1] != TDBG_OK);
    if (o.status[b_failed] != TDBG_OK && error)
        *error = o.errors[b_failed];
    return o.status[b_failed];
}

tdbg_status td_diff_open(struct td_diff **out, const char *path_a, const char *path_b,
                         const struct td_diff_options *options, struct td_pool *pool, struct td_job *job,
                         struct tdbg_error *error)
{
    struct td_diff *diff = calloc(1, sizeof *diff);
    if (!diff)
        return td_fail_nomem(error);
    td_arena_init(&diff->arena, TD_MAX_METADATA);
    diff->policy = options->policy;
    diff->reference = options->reference ? td_arena_strdup(&diff->arena, options->reference) : NULL;
    struct diff_run run = {.diff = diff, .options = options, .pool = pool, .job = job};
    run.judge = (struct td_judge){
        .policy = options->policy, .references = &run.references, .top = options->top, .job = job};
    tdbg_status status = open_sides(&run, path_a, path_b, error);
    if (status == TDBG_OK)
        status = compare(&run, error);
    adopt_scratch(&run);
    if (status == TDBG_OK)
        status = td_doctor(diff->pairs, diff->count, &diff->side_a, &diff->side_b, &diff->arena, &diff->notes,
                           &diff->note_count, error);
    if (status == TDBG_OK)
        status = verify(diff, error);
    td_references_close(&run.references);
    if (status == TDBG_OK)
        *out = diff;
    else
        td_diff_close(&diff);
    return status;
}

void td_diff_close(struct td_diff **diff)
{
    if (!*diff)
        return;
    td_alignments_release(&(*diff)->alignments);
    td_matches_release(&(*diff)->matches);
    td_side_release(&(*diff)->side_a);
    td_side_release(&(*diff)->side_b);
    td_choice_close(&(*diff)->choice_a);
    td_choice_close(&(*diff)->choice_b);
    td_arena_release(&(*diff)->arena);
    free(*diff);
    *diff = NULL;
}
