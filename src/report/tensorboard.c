/* tensorboard.c: see tensorboard.h.
 *
 * Rows are walked once, under one read transaction, so the file shows one moment of a run that grows. Values
 * lie in one file per step and rows come in the order of the steps: the file last opened is the one needed.
 */
#include "report/tensorboard.h"

#include "kernel/stats.h"
#include "report/event_file.h"
#include "session/input.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct numbered {
    int64_t ordinal, number;
};

struct writing {
    struct td_event_file events;
    const char *dir;
    int64_t started;
    struct td_pool *pool;
    struct td_job *job;
    struct numbered *steps;
    size_t step_count, step_room;
    struct td_input *input; /* the values of a step */
    char *file;             /* its name */
    struct td_tensorboard_counts counts;
    bool nomem;
};

const char *td_tensorboard_name(const struct td_run_facts *facts, char *out, size_t size)
{
    char host[sizeof facts->host];
    snprintf(host, sizeof host, "%s", *facts->host ? facts->host : "localhost");
    for (char *c = host; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            *c = '-';
    snprintf(out, size, "events.out.tfevents.%010lld.%s.%lld.tdbg", (long long)facts->started, host,
             (long long)facts->pid);
    return out;
}

static struct td_event_moment moment(const struct writing *w, int64_t time_ns, int64_t step)
{
    return (struct td_event_moment){.wall_time = (double)w->started + 1e-9 * (double)time_ns, .step = step};
}

static bool go_on(const struct writing *w)
{
    return !w->nomem && !w->events.failed && !td_job_cancelled(w->job);
}

/* --- Rows ----------------------------------------------------------------------------------------------- */

static bool visit_step(void *context, const struct td_run_step *row)
{
    struct writing *w = context;
    if (w->step_count == w->step_room) {
        size_t room = w->step_room ? 2 * w->step_room : 64;
        struct numbered *grown = realloc(w->steps, room * sizeof *grown);
        w->nomem = !grown;
        if (!grown)
            return false;
        w->steps = grown;
        w->step_room = room;
    }
    w->steps[w->step_count++] = (struct numbered){row->ordinal, row->number};
    return true;
}

static bool visit_scalar(void *context, const struct td_run_scalar *row)
{
    struct writing *w = context;
    td_event_scalar(&w->events, moment(w, row->time_ns, row->step), row->name, row->value);
    w->counts.scalars++;
    return go_on(w);
}

static int by_ordinal(const void *key, const void *element)
{
    int64_t wanted = *(const int64_t *)key, have = ((const struct numbered *)element)->ordinal;
    return (wanted > have) - (wanted < have);
}

/* As numpy, and td_histogram, cut [low, high]: half a unit to either side of a single value. */
static void even_edges(double low, double high, double edges[TD_SKETCH_BINS + 1])
{
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    for (int i = 0; i <= TD_SKETCH_BINS; i++)
        edges[i] = low * (TD_SKETCH_BINS - i) / TD_SKETCH_BINS + high * i / TD_SKETCH_BINS;
}

static tdbg_status open_values(struct writing *w, const char *file, struct tdbg_error *error)
{
    if (w->file && strcmp(w->file, file) == 0)
        return TDBG_OK;
    td_input_close(&w->input);
    free(w->file);
    w->file = NULL;
    if (strchr(file, '/'))
        return td_fail(error, TDBG_CORRUPT, "values in '%s', outside the run", file);
    char *path = NULL;
    if (asprintf(&path, "%s/%s", w->dir, file) < 0)
        return td_fail_nomem(error);
    tdbg_status status = td_input_open(&w->input, path, w->job, error);
    free(path);
    if (status == TDBG_OK && !(w->file = strdup(file)))
        status = td_fail_nomem(error);
    return status;
}

static tdbg_status measure(struct writing *w, const struct td_run_tensor *row, double *edges,
                           uint64_t *counts, struct tdbg_error *error)
{
    struct tdbg_stats stats;
    size_t index = 0;
    TD_TRY(open_values(w, row->file, error));
    if (!td_input_find_exact(w->input, row->name, &index))
        return td_fail(error, TDBG_NOTFOUND, "no tensor %s in %s", row->name, row->file);
    const struct td_tensor *tensor = td_input_tensor(w->input, index);
    TD_TRY(td_input_stats(tensor, w->pool, w->job, &stats, error));
    if (stats.finite == 0)
        return td_fail(error, TDBG_UNSUPPORTED, "%s has no finite value", row->name);
    TD_TRY(td_histogram(tensor, w->pool, w->job, stats.min, stats.max, TD_SKETCH_BINS, edges, counts, error));
    return td_input_verify(tensor, error);
}

static bool visit_tensor(void *context, const struct td_run_tensor *row)
{
    struct writing *w = context;
    double edges[TD_SKETCH_BINS + 1];
    uint64_t counts[TD_SKETCH_BINS];
    struct tdbg_error error;
    const struct numbered *step =
        w->step_count ? bsearch(&row->step, w->steps, w->step_count, sizeof *w->steps, by_ordinal) : NULL;
    if (!step)
        return go_on(w);
    if (!row->bins && !row->file) {
        w->counts.bare++;
        return true;
    }
    if (row->bins) {
        even_edges(row->stats.min, row->stats.max, edges);
        memcpy(counts, row->bins, sizeof counts);
    } else if (measure(w, row, edges, counts, &error) != TDBG_OK) {
        if (w->counts.lost++ == 0)
            w->counts.why_lost = error;
        return go_on(w);
    }
    td_event_histogram(&w->events, moment(w, row->time_ns, step->number), row->name, edges, counts,
                       TD_SKETCH_BINS);
    w->counts.histograms++;
    return go_on(w);
}

/* --- The file ------------------------------------------------------------------------------------------- */

static tdbg_status walk(struct writing *w, struct td_run_store *store, struct tdbg_error *error)
{
    TD_TRY(td_run_begin(store, error));
    tdbg_status status = td_run_each_step(store, -1, visit_step, w, error);
    if (status == TDBG_OK && go_on(w))
        status = td_run_each_scalar(store, -1, visit_scalar, w, error);
    if (status == TDBG_OK && go_on(w))
        status = td_run_each_tensor(store, -1, visit_tensor, w, error);
    if (status != TDBG_OK)
        return status; /* closing the store ends what was begun */
    return td_run_commit(store, error);
}

tdbg_status td_tensorboard_write(struct td_run_store *store, const char *dir, FILE *file,
                                 struct td_pool *pool, struct td_job *job, struct td_tensorboard_counts *out,
                                 struct tdbg_error *error)
{
    struct td_run_facts facts;
    TD_TRY(td_run_facts(store, &facts, error));
    struct writing w = {.dir = dir, .started = facts.started, .pool = pool, .job = job};
    td_event_file_init(&w.events, file, (double)facts.started);
    tdbg_status status = walk(&w, store, error);
    td_input_close(&w.input);
    free(w.file);
    free(w.steps);
    if (!td_event_file_finish(&w.events) && status == TDBG_OK)
        status = td_fail_errno(error, "cannot write");
    if (status == TDBG_OK && w.nomem)
        status = td_fail_nomem(error);
    if (status == TDBG_OK && td_job_cancelled(job))
        status = td_fail(error, TDBG_CANCELLED, "cancelled");
    if (status == TDBG_OK)
        *out = w.counts;
    return status;
}
