/* doctor.c: see doctor.h. Each complaint is a function that looks at the pairs and may add a note. */
#include "compare/doctor.h"

#include "compare/flow.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NOTES = 16 };

struct visit {
    const struct td_pair *pairs;
    size_t count;
    struct td_arena *arena;
    const char **notes;
    size_t note_count;
};

static void note(struct visit *v, char *text)
{
    if (text && v->note_count < MAX_NOTES)
        v->notes[v->note_count++] = text;
}

static bool diverged(const struct td_pair *p)
{
    return p->ruling.verdict == TD_DIVERGED;
}

static bool agrees(const struct td_pair *p)
{
    return p->ruling.verdict <= TD_WITHIN;
}

/* What was computed from it is right, so it was right when it was used: it was overwritten before it was
 * dumped, or something else was dumped in its place. */
static void complain_of_dump(struct visit *v, const struct td_pair *p)
{
    size_t fed = 0;
    const struct td_pair *witness = NULL;
    if (!diverged(p) || p->layer < 0 || p->a->parameter)
        return;
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *q = &v->pairs[i];
        if (q == p || !q->a || !q->b || q->a->layer < 0 || !td_feeds(p->a, q->a) || q->metrics.count < 2)
            continue;
        fed++;
        if (!agrees(q))
            return;
        witness = q;
    }
    if (fed)
        note(v, td_arena_printf(v->arena,
                                "%s differs, yet %s, which is computed from it, agrees: suspect the dump (a "
                                "buffer overwritten before it was saved, or saved under the wrong name), "
                                "not the model",
                                p->name, witness->name));
}

/* B has the same tensor twice where A has two different ones. */
static void complain_of_twins(struct visit *v, const struct td_pair *p)
{
    if (!diverged(p) || p->layer < 0 || p->a->parameter)
        return;
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *q = &v->pairs[i];
        bool twins = q != p && q->layer == p->layer && q->a && q->b && td_pair_measured(q) &&
                     p->metrics.count > 16 && q->metrics.count == p->metrics.count &&
                     q->metrics.b.mean == p->metrics.b.mean && q->metrics.b.norm == p->metrics.b.norm &&
                     q->metrics.b.max == p->metrics.b.max && q->metrics.a.norm != p->metrics.a.norm;
        if (twins) {
            note(v,
                 td_arena_printf(v->arena, "B's %s and %s hold the same values: one stage was dumped twice",
                                 p->name, q->name));
            return;
        }
    }
}

/* The very first tensor of the run has nothing to do with its partner: other inputs, not another model. */
static void complain_of_inputs(struct visit *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        if (!p->a || !p->b || !td_pair_measured(p) || p->metrics.count < 64)
            continue;
        if (diverged(p) && p->metrics.cosine < 0.2 && p->metrics.cosine > -0.2 &&
            (!p->diagnosis || p->diagnosis->list[0].kind == TD_IS_UNKNOWN))
            note(v, td_arena_printf(v->arena,
                                    "%s, the first tensor of the run, has nothing in common with its partner "
                                    "(cosine %.2f): were both given the same tokens?",
                                    p->name, p->metrics.cosine));
        return;
    }
}

static void complain_of_padding(struct visit *v)
{
    size_t cut = 0;
    const struct td_pair *example = NULL;
    const struct td_step *how = NULL;
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        if (!p->a || !p->b || !td_pair_measured(p))
            continue;
        const struct td_steps *sides[] = {&p->layout->a, &p->layout->b};
        for (int s = 0; s < 2; s++)
            for (int k = 0; k < sides[s]->count; k++)
                if (sides[s]->step[k].kind == TD_STEP_SLICE && p->strategy != TD_MATCH_FUSED) {
                    cut++;
                    example = p;
                    how = &sides[s]->step[k];
                }
    }
    if (cut)
        note(v, td_arena_printf(v->arena,
                                "%zu pairs differ in length (%s: only %lld of axis %d are on both sides): "
                                "padding rows were left out of the comparison",
                                cut, example->name, (long long)how->to, how->axis));
}

tdbg_status td_doctor(const struct td_pair *pairs, size_t count, struct td_arena *arena, const char ***notes,
                      size_t *note_count, struct tdbg_error *error)
{
    struct visit v = {.pairs = pairs, .count = count, .arena = arena};
    v.notes = td_arena_array(arena, MAX_NOTES, sizeof *v.notes);
    if (!v.notes)
        return td_fail_nomem(error);
    complain_of_inputs(&v);
    complain_of_padding(&v);
    for (size_t i = 0; i < count; i++)
        if (pairs[i].a && pairs[i].b) {
            complain_of_dump(&v, &pairs[i]);
            complain_of_twins(&v, &pairs[i]);
        }
    *notes = v.notes;
    *note_count = v.note_count;
    return TDBG_OK;
}
