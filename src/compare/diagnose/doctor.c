/* doctor.c: see doctor.h. Each complaint is a function that looks at the pairs and may add a note. */
#include "compare/diagnose/doctor.h"

#include "compare/diagnose/retrained.h"
#include "compare/judge/flow.h"

#include <stdlib.h>

enum { MAX_NOTES = 16, MAX_QUESTIONS = 20000000 };

/* What B's values of one pair are known by, to find others like them without asking every pair of a run. */
struct mark {
    int64_t layer;
    double norm;
    size_t at; /* the pair */
};

struct visit {
    const struct td_pair *pairs;
    size_t count;
    struct td_arena *arena;
    const char **notes;
    size_t note_count;
    struct mark *marks; /* of the pairs that were measured, in order */
    size_t mark_count;
    size_t questions; /* that may still be asked of pairs of pairs: names may leave every answer open */
};

static void note(struct visit *v, char *text)
{
    if (text && v->note_count < MAX_NOTES)
        v->notes[v->note_count++] = text;
}

static bool diverged(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_DIVERGED;
}

static bool agrees(const struct td_pair *p)
{
    return p->outcome.ruling.verdict <= TD_WITHIN;
}

/* What was computed from it is right, so it was right when it was used: it was overwritten before it was
 * dumped, or something else was dumped in its place. */
static void complain_of_dump(struct visit *v, const struct td_pair *p)
{
    size_t fed = 0;
    const struct td_pair *witness = NULL;
    if (!diverged(p) || p->layer < 0 || p->a->parameter)
        return;
    size_t after = (size_t)(p - v->pairs) + 1; /* where most of what it feeds is, and the answer is soon */
    for (size_t i = 0; i < v->count; i++) {
        if (v->questions == 0)
            return;
        v->questions--;
        const struct td_pair *q = &v->pairs[(after + i) % v->count];
        if (q == p || !q->a || !q->b || q->a->layer < 0 || !td_feeds(p->a, q->a) ||
            q->outcome.metrics.count < 2)
            continue;
        fed++;
        if (!agrees(q))
            return;
        if (!witness || q > witness)
            witness = q;
    }
    if (fed)
        note(v, td_arena_printf(v->arena,
                                "%s differs, yet %s, which is computed from it, agrees: suspect the dump (a "
                                "buffer overwritten before it was saved, or saved under the wrong name), "
                                "not the model",
                                p->name, witness->name));
}

static int compare_marks(const void *x, const void *y)
{
    const struct mark *a = x, *b = y;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->norm != b->norm)
        return a->norm < b->norm ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static tdbg_status mark_all(struct visit *v, struct tdbg_error *error)
{
    v->marks = td_arena_array(v->arena, v->count + 1, sizeof *v->marks);
    if (!v->marks)
        return td_fail_nomem(error);
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        if (p->layer >= 0 && p->a && p->b && td_pair_measured(p) && p->outcome.metrics.count > 16 &&
            p->outcome.metrics.b.norm >= 0) /* no NaN, which has no place in an order */
            v->marks[v->mark_count++] = (struct mark){p->layer, p->outcome.metrics.b.norm, i};
    }
    if (v->mark_count)
        qsort(v->marks, v->mark_count, sizeof *v->marks, compare_marks);
    return TDBG_OK;
}

/* The first mark that is no less than this one. */
static size_t find_mark(const struct visit *v, const struct mark *wanted)
{
    size_t low = 0, high = v->mark_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_marks(&v->marks[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool are_twins(const struct td_pair *p, const struct td_pair *q)
{
    const struct td_metrics *x = &p->outcome.metrics, *y = &q->outcome.metrics;
    return p != q && x->count == y->count && x->b.mean == y->b.mean && x->b.norm == y->b.norm &&
           x->b.max == y->b.max && x->a.norm != y->a.norm;
}

/* B has the same tensor twice where A has two different ones. */
static void complain_of_twins(struct visit *v, const struct td_pair *p)
{
    if (!diverged(p) || p->layer < 0 || p->a->parameter || p->outcome.metrics.count <= 16)
        return;
    const struct mark own = {p->layer, p->outcome.metrics.b.norm, 0};
    for (size_t i = find_mark(v, &own); i < v->mark_count; i++) {
        const struct td_pair *q = &v->pairs[v->marks[i].at];
        if (v->marks[i].layer != own.layer || v->marks[i].norm != own.norm)
            return;
        if (!are_twins(p, q))
            continue;
        note(v, td_arena_printf(v->arena, "B's %s and %s hold the same values: one stage was dumped twice",
                                p->name, q->name));
        return;
    }
}

/* The very first tensor of the run has nothing to do with its partner: other inputs, not another model. */
static void complain_of_inputs(struct visit *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        if (!p->a || !p->b || !td_pair_measured(p) || p->outcome.metrics.count < 64)
            continue;
        if (diverged(p) && p->outcome.metrics.cosine < 0.2 && p->outcome.metrics.cosine > -0.2 &&
            (!p->outcome.diagnosis || p->outcome.diagnosis->list[0].kind == TD_IS_UNKNOWN))
            note(v, td_arena_printf(v->arena,
                                    "%s, the first tensor of the run, has nothing in common with its partner "
                                    "(cosine %.2f): were both given the same tokens?",
                                    p->name, p->outcome.metrics.cosine));
        return;
    }
}

static void complain_of_cut(struct visit *v, enum td_cut cut, const char *what)
{
    size_t count = 0;
    const struct td_pair *example = NULL;
    const struct td_step *how = NULL;
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        if (p->outcome.cut != cut)
            continue;
        count++;
        example = p;
        const struct td_steps *sides[] = {&p->layout->a, &p->layout->b};
        for (int s = 0; s < 2; s++)
            for (int k = 0; k < sides[s]->count; k++)
                if (sides[s]->step[k].kind == TD_STEP_SLICE)
                    how = &sides[s]->step[k];
    }
    if (count)
        note(v, td_arena_printf(
                    v->arena, "%zu pair%s in length (%s: only %lld of axis %d are on both sides%s): %s",
                    count, count == 1 ? " differs" : "s differ", example->name,
                    (long long)(how->to - how->from), how->axis, how->from ? ", the last ones" : "", what));
}

/* One side computed the last token only, as engines do with logits. */
static void tell_of_last(struct visit *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct td_pair *p = &v->pairs[i];
        const struct td_steps *sides[] = {p->layout ? &p->layout->a : NULL, p->layout ? &p->layout->b : NULL};
        for (int s = 0; s < 2; s++)
            for (int k = 0; sides[s] && k < sides[s]->count; k++)
                if (sides[s]->step[k].kind == TD_STEP_TAKE && sides[s]->step[k].from > 0) {
                    note(v, td_arena_printf(v->arena,
                                            "%s: %c has no more than the last of axis %d, which was compared",
                                            p->name, s ? 'A' : 'B', sides[s]->step[k].axis));
                    return;
                }
    }
}

