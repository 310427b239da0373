/* checker.c: rows of a run go through the rules; see rules.h.
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

struct td_checker {
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

tdbg_status td_checker_open(struct td_checker **out, const struct td_rule_setting settings[TD_RULES],
                            struct tdbg_error *error)
{
    struct td_checker *c = calloc(1, sizeof *c);
    if (!c)
        return td_fail_nomem(error);
    memcpy(c->settings, settings, sizeof c->settings);
    td_arena_init(&c->arena, TD_MAX_METADATA);
    c->last_step = c->last_tensor = c->last_scalar = -1;
    *out = c;
    return TDBG_OK;
}

static void forget(void *series)
{
    (void)series; /* the arena's */
}

void td_checker_close(struct td_checker **checker)
{
    struct td_checker *c = *checker;
    if (!c)
        return;
    tdestroy(c->tensors, forget);
    tdestroy(c->scalars, forget);
    td_arena_release(&c->arena);
    free(c->findings);
    free(c->steps);
    free(c);
    *checker = NULL;
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
static enum td_role role_of_scalar(const char *name)
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

static struct td_series *add_series(struct td_checker *c, void **tree, const char *name, enum td_role role)
{
    struct td_series *s = td_arena_alloc(&c->arena, sizeof *s);
    char *copy = s ? td_arena_strdup(&c->arena, name) : NULL;
    if (!copy)
        return NULL;
    s->name = copy;
    s->role = role;
    if (role == TD_ROLE_LOSS && !(s->window = td_arena_array(&c->arena, TD_RULE_WINDOW, sizeof *s->window)))
        return NULL;
    return tsearch(s, tree, by_name) ? s : NULL;
}

/* "layers.0.weight.grad": layers.0.weight is trained. */
static void note_gradient(struct td_checker *c, const char *name)
{
    c->gradients = true;
    const char *end = strstr(name, ".grad");
    char *parameter = end ? strndup(name, (size_t)(end - name)) : NULL;
    struct td_series *s = parameter ? find_series(c->tensors, parameter) : NULL;
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

static struct td_finding *add_finding(struct td_checker *c)
{
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        struct td_finding **grown = realloc(c->findings, room * sizeof(struct td_finding *));
        if (!grown)
            return NULL;
        c->findings = grown;
        c->room = room;
    }
    struct td_finding *f = td_arena_alloc(&c->arena, sizeof *f);
    if (f)
        c->findings[c->count++] = f;
    c->sorted = false;
    return f;
}

static bool found(struct td_checker *c, struct td_series *s, size_t rule, const struct td_moment *m,
                  double number)
{
    struct td_finding *f = s->rules[rule].finding;
    bool scalar = m->scalar != NULL;
    if (!f) {
        if (!(f = add_finding(c)))
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
            .threshold = c->settings[rule].threshold,
        };
        s->rules[rule].finding = f;
    }
    f->worst = td_rules[rule].below ? fmin(f->worst, number) : fmax(f->worst, number);
    f->times++;
    return true;
}

static bool judge(struct td_checker *c, struct td_series *s, struct td_moment *m)
{
    m->series = s;
    m->gradients = c->gradients;
    m->losses = c->losses;
    for (size_t i = 0; i < TD_RULES; i++) {
        const struct td_rule *rule = &td_rules[i];
        const struct td_rule_setting *setting = &c->settings[i];
        if (setting->disabled || !(rule->roles & (unsigned)s->role))
            continue;
        m->steps = setting->steps;
        double number = rule->look(m);
        if (isnan(number))
            continue;
        bool bad = rule->below ? number < setting->threshold : number > setting->threshold;
        s->rules[i].streak = bad ? s->rules[i].streak + 1 : 0;
        if (bad && (rule->window || s->rules[i].streak >= setting->steps) && !found(c, s, i, m, number))
            return false;
    }
    return true;
}

