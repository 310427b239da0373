/* earlier_run.c: see earlier_run.h. */
#include "live/earlier_run.h"

#include "compare/compare.h"
#include "session/side.h"
#include "store/run_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor whose values were recorded. */
struct recorded {
    int64_t step; /* its number */
    const char *name, *file;
};

/* Steps by ordinal, while the index is read. */
struct numbers {
    int64_t *list;
    size_t count, room;
};

struct td_earlier_run {
    pthread_mutex_t lock; /* of what is open */
    char *dir;
    struct td_arena arena;
    struct recorded *tensors; /* by step and name */
    size_t count, room;
    size_t tensors_without; /* recorded without their values */
    const char *file;       /* that is open, or NULL */
    struct td_input *input;
    struct td_side side;
    int64_t layers;
};

/* --- the index ------------------------------------------------------------------------------------------ */

struct loading {
    struct td_earlier_run *run;
    struct numbers numbers;
    bool failed;
};

static bool add_step(void *context, const struct td_run_step *row)
{
    struct loading *l = context;
    struct numbers *n = &l->numbers;
    if (n->count == n->room) {
        size_t room = n->room ? 2 * n->room : 64;
        int64_t *more = realloc(n->list, room * sizeof *more);
        if (!more) {
            l->failed = true;
            return false;
        }
        n->list = more;
        n->room = room;
    }
    if (row->ordinal == (int64_t)n->count) /* they come in order, without gaps */
        n->list[n->count++] = row->number;
    return true;
}

static bool add_tensor(void *context, const struct td_run_tensor *row)
{
    struct loading *l = context;
    struct td_earlier_run *run = l->run;
    if (row->step < 0 || (size_t)row->step >= l->numbers.count)
        return true; /* of a step that was never finished */
    if (!row->file || row->kind != TD_KEEP_FULL) {
        run->tensors_without++;
        return true;
    }
    if (run->count == run->room) {
        size_t room = run->room ? 2 * run->room : 256;
        struct recorded *more = realloc(run->tensors, room * sizeof *more);
        l->failed = !more;
        if (!more)
            return false;
        run->tensors = more;
        run->room = room;
    }
    struct recorded r = {.step = l->numbers.list[row->step], .name = td_arena_strdup(&run->arena, row->name)};
    bool same = run->count > 0 && strcmp(run->tensors[run->count - 1].file, row->file) == 0;
    r.file = same ? run->tensors[run->count - 1].file : td_arena_strdup(&run->arena, row->file);
    l->failed = !r.name || !r.file;
    if (!l->failed)
        run->tensors[run->count++] = r;
    return !l->failed;
}

static int by_step_and_name(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step) : strcmp(x->name, y->name);
}

static tdbg_status load(struct td_earlier_run *run, struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    struct loading l = {.run = run};
    TD_TRY(td_run_store_open(&store, run->dir, error));
    tdbg_status status = td_run_each_step(store, -1, add_step, &l, error);
    if (status == TDBG_OK)
        status = td_run_each_tensor(store, -1, add_tensor, &l, error);
    if (status == TDBG_OK && l.failed)
        status = td_fail_nomem(error);
    td_run_store_close(&store);
    free(l.numbers.list);
    if (status == TDBG_OK && run->count == 0)
        status = td_fail(error, TDBG_MISUSE,
                         run->tensors_without ? "no values recorded: only statistics"
                                              : "no values recorded: no step of the run is finished");
    if (status == TDBG_OK)
        qsort(run->tensors, run->count, sizeof *run->tensors, by_step_and_name);
    return status;
}

static void close_file(struct td_earlier_run *run)
{
    if (!run->file)
        return;
    td_side_release(&run->side);
    td_input_close(&run->input);
    run->file = NULL;
}

static void close_run(struct td_earlier_run **run)
{
    struct td_earlier_run *r = *run;
    if (!r)
        return;
    close_file(r);
    pthread_mutex_destroy(&r->lock);
    td_arena_release(&r->arena);
    free(r->tensors);
    free(r->dir);
    free(r);
    *run = NULL;
}

static tdbg_status open_run(struct td_earlier_run **out, const char *dir, struct tdbg_error *error)
{
    struct td_earlier_run *run = calloc(1, sizeof *run);
    if (!run)
        return td_fail_nomem(error);
    pthread_mutex_init(&run->lock, NULL);
    td_arena_init(&run->arena, TD_MAX_METADATA);
    run->dir = strdup(dir);
    tdbg_status status = run->dir ? load(run, error) : td_fail_nomem(error);
    if (status == TDBG_OK) {
        *out = run;
        return TDBG_OK;
    }
    td_error_prefix(error, dir);
    close_run(&run);
    return status;
}

/* --- one tensor ----------------------------------------------------------------------------------------- */

