/* fitting.c: see fitting.h.
 *
 * Small pairs are measured side by side, one to a thread; a pair too large for that gets all threads. What a
 * measurement keeps is in an arena of its pair until all threads are done, then in that of the result.
 */
#include "compare/layout/fitting.h"

#include "compare/judge/judge.h"
#include "compare/layout/copies.h"
#include "compare/layout/doubted.h"
#include "compare/layout/layout_text.h"
#include "compare/layout/stored.h"
#include "kernel/block.h"

#include <stdlib.h>
#include <string.h>

/* From here on a pair is worth splitting over the threads: a few chunks of the kernels for each. */
/* Of pairs of pairs, which feeds which: a second or two. */
enum { MOST_QUESTIONS = 20000000 };

static const int64_t LARGE = INT64_C(1) << 21;

/* --- the layouts to begin with -------------------------------------------------------------------------- */

/* The layout that was given instead of the one that was found. What a person said counts: there is no other.
 */
static tdbg_status lay_out_by_hand(struct td_fitting *fitting, const struct td_match *match, const char *text,
                                   struct td_arena *arena, struct tdbg_error *error)
{
    struct tdbg_error why;
    struct td_layout *given = td_arena_alloc(arena, sizeof *given);
    if (!given)
        return td_fail_nomem(error);
    *fitting = (struct td_fitting){.layout = given};
    if (td_layout_parse(given, text, &match->a->parts[0]->shape, &match->b->parts[0]->shape, &why) != TDBG_OK)
        *fitting = (struct td_fitting){.measurement = td_measurement_failed(why.message, arena)};
    return TDBG_OK;
}

static tdbg_status begin(const struct td_fit *fit, const struct td_alignments *alignments,
                         const char *by_hand, struct tdbg_error *error)
{
    int axes = by_hand ? td_layout_text_axes(by_hand) : -1;
    size_t given = 0;
    for (size_t i = 0; i < fit->matches->count; i++) {
        const struct td_match *m = &fit->matches->pairs[i];
        const struct td_alignment *alignment = &alignments->list[i];
        fit->list[i] = (struct td_fitting){
            .layout = alignment->layout, .instead = alignment->instead, .other = alignment->other};
        if (m->a && m->b && axes == m->b->parts[0]->shape.ndim) {
            TD_TRY(lay_out_by_hand(&fit->list[i], m, by_hand, fit->work->arena, error));
            given++;
        }
    }
    if (axes >= 0 && given == 0)
        return td_fail(error, TDBG_MISUSE, "layout '%s' fits no pair: no tensor of B has %d axes", by_hand,
                       axes);
    return TDBG_OK;
}

/* --- 1: measure ----------------------------------------------------------------------------------------- */

void td_fitting_measure(struct td_fitting *f, const struct td_match *m, const struct td_rules *rules,
                        const struct td_work *work)
{
    struct tdbg_error error;
    if (m->a && m->b && f->layout && !f->measurement.failure &&
        td_measurement_take(&f->measurement, rules, m->a, m->b, f->layout, work, &error) != TDBG_OK)
        f->measurement = td_measurement_failed(error.message, work->arena);
    f->by_values = td_judge_values(&rules->policy, m, f).verdict;
}

static void measure_at(const struct td_fit *fit, size_t i, struct td_pool *pool)
{
    const struct td_work work = {pool, fit->work->job, &fit->arenas[i]};
    if (!td_job_cancelled(work.job))
        td_fitting_measure(&fit->list[i], &fit->matches->pairs[i], fit->rules, &work);
}

/* One side will do for a pair that is not measured. */
static bool is_large(const struct td_match *m)
{
    const struct td_item *item = m->a ? m->a : m->b;
    return item->parts[0]->count * item->part_count >= LARGE;
}

static void measure_small(void *context, uint64_t i)
{
    const struct td_fit *fit = context;
    if (!is_large(&fit->matches->pairs[i]))
        measure_at(fit, i, NULL);
}

