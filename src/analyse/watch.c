/* watch.c: rows of a run go through the rules; see rules.h.
 *
 * Names are kept in a tree (tsearch), each with the state of every rule. A finding is made when a number has
 * been on the bad side for as many rows in a row as its rule wants; later offences of the same name are
 * counted into it. Everything lives in one arena, so memory grows with the names of a run and not with its
 * length (but for sixteen bytes a step).
 */
#include "analyse/series.h"

#include "base/arena.h"
#include "base/limits.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct numbered {
    int64_t ordinal, number;
};

struct td_watch {
    struct td_rule_setting settings[TD_RULES];
    struct td_arena arena;
    void *tensors, *scalars; /* trees of td_series by name */
    struct td_finding **findings;
    size_t count, room;
    struct numbered *steps; /* by ordinal */
    size_t step_count, step_room;
    bool sorted, nomem;
    bool gradients, losses; /* seen in this run */
    uint64_t tensor_rows, scalar_rows;
    int64_t last_step, last_tensor, last_scalar; /* ids read from the store */
};

tdbg_status td_watch_open(struct td_watch **out, const struct td_rule_setting settings[TD_RULES],
                          struct tdbg_error *error)
{
    struct td_watch *w = calloc(1, sizeof *w);
    if (!w)
        return td_fail_nomem(error);
    memcpy(w->settings, settings, sizeof w->settings);
    td_arena_init(&w->arena, TD_MAX_METADATA);
    w->last_step = w->last_tensor = w->last_scalar = -1;
    *out = w;
    return TDBG_OK;
}

static void forget(void *series)
{
    (void)series; /* the arena's */
}

void td_watch_close(struct td_watch **watch)
{
    struct td_watch *w = *watch;
    if (!w)
        return;
    tdestroy(w->tensors, forget);
    tdestroy(w->scalars, forget);
    td_arena_release(&w->arena);
    free(w->findings);
    free(w->steps);
    free(w);
    *watch = NULL;
}

/* --- What a name is ------------------------------------------------------------------------------------- */

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t have = strlen(text), want = strlen(with);
    return have >= want && strcmp(text + have - want, with) == 0;
}

static const char *last_part(const char *name)
{
    const char *last = name;
    for (const char *c = name; *c; c++)
        if (*c == '.' || *c == '/')
            last = c + 1;
    return last;
}

enum td_role td_role_of_tensor(const char *name, const char *dtype)
{
    static const char *const parameters[] = {"weight", "bias", "kernel", "gamma", "beta"};
    if (strncmp(dtype, "float", 5) != 0 && strcmp(dtype, "bfloat16") != 0)
        return TD_ROLE_NUMBERS;
    if (strstr(name, ".grad") || starts(name, "grad"))
        return TD_ROLE_GRADIENT;
    const char *last = last_part(name);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const char *after = last + strlen(parameters[i]);
        if (ends(last, parameters[i]) || (starts(last, parameters[i]) && *after == '_'))
            return TD_ROLE_PARAMETER;
    }
    return TD_ROLE_ACTIVATION;
}

/* The scale of a loss, as mixed precision keeps one, is no loss. */
enum td_role td_role_of_scalar(const char *name)
{
    return strcasestr(name, "loss") && !strcasestr(name, "scale") ? TD_ROLE_LOSS : TD_ROLE_SCALAR;
}

double td_root_mean_square(const struct tdbg_stats *s)
{
    return s->finite ? s->norm / sqrt((double)s->finite) : (double)NAN;
}

