/* compare.c: the stages of a comparison, in the order that compare.h explains. */
#include "compare/compare.h"

#include "compare/diagnose/doctor.h"
#include "compare/explain.h"
#include "compare/judge/coverage.h"
#include "compare/judge/judge.h"
#include "compare/judge/origins.h"
#include "compare/judge/settle.h"
#include "compare/layout/fitting.h"

#include <stdlib.h>

/* --- what the stages found of a pair -------------------------------------------------------------------- */

/* A tensor that only B has belongs to the layer that it has in A's counting. */
static struct td_pair pair_of(const struct td_match *m, int64_t layer_offset)
{
    const struct td_item *named = m->a ? m->a : m->b;
    int64_t layer = named->layer - (m->a || named->layer < layer_offset ? 0 : layer_offset);
    return (struct td_pair){.a = m->a,
                            .b = m->b,
                            .match = m,
                            .strategy = m->strategy,
                            .layer = layer,
                            .stage = named->stage,
                            .name = named->name};
}

/* Measured and judged; origins and the diagnosis are added by their own stages. */
static struct td_outcome outcome_of(const struct td_fitting *f, const struct td_judgement *j)
{
    const struct td_measurement *m = &f->measurement;
    return (struct td_outcome){.ruling = j->ruling,
                               .metrics = m->metrics,
                               .beyond = m->beyond,
                               .worst_count = m->worst_count,
                               .worst = m->worst,
                               .cut = j->cut,
                               .repaired = f->repaired,
                               .unlike_shards = f->unlike_shards};
}

static tdbg_status put_together(struct td_comparison *c, const struct td_fitting *fittings,
                                const struct td_judgement *judgements, struct tdbg_error *error)
{
    c->count = c->matches.count;
    c->pairs = td_arena_array(&c->arena, c->count + 1, sizeof *c->pairs);
    if (!c->pairs)
        return td_fail_nomem(error);
    for (size_t i = 0; i < c->count; i++) {
        c->pairs[i] = pair_of(&c->matches.pairs[i], c->matches.layer_offset);
        c->pairs[i].layout = fittings[i].layout;
        c->pairs[i].outcome = outcome_of(&fittings[i], &judgements[i]);
    }
    return TDBG_OK;
}

void td_summary_add(struct td_summary *s, const struct td_pair *p)
{
    size_t *const counters[] = {&s->identical, &s->within, &s->diverged, &s->errors, &s->only_a, &s->only_b};
    s->pairs += p->a && p->b;
    ++*counters[p->outcome.ruling.verdict];
}

/* --- the stages ----------------------------------------------------------------------------------------- */

/* Where the result of each stage is while later ones read it. What the comparison does not keep is freed at
 * the end. */
struct stages {
    struct td_side *a;
    const struct td_side *b, *reference;
    const struct td_compare_options *options;
    const struct td_work *work; /* its arena is that of the comparison */
    struct td_rules rules;
    struct td_references references;
    struct td_fitting *fittings;     /* one for each match */
    struct td_judgement *judgements; /* likewise */
    struct td_comparison *result;
};

static tdbg_status pair_up(struct stages *s, struct tdbg_error *error)
{
    const struct td_work work = {s->work->pool, s->work->job, NULL};
    TD_TRY(td_match_sides(&s->result->matches, s->a, s->b, &s->options->match, &work, error));
    return td_order_settle(&s->result->matches, s->a, s->b, error);
}

static tdbg_status line_up(struct stages *s, struct tdbg_error *error)
{
    struct td_comparison *c = s->result;
    TD_TRY(td_align(&c->alignments, &c->matches, &c->model.heads, s->work->pool, s->work->job, error));
    return td_references_init(&s->references, s->reference, s->a, s->b, &c->model.heads, s->work, error);
}