bool td_checker_step(struct td_checker *c, const struct td_run_step *row)
{
    if (c->step_count == c->step_room) {
        size_t room = c->step_room ? 2 * c->step_room : 64;
        struct numbered *grown = realloc(c->steps, room * sizeof *grown);
        if (!grown)
            return false;
        c->steps = grown;
        c->step_room = room;
    }
    c->steps[c->step_count++] = (struct numbered){.ordinal = row->ordinal, .number = row->number};
    c->last_step = row->ordinal;
    return true;
}

bool td_checker_tensor(struct td_checker *c, const struct td_run_tensor *row)
{
    struct td_series *s = find_series(c->tensors, row->name);
    if (!s && !(s = add_series(c, &c->tensors, row->name, td_role_of_tensor(row->name, row->dtype))))
        return false;
    if (s->role == TD_ROLE_GRADIENT)
        note_gradient(c, row->name);
    s->unchanged = s->seen && same_statistics(&s->last, &row->stats) ? s->unchanged + 1 : 0;
    struct td_moment m = {.tensor = row};
    bool done = judge(c, s, &m);
    remember(s, &row->stats);
    c->last_tensor = row->id;
    c->tensor_rows++;
    return done;
}

bool td_checker_scalar(struct td_checker *c, const struct td_run_scalar *row)
{
    struct td_series *s = find_series(c->scalars, row->name);
    if (!s && !(s = add_series(c, &c->scalars, row->name, role_of_scalar(row->name))))
        return false;
    if (s->window) {
        s->window[s->seen % TD_RULE_WINDOW] = row->value;
        c->losses = true;
    }
    struct td_moment m = {.scalar = row};
    bool done = judge(c, s, &m);
    s->seen++;
    c->last_scalar = row->id;
    c->scalar_rows++;
    return done;
}

/* --- From a store --------------------------------------------------------------------------------------- */

static bool visit_step(void *checker, const struct td_run_step *row)
{
    struct td_checker *c = checker;
    c->nomem = !td_checker_step(c, row);
    return !c->nomem;
}

static bool visit_tensor(void *checker, const struct td_run_tensor *row)
{
    struct td_checker *c = checker;
    c->nomem = !td_checker_tensor(c, row);
    return !c->nomem;
}

static bool visit_scalar(void *checker, const struct td_run_scalar *row)
{
    struct td_checker *c = checker;
    c->nomem = !td_checker_scalar(c, row);
    return !c->nomem;
}

/* Scalars first: they tell whether the run trains anything. */
tdbg_status td_checker_read(struct td_checker *c, struct td_run_store *store, struct tdbg_error *error)
{
    TD_TRY(td_run_each_scalar(store, c->last_scalar, visit_scalar, c, error));
    if (!c->nomem)
        TD_TRY(td_run_each_tensor(store, c->last_tensor, visit_tensor, c, error));
    if (!c->nomem)
        TD_TRY(td_run_each_step(store, c->last_step, visit_step, c, error));
    return c->nomem ? td_fail_nomem(error) : TDBG_OK;
}

/* --- Findings ------------------------------------------------------------------------------------------- */

uint64_t td_checker_steps(const struct td_checker *c)
{
    return c->step_count;
}

uint64_t td_checker_tensors(const struct td_checker *c)
{
    return c->tensor_rows;
}

uint64_t td_checker_scalars(const struct td_checker *c)
{
    return c->scalar_rows;
}

size_t td_checker_count(const struct td_checker *c)
{
    return c->count;
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

const struct td_finding *td_checker_finding(struct td_checker *c, size_t index)
{
    if (!c->sorted)
        qsort(c->findings, c->count, sizeof *c->findings, by_time);
    c->sorted = true;
    struct td_finding *f = c->findings[index];
    if (!f->scalar) {
        const struct numbered *step =
            c->step_count ? bsearch(&f->ordinal, c->steps, c->step_count, sizeof *c->steps, by_ordinal)
                          : NULL;
        f->under_way = step == NULL;
        f->step = step ? step->number : f->ordinal;
    }
    return f;
}