/* --- Series --------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct td_series *)a)->name, ((const struct td_series *)b)->name);
}

static struct td_series *find_series(void *tree, const char *name)
{
    struct td_series key = {.name = name};
    struct td_series **node = tfind(&key, &tree, by_name);
    return node ? *node : NULL;
}

static struct td_series *add_series(struct td_watch *w, void **tree, const char *name, enum td_role role)
{
    struct td_series *s = td_arena_alloc(&w->arena, sizeof *s);
    char *copy = s ? td_arena_strdup(&w->arena, name) : NULL;
    if (!copy)
        return NULL;
    s->name = copy;
    s->role = role;
    if (role == TD_ROLE_LOSS && !(s->window = td_arena_array(&w->arena, TD_RULE_WINDOW, sizeof *s->window)))
        return NULL;
    return tsearch(s, tree, by_name) ? s : NULL;
}

/* "layers.0.weight.grad": layers.0.weight is trained. */
static void note_gradient(struct td_watch *w, const char *name)
{
    w->gradients = true;
    const char *end = strstr(name, ".grad");
    char *parameter = end ? strndup(name, (size_t)(end - name)) : NULL;
    struct td_series *s = parameter ? find_series(w->tensors, parameter) : NULL;
    if (s)
        s->has_gradient = true;
    free(parameter);
}

static bool same_statistics(const struct tdbg_stats *a, const struct tdbg_stats *b)
{
    return a->count == b->count && a->finite == b->finite && a->zeros == b->zeros && a->mean == b->mean &&
           a->norm == b->norm && a->min == b->min && a->max == b->max &&
           (a->std == b->std || (isnan(a->std) && isnan(b->std)));
}

/* After the rules have looked: the row becomes the one before. */
static void remember(struct td_series *s, const struct tdbg_stats *stats)
{
    double size = td_root_mean_square(stats);
    if (s->role == TD_ROLE_GRADIENT && size > 0) {
        s->log_sum += log(size);
        s->log_count++;
    }
    s->last = *stats;
    s->seen++;
}

/* --- Judging -------------------------------------------------------------------------------------------- */

static struct td_finding *add_finding(struct td_watch *w)
{
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        struct td_finding **grown = realloc(w->findings, room * sizeof(struct td_finding *));
        if (!grown)
            return NULL;
        w->findings = grown;
        w->room = room;
    }
    struct td_finding *f = td_arena_alloc(&w->arena, sizeof *f);
    if (f)
        w->findings[w->count++] = f;
    w->sorted = false;
    return f;
}

static bool found(struct td_watch *w, struct td_series *s, size_t rule, const struct td_moment *m,
                  double number)
{
    struct td_finding *f = s->rules[rule].finding;
    bool scalar = m->scalar != NULL;
    if (!f) {
        if (!(f = add_finding(w)))
            return false;
        *f = (struct td_finding){
            .rule = &td_rules[rule],
            .name = s->name,
            .scalar = scalar,
            .step = scalar ? m->scalar->step : 0,
            .ordinal = scalar ? -1 : m->tensor->step,
            .time_ns = scalar ? m->scalar->time_ns : m->tensor->time_ns,
            .number = number,
            .worst = number,
            .threshold = w->settings[rule].threshold,
        };
        s->rules[rule].finding = f;
    }
    f->worst = td_rules[rule].below ? fmin(f->worst, number) : fmax(f->worst, number);
    f->times++;
    return true;
}

static bool judge(struct td_watch *w, struct td_series *s, struct td_moment *m)
{
    m->series = s;
    m->gradients = w->gradients;
    m->losses = w->losses;
    for (size_t i = 0; i < TD_RULES; i++) {
        const struct td_rule *rule = &td_rules[i];
        const struct td_rule_setting *setting = &w->settings[i];
        if (setting->disabled || !(rule->roles & (unsigned)s->role))
            continue;
        m->steps = setting->steps;
        double number = rule->look(m);
        if (isnan(number))
            continue;
        bool bad = rule->below ? number < setting->threshold : number > setting->threshold;
        s->rules[i].streak = bad ? s->rules[i].streak + 1 : 0;
        if (bad && (rule->window || s->rules[i].streak >= setting->steps) && !found(w, s, i, m, number))
            return false;
    }
    return true;
}

bool td_watch_step(struct td_watch *w, const struct td_run_step *row)
{
    if (w->step_count == w->step_room) {
        size_t room = w->step_room ? 2 * w->step_room : 64;
        struct numbered *grown = realloc(w->steps, room * sizeof *grown);
        if (!grown)
            return false;
        w->steps = grown;
        w->step_room = room;
    }
    w->steps[w->step_count++] = (struct numbered){.ordinal = row->ordinal, .number = row->number};
    w->last_step = row->ordinal;
    return true;
}

