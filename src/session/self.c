/* self.c: see self.h.
 *
 * Pairs are measured a batch at a time, one to a thread; a batch ends early at tensors so large that a pair
 * of them keeps all threads busy. Most pairs of a model cannot line up, and are told by a look at their
 * sizes.
 */
#include "session/self.h"

#include "compare/compare.h"
#include "session/side.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BATCH = 32 };

/* From here on a pair is worth splitting over the threads. */
static const int64_t LARGE = INT64_C(1) << 21;

struct place {
    size_t i, j;
    uint64_t index, unlike; /* pairs before this one, and those of them that were passed over */
};

struct slot {
    struct td_self_pair out;
    struct td_match match;
    struct td_alignments alignments;
    struct td_arena arena;
    uint64_t unlike;
    bool fits;
};

struct td_self {
    struct td_input *opened; /* NULL when the input is somebody else's */
    const struct td_input *input;
    struct td_side side;
    struct td_head_sizes heads;
    struct td_rules rules;
    struct td_pool *pool;
    struct td_job *job;
    struct place next;
    struct slot slots[BATCH];
    size_t filled, used;
    uint64_t unlike;
};

/* Whether the two have as many elements; replicated shards count once or all. The layouts that cut, repeat or
 * add up (see candidates.h) explain how one tensor is stored twice, which is not the question here. */
static bool alike(const struct td_item *a, const struct td_item *b)
{
    int64_t x = a->parts[0]->count, y = b->parts[0]->count, all_x = x * a->part_count,
            all_y = y * b->part_count;
    return x == y || x == all_y || all_x == y || all_x == all_y;
}

/* --- a batch -------------------------------------------------------------------------------------------- */

static void slot_empty(struct slot *s)
{
    td_alignments_release(&s->alignments);
    td_arena_release(&s->arena);
    *s = (struct slot){0};
}

static void slot_fill(struct slot *s, const struct td_self *self)
{
    const struct td_item *a = &self->side.items[self->next.i], *b = &self->side.items[self->next.j];
    slot_empty(s);
    td_arena_init(&s->arena, TD_MAX_METADATA);
    s->match = (struct td_match){.a = a, .b = b, .strategy = TD_MATCH_SELF};
    s->unlike = self->next.unlike;
    s->out = (struct td_self_pair){.index = self->next.index,
                                   .pair = {.a = a,
                                            .b = b,
                                            .strategy = TD_MATCH_SELF,
                                            .layer = a->layer,
                                            .stage = a->stage,
                                            .name = a->name}};
}

static void judge(const struct td_self *self, struct slot *s, struct td_pool *pool)
{
    struct td_pair *p = &s->out.pair;
    struct tdbg_error error;
    td_compare_pair(p, &self->rules, &(struct td_work){pool, self->job, &s->arena});
    if (td_pair_measured(p) &&
        (td_item_verify(p->a, &error) != TDBG_OK || td_item_verify(p->b, &error) != TDBG_OK))
        td_pair_give_up(p, error.message);
}

static void measure(struct td_self *self, struct slot *s, struct td_pool *pool)
{
    const struct td_matches one = {.pairs = &s->match, .count = 1};
    struct td_pair *p = &s->out.pair;
    struct tdbg_error error;
    s->fits = true;
    if (td_align(&s->alignments, &one, &self->heads, pool, self->job, &error) != TDBG_OK) {
        td_pair_give_up(p, error.message);
        return;
    }
    p->layout = s->alignments.list[0].layout;
    if (!p->layout)
        s->fits = false;
    else
        judge(self, s, pool);
}

static void measure_one(void *context, uint64_t i)
{
    struct td_self *self = context;
    measure(self, &self->slots[i], NULL);
}

static void step(struct td_self *self)
{
    struct place *at = &self->next;
    at->index++;
    if (++at->j == self->side.count)
        at->j = ++at->i + 1;
}

static tdbg_status fill(struct td_self *self, struct tdbg_error *error)
{
    int64_t elements = 0;
    self->filled = self->used = 0;
    for (; self->next.j < self->side.count && self->filled < BATCH && elements < LARGE; step(self)) {
        const struct td_item *a = &self->side.items[self->next.i], *b = &self->side.items[self->next.j];
        if (td_job_cancelled(self->job))
            return td_fail(error, TDBG_CANCELLED, "stopped");
        if (!alike(a, b)) {
            self->next.unlike++;
            continue;
        }
        elements += a->parts[0]->count * a->part_count;
        slot_fill(&self->slots[self->filled++], self);
    }
    if (self->filled == 1)
        measure(self, &self->slots[0], self->pool);
    else
        td_pool_run(self->pool, self->filled, measure_one, self);
    return td_job_cancelled(self->job) ? td_fail(error, TDBG_CANCELLED, "stopped") : TDBG_OK;
}

