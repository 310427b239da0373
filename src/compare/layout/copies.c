/* copies.c: see copies.h. Copies are equal nearly always, which one more pass over their values tells. */
#include "compare/layout/copies.h"

#include "compare/judge/judge.h"
#include "compare/layout/sampled.h"

/* One side of a pair. */
struct inspection {
    const struct td_match *match;
    struct td_fitting *fitting;
    const struct td_rules *rules;
    const struct td_work *work; /* its arena: of the pair's measurements */
    bool in_b;
};

static const struct td_item *item_of(const struct inspection *x)
{
    return x->in_b ? x->match->b : x->match->a;
}

static const struct td_steps *steps_of(const struct td_layout *layout, bool in_b)
{
    return in_b ? &layout->b : &layout->a;
}

static bool takes_first(const struct td_layout *layout, bool in_b)
{
    const struct td_steps *steps = steps_of(layout, in_b);
    return steps->count > 0 && steps->step[0].kind == TD_STEP_FIRST;
}

static struct td_layout layout_of_shard(const struct inspection *x, int shard)
{
    struct td_layout layout = *x->fitting->layout;
    (x->in_b ? &layout.b : &layout.a)->step[0].from = shard;
    return layout;
}

static tdbg_status equals_first(const struct inspection *x, int shard, bool *equal, struct tdbg_error *error)
{
    struct td_layout layout = layout_of_shard(x, shard);
    struct td_operand first, other;
    struct td_metrics metrics;
    struct td_arena arena;
    td_arena_init(&arena, TD_MAX_METADATA);
    tdbg_status status =
        td_operand_make(&first, item_of(x), steps_of(x->fitting->layout, x->in_b), &arena, error);
    if (status == TDBG_OK)
        status = td_operand_make(&other, item_of(x), steps_of(&layout, x->in_b), &arena, error);
    if (status == TDBG_OK)
        status = td_measure(&first, &other, x->work->pool, x->work->job, &metrics, error);
    if (status == TDBG_OK)
        *equal = metrics.differing == 0;
    td_arena_release(&arena);
    return status;
}

/* Blind to a wrong scale or offset, which do not make a copy something else. */
static bool resembles_first(const struct inspection *x, int shard)
{
    const struct td_item *item = item_of(x);
    struct td_layout layout = layout_of_shard(x, shard), both = layout;
    both.a = *steps_of(x->fitting->layout, x->in_b);
    both.b = *steps_of(&layout, x->in_b);
    return td_layout_fit(item, item, &both) > TD_CONVINCING;
}

/* What came out about the shards behind the first. */
struct shards {
    int copies, strangers;   /* agree with the other side; have nothing to do with the first */
    struct td_fitting wrong; /* the first that disagrees and is a copy, or may be one; `layout` NULL: none */
    bool proven;             /* it resembles the first */
    struct td_layout layout;
};

static tdbg_status look_at(const struct inspection *x, int shard, struct shards *out,
                           struct tdbg_error *error)
{
    bool equal;
    TD_TRY(equals_first(x, shard, &equal, error));
    struct td_fitting tried = *x->fitting;
    struct td_layout layout = layout_of_shard(x, shard);
    tried.layout = &layout;
    if (!equal) {
        TD_TRY(td_measurement_take(&tried.measurement, x->rules, x->match->a, x->match->b, &layout, x->work,
                                   error));
        tried.by_values = td_judge_values(&x->rules->policy, x->match, &tried).verdict;
    }
    if (tried.by_values <= TD_WITHIN) {
        out->copies++;
        return TDBG_OK;
    }
    bool resembles = resembles_first(x, shard);
    out->strangers += !resembles;
    if (!out->wrong.layout || (resembles && !out->proven)) {
        out->wrong = tried;
        out->layout = layout;
        out->proven = resembles;
        out->wrong.layout = &out->layout;
    }
    return TDBG_OK;
}

/* Where the first and its copies are the majority, a stranger is a copy gone wrong. */
static bool is_wrong_copy(const struct shards *s)
{
    return s->wrong.layout && (s->proven || s->copies + 1 > s->strangers);
}

static tdbg_status inspect(const struct inspection *x, struct td_arena *arena, struct tdbg_error *error)
{
    struct shards shards = {0};
    for (int shard = 1; shard < item_of(x)->part_count; shard++)
        TD_TRY(look_at(x, shard, &shards, error));
    if (!is_wrong_copy(&shards)) {
        x->fitting->unlike_shards = shards.strangers;
        return TDBG_OK;
    }
    struct td_layout *kept = td_arena_alloc(arena, sizeof *kept);
    if (!kept)
        return td_fail_nomem(error);
    *kept = shards.layout;
    *x->fitting = shards.wrong;
    x->fitting->layout = kept;
    return TDBG_OK;
}

tdbg_status td_fit_copies(const struct td_fit *fit, struct tdbg_error *error)
{
    for (size_t i = 0; i < fit->matches->count; i++) {
        struct td_fitting *f = &fit->list[i];
        const struct td_work work = {fit->work->pool, fit->work->job, &fit->arenas[i]};
        for (int in_b = 0; in_b < 2; in_b++) {
            struct inspection x = {&fit->matches->pairs[i], f, fit->rules, &work, in_b};
            if (f->by_values <= TD_WITHIN && takes_first(f->layout, in_b))
                TD_TRY(inspect(&x, fit->work->arena, error));
        }
    }
    return TDBG_OK;
}