bool td_watch_tensor(struct td_watch *w, const struct td_run_tensor *row)
{
    struct td_series *s = find_series(w->tensors, row->name);
    if (!s && !(s = add_series(w, &w->tensors, row->name, td_role_of_tensor(row->name, row->dtype))))
        return false;
    if (s->role == TD_ROLE_GRADIENT)
        note_gradient(w, row->name);
    s->unchanged = s->seen && same_statistics(&s->last, &row->stats) ? s->unchanged + 1 : 0;
    struct td_moment m = {.tensor = row};
    bool done = judge(w, s, &m);
    remember(s, &row->stats);
    w->last_tensor = row->id;
    w->tensor_rows++;
    return done;
}

bool td_watch_scalar(struct td_watch *w, const struct td_run_scalar *row)
{
    struct td_series *s = find_series(w->scalars, row->name);
    if (!s && !(s = add_series(w, &w->scalars, row->name, td_role_of_scalar(row->name))))
        return false;
    if (s->window) {
        s->window[s->seen % TD_RULE_WINDOW] = row->value;
        w->losses = true;
    }
    struct td_moment m = {.scalar = row};
    bool done = judge(w, s, &m);
    s->seen++;
    w->last_scalar = row->id;
    w->scalar_rows++;
    return done;
}

/* --- From a store --------------------------------------------------------------------------------------- */

static bool visit_step(void *watch, const struct td_run_step *row)
{
    struct td_watch *w = watch;
    w->nomem = !td_watch_step(w, row);
    return !w->nomem;
}

static bool visit_tensor(void *watch, const struct td_run_tensor *row)
{
    struct td_watch *w = watch;
    w->nomem = !td_watch_tensor(w, row);
    return !w->nomem;
}

static bool visit_scalar(void *watch, const struct td_run_scalar *row)
{
    struct td_watch *w = watch;
    w->nomem = !td_watch_scalar(w, row);
    return !w->nomem;
}

/* Scalars first: they tell whether the run trains anything. */
tdbg_status td_watch_read(struct td_watch *w, struct td_run_store *store, struct tdbg_error *error)
{
    TD_TRY(td_run_each_scalar(store, w->last_scalar, visit_scalar, w, error));
    if (!w->nomem)
        TD_TRY(td_run_each_tensor(store, w->last_tensor, visit_tensor, w, error));
    if (!w->nomem)
        TD_TRY(td_run_each_step(store, w->last_step, visit_step, w, error));
    return w->nomem ? td_fail_nomem(error) : TDBG_OK;
}

/* --- Findings ------------------------------------------------------------------------------------------- */

uint64_t td_watch_steps(const struct td_watch *w)
{
    return w->step_count;
}

uint64_t td_watch_tensors(const struct td_watch *w)
{
    return w->tensor_rows;
}

uint64_t td_watch_scalars(const struct td_watch *w)
{
    return w->scalar_rows;
}

size_t td_watch_count(const struct td_watch *w)
{
    return w->count;
}

/* At one moment a tensor comes before the scalar made of it, and rules in the order of their table. */
static int by_time(const void *a, const void *b)
{
    const struct td_finding *x = *(struct td_finding *const *)a, *y = *(struct td_finding *const *)b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->scalar != y->scalar)
        return x->scalar ? 1 : -1;
    if (x->rule != y->rule)
        return x->rule < y->rule ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_ordinal(const void *key, const void *element)
{
    int64_t wanted = *(const int64_t *)key, have = ((const struct numbered *)element)->ordinal;
    return (wanted > have) - (wanted < have);
}

const struct td_finding *td_watch_finding(struct td_watch *w, size_t index)
{
    if (!w->sorted)
        qsort(w->findings, w->count, sizeof *w->findings, by_time);
    w->sorted = true;
    struct td_finding *f = w->findings[index];
    if (!f->scalar) {
        const struct numbered *step =
            w->step_count ? bsearch(&f->ordinal, w->steps, w->step_count, sizeof *w->steps, by_ordinal)
                          : NULL;
        f->under_way = step == NULL;
        f->step = step ? step->number : f->ordinal;
    }
    return f;
}