/* One side has the part of one rank, the other the parts of all. */
static void complain_of_shards(struct visit *v)
{
    size_t cut = 0;
    const struct td_pair *example = NULL;
    for (size_t i = 0; i < v->count; i++)
        if (v->pairs[i].outcome.unlike_shards > 0 && ++cut)
            example = example ? example : &v->pairs[i];
    if (cut)
        note(v,
             td_arena_printf(v->arena,
                             "%zu pairs were compared with the first shard alone (%s: %d other shards are no "
                             "copies of it): the other side holds the part of one rank",
                             cut, example->name, example->outcome.unlike_shards));
}

/* No complaint: numbers that differ from those in the names should surprise nobody. */
static void tell_of_pipeline(struct visit *v, const struct td_side *side, char letter)
{
    if (side->pipeline_ranks)
        note(v,
             td_arena_printf(v->arena,
                             "%c has %lld pipeline ranks that number their layers from 0: layer 0 of rank 1 "
                             "is taken for layer %lld",
                             letter, (long long)side->pipeline_ranks, (long long)side->second_rank_begins));
}

/* No complaint either: two checkpoints, whose first difference says nothing. */
static bool tell_of_training(struct visit *v)
{
    struct td_retrained r;
    if (!td_retrained_find(&r, v->pairs, v->count))
        return false;
    note(v,
         td_arena_printf(v->arena,
                         "the same architecture, other weights: %zu of %zu weights differ, %s "
                         "(correlation %.2f to %.2f, median %.2f)",
                         r.changed, r.weights,
                         r.further ? "each by about as much as the others: one was trained further"
                                   : "and have nothing in common: trained from another start, or not at all",
                         r.low, r.high, r.middle));
    for (size_t i = 0; i < r.odd_count && i < TD_MOST_ODD; i++)
        note(v, td_arena_printf(v->arena,
                                "%s correlates far less than the other weights: a mistake besides the "
                                "training, or the wrong partner",
                                r.odd[i]->name));
    return true;
}

tdbg_status td_doctor(const struct td_pair *pairs, size_t count, const struct td_side *a,
                      const struct td_side *b, struct td_arena *arena, const char ***notes,
                      size_t *note_count, struct tdbg_error *error)
{
    struct visit v = {.pairs = pairs, .count = count, .arena = arena, .questions = MAX_QUESTIONS};
    v.notes = td_arena_array(arena, MAX_NOTES, sizeof *v.notes);
    if (!v.notes)
        return td_fail_nomem(error);
    TD_TRY(mark_all(&v, error));
    tell_of_pipeline(&v, a, 'A');
    tell_of_pipeline(&v, b, 'B');
    if (!tell_of_training(&v))
        complain_of_inputs(&v);
    complain_of_cut(&v, TD_CUT_PADDING, "padding rows were left out of the comparison");
    complain_of_cut(&v, TD_CUT_RANK, "a whole fraction, as one rank holds; the rest was not compared");
    complain_of_shards(&v);
    tell_of_last(&v);
    for (size_t i = 0; i < count; i++)
        if (pairs[i].a && pairs[i].b) {
            complain_of_dump(&v, &pairs[i]);
            complain_of_twins(&v, &pairs[i]);
        }
    *notes = v.notes;
    *note_count = v.note_count;
    return TDBG_OK;
}
