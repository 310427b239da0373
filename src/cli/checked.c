/* checked.c: see checked.h. The tensors of an input become rows as a run has them, statistics and a sketch
 * each, so that the same rules look at both. */
#include "cli/checked.h"

#include "cli/operand.h"
#include "cli/progress.h"
#include "cli/skips.h"

#include <stdlib.h>
#include <string.h>

void checked_release(struct checked *c)
{
    for (size_t i = 0; i < c->fit_count; i++)
        free(c->fits[i].name);
    free(c->fits);
    td_checker_close(&c->checker);
    free(c->path);
    *c = (struct checked){0};
}

/* --- A run ---------------------------------------------------------------------------------------------- */

static tdbg_status read_run(const char *path, struct td_checker *checker, struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    TD_TRY(td_run_store_open(&store, path, error));
    tdbg_status status = td_run_begin(store, error);
    if (status == TDBG_OK)
        status = td_checker_read(checker, store, error);
    if (status == TDBG_OK)
        status = td_run_commit(store, error);
    td_run_store_close(&store);
    return status;
}

int checked_run(const char *path, const struct td_rule_setting settings[TD_RULES], struct checked *out)
{
    struct tdbg_error error;
    struct checked c = {.path = strdup(path), .run = true};
    tdbg_status status = c.path ? td_checker_open(&c.checker, settings, &error) : td_fail_nomem(&error);
    if (status == TDBG_OK)
        status = read_run(path, c.checker, &error);
    if (status != TDBG_OK) {
        checked_release(&c);
        return cli_fail(path, &error);
    }
    *out = c;
    return td_checker_count(c.checker) ? EXIT_FINDINGS : EXIT_FINE;
}

/* --- An input ------------------------------------------------------------------------------------------- */

/* The row as a recorder would have written it; false when memory ran out. */
static bool feed(struct td_checker *checker, const struct td_stats_row *row, int64_t at)
{
    struct td_run_tensor tensor = {
        .id = at,
        .step = -1, /* none: not the first step of a training either */
        .time_ns = at,
        .name = row->tensor->name,
        .dtype = td_dtype_name(td_dtype_facts(row->tensor->dtype)->value),
        .kind = TD_KEEP_SKETCH,
        .ndim = row->tensor->shape.ndim,
        .stats = row->stats,
        .bins = row->stats.finite ? row->counts : NULL,
    };
    memcpy(tensor.shape, row->tensor->shape.size, (size_t)tensor.ndim * sizeof *tensor.shape);
    return td_checker_tensor(checker, &tensor);
}

static tdbg_status feed_all(struct checked *c, const struct td_stats_rows *rows, struct tdbg_error *error)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct td_stats_row *row = &rows->rows[i];
        if (row->error.status != TDBG_OK)
            c->partial = skips_fail(row) != EXIT_FINE;
        else if (!feed(c->checker, row, (int64_t)i))
            return td_fail_nomem(error);
    }
    return TDBG_OK;
}

static tdbg_status fit_all(struct cli *cli, struct checked *c, const struct td_stats_rows *rows,
                           enum td_dtype as, struct tdbg_error *error)
{
    struct td_range range;
    if (!td_range_of(as, &range))
        return TDBG_OK;
    c->fits = calloc(rows->count + 1, sizeof *c->fits);
    if (!c->fits)
        return td_fail_nomem(error);
    for (size_t i = 0; i < rows->count; i++) {
        const struct td_stats_row *row = &rows->rows[i];
        struct fit *fit = &c->fits[c->fit_count];
        if (row->error.status != TDBG_OK)
            continue;
        TD_TRY(td_range_count(row->tensor, &range, cli->pool, cli->job, &fit->counts, error));
        TD_TRY(td_input_verify(row->tensor, error));
        fit->name = strdup(row->tensor->name);
        if (!fit->name)
            return td_fail_nomem(error);
        fit->dtype = td_dtype_name(row->tensor->dtype);
        fit->count = row->stats.count;
        c->fit_count++;
    }
    return TDBG_OK;
}

static tdbg_status measure(struct cli *cli, const struct operand *o, struct checked *c, enum td_dtype as,
                           struct tdbg_error *error)
{
    struct td_stats_rows rows;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return td_fail_nomem(error);
    TD_TRY(td_stats_rows_init(&rows, operand_count(o), TD_SKETCH_BINS, error));
    for (size_t i = 0; i < rows.count; i++) {
        rows.rows[i].tensor = o->named ? &o->selection.part : operand_tensor(o, i);
        rows.rows[i].path = o->target.path;
        rows.rows[i].slice = o->slice ? o->slice : "";
        rows.rows[i].unsliceable = o->named && !o->selection.whole;
    }
    struct progress *progress = progress_start(cli, "checking", td_stats_rows_bytes(&rows));
    tdbg_status status = td_stats_rows_measure(&rows, pool, cli->job, error);
    if (status == TDBG_OK)
        status = feed_all(c, &rows, error);
    if (status == TDBG_OK)
        status = fit_all(cli, c, &rows, as, error);
    progress_stop(&progress);
    td_stats_rows_release(&rows);
    return status;
}

static bool has_findings(const struct checked *c)
{
    for (size_t i = 0; i < c->fit_count; i++)
        if (c->fits[i].counts.beyond)
            return true;
    return td_checker_count(c->checker) > 0;
}

int checked_input(struct cli *cli, const char *operand, const struct td_rule_setting settings[TD_RULES],
                  enum td_dtype as, struct checked *out)
{
    struct tdbg_error error;
    struct operand o;
    struct checked c = {0};
    int opened = operand_open(cli, operand, false, &o);
    if (opened != EXIT_FINE)
        return opened;
    c.path = strdup(operand);
    tdbg_status status = c.path ? td_checker_open(&c.checker, settings, &error) : td_fail_nomem(&error);
    if (status == TDBG_OK)
        status = measure(cli, &o, &c, as, &error);
    operand_release(&o);
    if (status != TDBG_OK) {
        checked_release(&c);
        return cli_fail(operand, &error);
    }
    *out = c;
    return has_findings(&c) ? EXIT_FINDINGS : EXIT_FINE;
}
