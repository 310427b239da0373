/* explain.c: see explain.h. */
#include "compare/explain.h"

/* How many divergences get a diagnosis. */
enum { MAX_DIAGNOSES = 8 };

/* One diagnosis. */
struct task {
    struct td_pair *pair;
    struct td_case facts;
    tdbg_status status;
    struct tdbg_error error;
};

struct tasks {
    const struct td_work *work;
    int count;
    struct task list[MAX_DIAGNOSES];
};

static int64_t profile_length(const struct td_shape *shape)
{
    int64_t length = 0;
    for (int i = 0; i < shape->ndim; i++)
        length += shape->size[i];
    return length;
}

static tdbg_status profile(struct td_pair *p, const struct td_work *work, struct tdbg_error *error)
{
    struct td_operand a, b;
    TD_TRY(td_operand_make(&a, p->a, &p->layout->a, work->arena, error));
    TD_TRY(td_operand_make(&b, p->b, &p->layout->b, work->arena, error));
    TD_TRY(td_profile(&a, &b, work->pool, work->job, work->arena, &p->outcome.profile, error));
    p->outcome.profile_count = p->outcome.profile ? profile_length(&p->layout->shape) : 0;
    return TDBG_OK;
}

static tdbg_status add(struct tasks *tasks, struct td_pair *p, const struct td_fitting *fitting,
                       const struct td_side *a, const struct td_model *model, struct tdbg_error *error)
{
    struct td_outcome *o = &p->outcome;
    o->diagnosis = td_arena_alloc(tasks->work->arena, sizeof *o->diagnosis);
    if (!o->diagnosis)
        return td_fail_nomem(error);
    TD_TRY(profile(p, tasks->work, error));
    tasks->list[tasks->count++] =
        (struct task){.pair = p,
                      .facts = {.item_a = p->a,
                                .item_b = p->b,
                                .layout = p->layout,
                                .other = fitting->other,
                                .metrics = &o->metrics,
                                .profile = o->profile,
                                .floor = o->ruling.noise,
                                .missing = o->cut == TD_CUT_MISSING ? o->ruling.reason : NULL,
                                .a = a,
                                .heads = &model->heads,
                                .tokens = model->tokens,
                                .job = tasks->work->job}};
    return TDBG_OK;
}

static void diagnose(struct tasks *tasks, uint64_t i, struct td_pool *pool)
{
    struct task *t = &tasks->list[i];
    t->status = td_job_cancelled(tasks->work->job)
                    ? td_fail(&t->error, TDBG_CANCELLED, "stopped")
                    : td_diagnose(&t->facts, pool, t->pair->outcome.diagnosis, &t->error);
}

static void diagnose_one(void *context, uint64_t i)
{
    diagnose(context, i, NULL);
}

/* Side by side: each is a long piece of work for one thread. One alone is shared out. */
tdbg_status td_explain(struct td_comparison *comparison, const struct td_fitting *fittings,
                       const struct td_side *a, const struct td_work *work, struct tdbg_error *error)
{
    struct tasks tasks = {.work = work};
    for (size_t i = 0; i < comparison->count && tasks.count < MAX_DIAGNOSES; i++) {
        struct td_pair *p = &comparison->pairs[i];
        if (p->outcome.ruling.verdict == TD_DIVERGED &&
            (p->outcome.origin == TD_BORN || p == comparison->first))
            TD_TRY(add(&tasks, p, &fittings[i], a, &comparison->model, error));
    }
    if (tasks.count == 1)
        diagnose(&tasks, 0, work->pool);
    else
        td_pool_run(work->pool, (uint64_t)tasks.count, diagnose_one, &tasks);
    for (int i = 0; i < tasks.count; i++)
        if (tasks.list[i].status != TDBG_OK)
            return td_fail(error, tasks.list[i].status, "%s", tasks.list[i].error.message);
    return TDBG_OK;
}
