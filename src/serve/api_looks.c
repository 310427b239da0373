/* api_looks.c: the routes that look at a pair, and those of them that show values; see docs/api.md.
 *
 * Values are on the way of every slider: they are read on the thread of the HTTP library, without a pool and
 * without a queue.
 */
#include "kernel/element.h"
#include "report/diff_json.h"
#include "report/stats_json.h"
#include "serve/visit.h"
#include "serve/warming.h"
#include "session/look.h"

#include <inttypes.h>
#include <stdlib.h>

/* Elements of a side in one answer: a screen of numbers is a few thousand, and 1.5 MiB still come at once. */
enum { MOST_VALUES = 65536, MOST_MAPPED = 4096 };

/* --- The pair ------------------------------------------------------------------------------------------- */

static void put_tensor(struct td_json *j, const char *key, const struct td_tensor *t)
{
    td_json_key(j, key);
    td_json_begin_object(j);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_end_object(j);
}

static void put_null(struct td_json *j, const char *key)
{
    td_json_key(j, key);
    td_json_null(j);
}

static void put_sides(struct td_json *j, const struct td_subject *s)
{
    if (s->pair) {
        td_item_json(j, "a", s->items[0]);
        td_item_json(j, "b", s->items[1]);
        td_layout_json(j, s->pair);
        td_metrics_json(j, s->pair);
        return;
    }
    put_tensor(j, "a", s->tensor);
    put_null(j, "b");
    put_null(j, "layout");
    put_null(j, "metrics");
}

static void put_stats(struct td_json *j, const char *key, const struct tdbg_stats *stats)
{
    td_json_key(j, key);
    if (!stats) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_stats_members_json(j, stats);
    td_json_end_object(j);
}

static void route_pair(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct tdbg_stats stats[2];
    tdbg_status status = TDBG_OK;
    if (!td_visit_begin_long(&v, x))
        return;
    const struct td_subject *s = v.subject;
    for (int side = 0; side < 2 && status == TDBG_OK; side++)
        if (s->has[side])
            status = td_look_stats(s, side, td_visit_pool(&v), &stats[side], &error);
    if (td_visit_check(&v, status, &error)) {
        struct td_document d;
        td_warm_pair(x, v.opened->id, v.index);
        td_document_begin(&d);
        td_json_field_uint(&d.json, "index", v.index);
        td_json_field_uint(&d.json, "generation", v.opened->generation);
        td_json_field_string(&d.json, "name", s->pair ? s->pair->name : s->tensor->name);
        td_json_key(&d.json, "shape");
        td_json_ints(&d.json, s->shape.size, (size_t)s->shape.ndim);
        td_json_field_bool(&d.json, "as_real", s->as_real);
        put_sides(&d.json, s);
        put_stats(&d.json, "a_stats", s->has[0] ? &stats[0] : NULL);
        put_stats(&d.json, "b_stats", s->has[1] ? &stats[1] : NULL);
        td_document_answer(&d, x);
    }
    td_visit_end(&v);
}

/* --- Values --------------------------------------------------------------------------------------------- */

static tdbg_status check_count(int64_t count, int64_t most, struct tdbg_error *error)
{
    if (count > most)
        return td_fail(error, TDBG_LIMIT, "%" PRId64 " elements; a request gets at most %" PRId64, count,
                       most);
    return TDBG_OK;
}

/* A, B and B - A one after the other, or the one side there is. */
static tdbg_status read_values(const struct td_subject *s, const struct td_slice *slice, bool flat,
                               struct td_buffer *out, struct tdbg_error *error)
{
    bool both = s->has[0] && s->has[1];
    size_t n = (size_t)slice->count;
    double *values = (double *)(void *)td_buffer_extend(out, (both ? 3 : 1) * n * sizeof *values);
    if (n == 0)
        return TDBG_OK;
    if (!values)
        return td_fail_nomem(error);
    for (int side = 0; side < 2; side++) {
        double *to = values + (both && side ? n : 0);
        if (s->has[side])
            TD_TRY(flat ? td_subject_run(s, side, slice->axis[0].start, slice->count, to, error)
                        : td_subject_values(s, side, slice, to, error));
    }
    for (size_t i = 0; both && i < n; i++)
        values[2 * n + i] = td_difference(values[i], values[n + i]);
    return TDBG_OK;
}