static tdbg_status measure(struct stages *s, struct tdbg_error *error)
{
    const struct td_comparison *c = s->result;
    s->rules = (struct td_rules){.policy = s->options->policy,
                                 .layers = c->model.layers,
                                 .grid = {c->model.grid[0], c->model.grid[1]},
                                 .top = s->options->top,
                                 .references = &s->references};
    s->fittings = calloc(c->matches.count + 1, sizeof *s->fittings);
    if (!s->fittings)
        return td_fail_nomem(error);
    return td_fit_all(s->fittings, &c->matches, &c->alignments, s->options->layout, &s->rules, &c->model,
                      s->work, error);
}

static tdbg_status judge(struct stages *s, struct tdbg_error *error)
{
    const struct td_comparison *c = s->result;
    s->judgements = calloc(c->matches.count + 1, sizeof *s->judgements);
    if (!s->judgements)
        return td_fail_nomem(error);
    return td_judge_all(s->judgements, &s->options->policy, &c->matches, s->fittings, error);
}

static tdbg_status diagnose(struct stages *s, struct tdbg_error *error)
{
    struct td_comparison *c = s->result;
    TD_TRY(td_explain(c, s->fittings, s->a, s->work, error));
    return td_doctor(c->pairs, c->count, s->a, s->b, &c->arena, &c->notes, &c->note_count, error);
}

static tdbg_status summarise(struct stages *s, struct tdbg_error *error)
{
    struct td_comparison *c = s->result;
    struct td_coverage coverage;
    for (size_t i = 0; i < c->count; i++)
        td_summary_add(&c->summary, &c->pairs[i]);
    TD_TRY(td_coverage_find(&coverage, c->pairs, c->count, s->a->count, s->b->count, s->options->coverage,
                            error));
    c->summary.coverage_a = coverage.a;
    c->summary.coverage_b = coverage.b;
    c->summary.enough = coverage.enough;
    return TDBG_OK;
}

static tdbg_status run(struct stages *s, struct tdbg_error *error)
{
    struct td_comparison *c = s->result;
    TD_TRY(td_model_of_sides(&c->model, s->a, s->b, error)); /* the names were made with the sides */
    TD_TRY(pair_up(s, error));
    TD_TRY(line_up(s, error));
    TD_TRY(measure(s, error));
    TD_TRY(judge(s, error));
    TD_TRY(put_together(c, s->fittings, s->judgements, error));
    c->first = td_origins_find(c->pairs, c->count, s->a->order);
    TD_TRY(diagnose(s, error));
    return summarise(s, error);
}

tdbg_status td_compare(struct td_comparison *out, struct td_side *a, const struct td_side *b,
                       const struct td_side *reference, const struct td_compare_options *options,
                       const struct td_work *work, struct tdbg_error *error)
{
    struct td_comparison c = {0};
    td_arena_init(&c.arena, TD_MAX_METADATA);
    const struct td_work own = {work->pool, work->job, &c.arena};
    struct stages stages = {
        .a = a, .b = b, .reference = reference, .options = options, .work = &own, .result = &c};
    tdbg_status status = run(&stages, error);
    td_references_release(&stages.references);
    free(stages.fittings);
    free(stages.judgements);
    if (status == TDBG_OK)
        *out = c;
    else
        td_comparison_release(&c);
    return status;
}

void td_comparison_release(struct td_comparison *comparison)
{
    td_alignments_release(&comparison->alignments);
    td_matches_release(&comparison->matches);
    td_arena_release(&comparison->arena);
    *comparison = (struct td_comparison){0};
}

/* --- one pair by itself --------------------------------------------------------------------------------- */

void td_compare_pair(struct td_pair *p, const struct td_rules *rules, const struct td_work *work)
{
    const struct td_match match = {.a = p->a, .b = p->b, .strategy = p->strategy};
    struct td_fitting fitting = {.layout = p->layout};
    td_fitting_measure(&fitting, &match, rules, work);
    const struct td_judgement judgement = {.ruling = td_judge_values(&rules->policy, &match, &fitting)};
    p->outcome = outcome_of(&fitting, &judgement);
}

void td_pair_give_up(struct td_pair *p, const char *why)
{
    p->outcome.ruling = td_ruling_failed(why);
}