tdbg_status td_self_next(struct td_self *self, const struct td_self_pair **out, struct tdbg_error *error)
{
    for (;;) {
        while (self->used < self->filled) {
            struct slot *s = &self->slots[self->used++];
            if (s->fits) {
                self->unlike = s->unlike;
                *out = &s->out;
                return TDBG_OK;
            }
            /* The values refused every layout: so many more were passed over before the pairs that follow. */
            self->next.unlike++;
            for (size_t k = self->used; k < self->filled; k++)
                self->slots[k].unlike++;
        }
        if (self->next.j >= self->side.count) {
            self->unlike = self->next.unlike;
            *out = NULL;
            return TDBG_OK;
        }
        TD_TRY(fill(self, error));
    }
}

/* --- one by its number ---------------------------------------------------------------------------------- */

uint64_t td_self_number(const struct td_self *self, size_t i, size_t j)
{
    uint64_t n = self->side.count;
    return i * (2 * n - i - 1) / 2 + (j - i - 1);
}

tdbg_status td_self_at(struct td_self *self, uint64_t index, const struct td_self_pair **out,
                       struct tdbg_error *error)
{
    size_t i = 0, n = self->side.count;
    if (index >= td_self_total(self))
        return td_fail(error, TDBG_NOTFOUND, "no pair %" PRIu64 " among %" PRIu64, index,
                       td_self_total(self));
    while (index >= td_self_number(self, i, n)) /* where the pairs of the next i begin */
        i++;
    self->next =
        (struct place){.i = i, .j = i + 1 + (size_t)(index - td_self_number(self, i, i + 1)), .index = index};
    self->filled = self->used = 0;
    struct slot *s = &self->slots[0];
    slot_fill(s, self);
    if (alike(s->match.a, s->match.b))
        measure(self, s, self->pool);
    if (!s->fits) /* there is no layout, and the ruling says so */
        judge(self, s, self->pool);
    *out = &s->out;
    return TDBG_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static tdbg_status prepare(struct td_self *self, struct tdbg_error *error)
{
    TD_TRY(td_side_of_input(&self->side, self->input, error));
    TD_TRY(td_head_sizes_find(&self->heads, (const struct td_side *const[]){&self->side}, 1, error));
    for (size_t i = 0; i < self->side.count; i++) {
        const struct td_item *item = &self->side.items[i];
        if (item->layer + 1 > self->rules.layers)
            self->rules.layers = item->layer + 1;
    }
    return TDBG_OK;
}

tdbg_status td_self_over(struct td_self **out, const struct td_input *input, const struct td_policy *policy,
                         const struct td_work *work, struct tdbg_error *error)
{
    struct td_self *self = calloc(1, sizeof *self);
    if (!self)
        return td_fail_nomem(error);
    self->rules = (struct td_rules){.policy = *policy};
    self->pool = work->pool;
    self->job = work->job;
    self->next.j = 1;
    self->input = input;
    tdbg_status status = prepare(self, error);
    if (status == TDBG_OK)
        *out = self;
    else
        td_self_close(&self);
    return status;
}

tdbg_status td_self_open(struct td_self **out, const char *path, const struct td_policy *policy,
                         const struct td_work *work, struct tdbg_error *error)
{
    struct td_input *input;
    TD_TRY(td_input_open(&input, path, work->job, error));
    tdbg_status status = td_self_over(out, input, policy, work, error);
    if (status == TDBG_OK)
        (*out)->opened = input;
    else
        td_input_close(&input);
    return status;
}

void td_self_close(struct td_self **self)
{
    if (!*self)
        return;
    for (size_t i = 0; i < BATCH; i++)
        slot_empty(&(*self)->slots[i]);
    td_side_release(&(*self)->side);
    td_input_close(&(*self)->opened);
    free(*self);
    *self = NULL;
}

const struct td_input *td_self_input(const struct td_self *self)
{
    return self->input;
}

const struct td_side *td_self_side(const struct td_self *self)
{
    return &self->side;
}

const struct td_policy *td_self_policy(const struct td_self *self)
{
    return &self->rules.policy;
}

uint64_t td_self_total(const struct td_self *self)
{
    uint64_t n = self->side.count;
    return n ? n * (n - 1) / 2 : 0;
}

uint64_t td_self_unlike(const struct td_self *self)
{
    return self->unlike;
}