static void route_values(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct td_slice slice;
    struct td_buffer body;
    if (!td_visit_begin(&v, x))
        return;
    const struct td_subject *s = v.subject;
    td_buffer_init(&body, 3 * MOST_VALUES * sizeof(double));
    const char *flat = td_query(x, "flat"), *text = td_query(x, "slice");
    tdbg_status status = flat ? td_subject_parse_flat(s, flat, &slice, &error)
                              : td_slice_parse(&slice, text ? text : "", &s->shape, &error);
    if (status == TDBG_OK)
        status = check_count(slice.count, MOST_VALUES, &error);
    if (status == TDBG_OK)
        status = read_values(s, &slice, flat, &body, &error);
    if (td_visit_check(&v, status, &error)) {
        td_answer_shape(x, slice.shape.size, slice.shape.ndim);
        td_answer_header(x, "X-Tdbg-Sides", s->has[0] ? s->has[1] ? "ab" : "a" : "b");
        td_answer_bytes(x, "application/octet-stream", &body);
    }
    td_buffer_release(&body);
    td_visit_end(&v);
}

/* --- Each side by its own slice ------------------------------------------------------------------------- */

struct mapped {
    struct td_slice slice;
    double *values;
    struct tdbg_stats stats;
};

static tdbg_status read_mapped(const struct td_visit *v, int side, struct mapped *m, struct tdbg_error *error)
{
    static const char *const names[] = {"a", "b"};
    const char *text = td_query(v->x, names[side]);
    TD_TRY(td_slice_parse(&m->slice, text ? text : "", &v->subject->own[side].operand.shape, error));
    TD_TRY(check_count(m->slice.count, MOST_MAPPED, error));
    m->values = calloc((size_t)m->slice.count + 1, sizeof *m->values);
    if (!m->values)
        return td_fail_nomem(error);
    TD_TRY(td_subject_own_values(v->subject, side, &m->slice, m->values, error));
    return td_look_at_values(m->values, m->slice.count, &m->stats, error);
}

static void put_mapped(struct td_json *j, const char *key, const struct mapped *m)
{
    td_json_key(j, key);
    if (!m->values) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_key(j, "shape");
    td_json_ints(j, m->slice.shape.size, (size_t)m->slice.shape.ndim);
    td_json_key(j, "values");
    td_json_begin_array(j);
    for (int64_t i = 0; i < m->slice.count; i++)
        td_json_number(j, m->values[i]);
    td_json_end_array(j);
    put_stats(j, "stats", &m->stats);
    td_json_end_object(j);
}

static void put_difference(struct td_json *j, const struct td_metrics *m)
{
    td_json_key(j, "difference");
    td_json_begin_object(j);
    td_json_field_number(j, "max_abs", m->max_abs);
    td_json_field_number(j, "mean_abs", m->mean_abs);
    td_json_field_number(j, "max_rel", m->max_rel);
    td_json_field_number(j, "mean_rel", m->mean_rel);
    td_json_field_number(j, "mse", m->mse);
    td_json_field_number(j, "cosine", m->cosine);
    td_json_field_uint(j, "count", m->count);
    td_json_end_object(j);
}

static void route_mapped(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct mapped sides[2] = {{.values = NULL}, {.values = NULL}};
    struct td_metrics metrics;
    tdbg_status status = TDBG_OK;
    if (!td_visit_begin_sides(&v, x))
        return;
    for (int side = 0; side < 2 && status == TDBG_OK; side++)
        if (v.subject->has[side])
            status = read_mapped(&v, side, &sides[side], &error);
    int64_t count = sides[0].slice.count;
    bool both = sides[0].values && sides[1].values && count == sides[1].slice.count && count > 0;
    if (status == TDBG_OK && both)
        status = td_measure_doubles(sides[0].values, sides[1].values, count, &metrics, &error);
    if (td_visit_check(&v, status, &error)) {
        struct td_document d;
        td_document_begin(&d);
        put_mapped(&d.json, "a", &sides[0]);
        put_mapped(&d.json, "b", &sides[1]);
        both ? put_difference(&d.json, &metrics) : put_null(&d.json, "difference");
        td_document_answer(&d, x);
    }
    free(sides[0].values);
    free(sides[1].values);
    td_visit_end(&v);
}

#define PAIR "/api/v1/comparisons/{}/pairs/{}"

const struct td_route td_routes_looks[] = {
    {"GET", PAIR, TD_BODY_NONE, route_pair},
    {"GET", PAIR "/values", TD_BODY_NONE, route_values},
    {"GET", PAIR "/mapped", TD_BODY_NONE, route_mapped},
    {"GET", PAIR "/worst", TD_BODY_NONE, td_route_worst},
    {"GET", PAIR "/find", TD_BODY_NONE, td_route_find},
    {"GET", PAIR "/histogram", TD_BODY_NONE, td_route_histogram},
    {"GET", PAIR "/density", TD_BODY_NONE, td_route_density},
    {"GET", PAIR "/profile", TD_BODY_NONE, td_route_profile},
    {"GET", PAIR "/tile", TD_BODY_NONE, td_route_tile},
    {"GET", PAIR "/export", TD_BODY_NONE, td_route_export},
    {0},
};