/* What measuring will report to the job, so that who watches knows how far it is. */
static void announce(const struct td_fit *fit)
{
    uint64_t chunks = 0;
    struct td_job *job = fit->work->job;
    for (size_t i = 0; job && i < fit->matches->count; i++) {
        const struct td_match *m = &fit->matches->pairs[i];
        if (m->a && m->b && fit->list[i].layout)
            chunks += (uint64_t)((m->a->parts[0]->count * m->a->part_count + TD_CHUNK_LENGTH - 1) /
                                 TD_CHUNK_LENGTH);
    }
    if (job)
        atomic_fetch_add_explicit(&job->total, chunks * TD_CHUNK_LENGTH, memory_order_relaxed);
}

static tdbg_status measure_all(struct td_fit *fit, struct tdbg_error *error)
{
    announce(fit);
    td_pool_run(fit->work->pool, fit->matches->count, measure_small, fit);
    for (size_t i = 0; i < fit->matches->count; i++)
        if (is_large(&fit->matches->pairs[i]))
            measure_at(fit, i, fit->work->pool);
    return td_job_cancelled(fit->work->job) ? td_fail(error, TDBG_CANCELLED, "stopped") : TDBG_OK;
}

/* --- 5: remnants ---------------------------------------------------------------------------------------- */

static tdbg_status find_remnants(const struct td_fit *fit, struct tdbg_error *error)
{
    for (size_t i = 0; i < fit->matches->count; i++) {
        struct td_fitting *f = &fit->list[i];
        for (int side = 0; side < 2 && td_fitting_measured(f); side++)
            TD_TRY(td_remnant_find(&f->remnant[side], &fit->matches->pairs[i], f->layout, side,
                                   fit->model->tokens, fit->work, error));
    }
    return TDBG_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* The worst elements and the reasons of failures move to the arena of the result. */
static void adopt(const struct td_fit *fit)
{
    for (size_t i = 0; i < fit->matches->count; i++) {
        struct td_measurement *m = &fit->list[i].measurement;
        struct td_arena *arena = fit->work->arena;
        if (m->failure)
            *m = td_measurement_failed(m->failure, arena);
        struct td_worst *kept =
            m->worst_count ? td_arena_array(arena, (size_t)m->worst_count, sizeof *kept) : NULL;
        if (kept)
            memcpy(kept, m->worst, (size_t)m->worst_count * sizeof *kept);
        m->worst = kept;
        m->worst_count = kept ? m->worst_count : 0;
    }
}

static tdbg_status fit_in_order(struct td_fit *fit, struct tdbg_error *error)
{
    TD_TRY(measure_all(fit, error));
    td_fit_doubted(fit);
    TD_TRY(td_fit_stored(fit, error));
    TD_TRY(td_fit_copies(fit, error));
    return find_remnants(fit, error);
}

tdbg_status td_fit_all(struct td_fitting *out, const struct td_matches *matches,
                       const struct td_alignments *alignments, const char *by_hand,
                       const struct td_rules *rules, const struct td_model *model, const struct td_work *work,
                       struct tdbg_error *error)
{
    size_t questions = MOST_QUESTIONS;
    struct td_fit fit = {.matches = matches,
                         .list = out,
                         .rules = rules,
                         .model = model,
                         .work = work,
                         .questions = &questions};
    fit.arenas = calloc(matches->count + 1, sizeof *fit.arenas);
    if (!fit.arenas)
        return td_fail_nomem(error);
    for (size_t i = 0; i < matches->count; i++)
        td_arena_init(&fit.arenas[i], TD_MAX_METADATA);
    tdbg_status status = begin(&fit, alignments, by_hand, error);
    if (status == TDBG_OK)
        status = fit_in_order(&fit, error);
    if (status == TDBG_OK)
        adopt(&fit);
    for (size_t i = 0; i < matches->count; i++)
        td_arena_release(&fit.arenas[i]);
    free(fit.arenas);
    return status;
}
