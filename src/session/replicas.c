/* replicas.c: see replicas.h. Copies are equal nearly always, which one more pass over their values tells. */
#include "session/replicas.h"

#include "compare/layout/align.h"

#include <stdio.h>
#include <string.h>

struct inspection {
    const struct td_judge *judge;
    struct td_pool *pool;
    struct td_arena *arena; /* of the pair */
    struct td_pair *pair;
    bool in_b;
};

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
    struct td_layout layout = *x->pair->layout;
    (x->in_b ? &layout.b : &layout.a)->step[0].from = shard;
    return layout;
}

static tdbg_status equals_first(const struct inspection *x, int shard, bool *equal, struct tdbg_error *error)
{
    const struct td_item *item = x->in_b ? x->pair->b : x->pair->a;
    struct td_layout layout = layout_of_shard(x, shard);
    struct td_operand first, other;
    struct td_metrics metrics;
    TD_TRY(td_operand_make(&first, item, steps_of(x->pair->layout, x->in_b), x->arena, error));
    TD_TRY(td_operand_make(&other, item, steps_of(&layout, x->in_b), x->arena, error));
    TD_TRY(td_measure(&first, &other, x->pool, x->judge->job, &metrics, error));
    *equal = metrics.differing == 0;
    return TDBG_OK;
}

/* Blind to a wrong scale or offset, which do not make a copy something else. */
static bool resembles_first(const struct inspection *x, int shard)
{
    const struct td_item *item = x->in_b ? x->pair->b : x->pair->a;
    struct td_layout layout = layout_of_shard(x, shard), both = layout;
    both.a = *steps_of(x->pair->layout, x->in_b);
    both.b = *steps_of(&layout, x->in_b);
    return td_layout_fit(item, item, &both) > TD_CONVINCING;
}

/* What came out about the shards behind the first. */
struct shards {
    int copies, strangers; /* agree with the other side; have nothing to do with the first */
    struct td_pair wrong;  /* the first that disagrees and is a copy, or may be one; `layout` NULL: none */
    bool proven;           /* it resembles the first */
    struct td_layout layout;
};

static tdbg_status look_at(const struct inspection *x, int shard, struct shards *out,
                           struct tdbg_error *error)
{
    bool equal;
    TD_TRY(equals_first(x, shard, &equal, error));
    struct td_pair judged = *x->pair;
    struct td_layout layout = layout_of_shard(x, shard);
    judged.layout = &layout;
    if (!equal)
        TD_TRY(td_judge_pair(x->judge, &judged, x->pool, x->arena, error));
    if (equal || judged.ruling.verdict <= TD_WITHIN) {
        out->copies++;
        return TDBG_OK;
    }
    bool resembles = resembles_first(x, shard);
    out->strangers += !resembles;
    if (!out->wrong.layout || (resembles && !out->proven)) {
        out->wrong = judged;
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

static tdbg_status inspect(const struct inspection *x, struct td_diff *diff, struct tdbg_error *error)
{
    struct shards shards = {0};
    int count = (x->in_b ? x->pair->b : x->pair->a)->part_count;
    for (int shard = 1; shard < count; shard++)
        TD_TRY(look_at(x, shard, &shards, error));
    if (!is_wrong_copy(&shards)) {
        x->pair->unlike_shards = shards.strangers;
        return TDBG_OK;
    }
    struct td_layout *kept = td_arena_alloc(&diff->arena, sizeof *kept);
    if (!kept)
        return td_fail_nomem(error);
    *kept = shards.layout;
    *x->pair = shards.wrong;
    x->pair->layout = kept;
    return TDBG_OK;
}

tdbg_status td_check_replicas(struct td_diff *diff, const struct td_judge *judge, struct td_pool *pool,
                              struct td_arena *scratch, struct tdbg_error *error)
{
    for (size_t i = 0; i < diff->count; i++)
        for (int in_b = 0; in_b < 2; in_b++) {
            struct td_pair *p = &diff->pairs[i];
            struct inspection x = {judge, pool, &scratch[i], p, in_b};
            if (p->a && p->b && p->layout && p->ruling.verdict <= TD_WITHIN && takes_first(p->layout, in_b))
                TD_TRY(inspect(&x, diff, error));
        }
    return TDBG_OK;
}