static tdbg_status open_file(struct td_earlier_run *run, const char *file, struct tdbg_error *error)
{
    char *path;
    if (run->file && strcmp(run->file, file) == 0)
        return TDBG_OK;
    close_file(run);
    if (asprintf(&path, "%s/%s", run->dir, file) < 0)
        return td_fail_nomem(error);
    tdbg_status status = td_input_open(&run->input, path, NULL, error);
    free(path);
    TD_TRY(status);
    status = td_side_of_input(&run->side, run->input, error);
    if (status != TDBG_OK) {
        td_input_close(&run->input);
        return status;
    }
    run->file = file;
    for (size_t i = 0; i < run->side.count; i++)
        if (run->side.items[i].layer + 1 > run->layers)
            run->layers = run->side.items[i].layer + 1;
    return TDBG_OK;
}

static const struct td_item *find_item(const struct td_side *side, const char *name)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].part_count == 1 && strcmp(side->items[i].parts[0]->name, name) == 0)
            return &side->items[i];
    return NULL;
}

static bool same_shape(const struct td_shape *a, const struct td_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->size, b->size, (size_t)a->ndim * sizeof *a->size) == 0;
}

/* The two as `tdbg diff` judges them. */
static bool compare(const struct td_earlier_run *run, const struct td_item *before, const struct td_item *now,
                    char why[TD_DIVERGENCE_TEXT])
{
    const struct td_rules rules = {.policy = {.kind = TD_POLICY_NOISE}, .layers = run->layers, .top = 1};
    const struct td_layout layout = {.shape = now->parts[0]->shape};
    bool fits = same_shape(&before->parts[0]->shape, &layout.shape);
    struct td_pair pair = {
        .a = before, .b = now, .layer = before->layer, .name = before->name, .layout = fits ? &layout : NULL};
    struct td_arena arena;
    td_arena_init(&arena, TD_MAX_METADATA);
    td_compare_pair(&pair, &rules, &(struct td_work){.arena = &arena});
    td_arena_release(&arena);
    const struct td_ruling *ruling = &pair.outcome.ruling;
    bool diverged = ruling->verdict == TD_DIVERGED;
    if (!fits)
        snprintf(why, TD_DIVERGENCE_TEXT, "%s", ruling->reason);
    else if (diverged)
        snprintf(why, TD_DIVERGENCE_TEXT, "diverges from %.60s: %.170s", run->dir, ruling->reason);
    return !fits || diverged;
}

static bool differs(struct td_earlier_run *run, const struct recorded *partner,
                    const struct td_tensor *tensor, char why[TD_DIVERGENCE_TEXT])
{
    const struct td_tensor *const one[] = {tensor};
    struct td_side now;
    if (open_file(run, partner->file, NULL) != TDBG_OK)
        return false;
    const struct td_item *before = find_item(&run->side, partner->name);
    if (!before || td_side_init(&now, one, 1, NULL) != TDBG_OK)
        return false;
    bool different = now.count == 1 && compare(run, before, &now.items[0], why);
    td_side_release(&now);
    return different;
}

static const struct recorded *find_recorded(const struct td_earlier_run *run, int64_t step, const char *name)
{
    const struct recorded key = {.step = step, .name = name};
    return bsearch(&key, run->tensors, run->count, sizeof *run->tensors, by_step_and_name);
}

/* The recorder calls the second tensor of a name NAME#2. */
static const struct recorded *find_partner(const struct td_earlier_run *run, int64_t step, const char *name,
                                           size_t call)
{
    char numbered[TD_MAX_NAME + 32];
    snprintf(numbered, sizeof numbered, "%.*s#%zu", TD_MAX_NAME, name, call > 1 ? call : (size_t)2);
    if (call > 1)
        return find_recorded(run, step, numbered);
    return call == 0 && find_recorded(run, step, numbered) ? NULL : find_recorded(run, step, name);
}

bool td_earlier_run_differs(struct td_earlier_run *run, const struct td_tensor *tensor, int64_t step,
                            const char *name, size_t call, char why[TD_DIVERGENCE_TEXT])
{
    const struct recorded *partner = find_partner(run, step, name, call);
    if (!partner)
        return false;
    pthread_mutex_lock(&run->lock);
    bool different = differs(run, partner, tensor, why);
    pthread_mutex_unlock(&run->lock);
    return different;
}

/* --- those in use --------------------------------------------------------------------------------------- */

tdbg_status td_earlier_runs_find(struct td_earlier_runs *runs, const char *dir, struct td_earlier_run **out,
                                 struct tdbg_error *error)
{
    for (int i = 0; i < runs->count; i++)
        if (strcmp(runs->list[i]->dir, dir) == 0) {
            *out = runs->list[i];
            return TDBG_OK;
        }
    if (runs->count == TD_MOST_EARLIER)
        return td_fail(error, TDBG_LIMIT, "more than %d earlier runs to compare with", TD_MOST_EARLIER);
    TD_TRY(open_run(out, dir, error));
    runs->list[runs->count++] = *out;
    return TDBG_OK;
}

void td_earlier_runs_release(struct td_earlier_runs *runs)
{
    for (int i = 0; i < runs->count; i++)
        close_run(&runs->list[i]);
    runs->count = 0;
}
