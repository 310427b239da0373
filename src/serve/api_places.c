/* api_places.c: where the values of a pair are remarkable, and how they lie; see docs/api.md. */
#include "report/diff_json.h"
#include "serve/visit.h"
#include "session/look.h"

#include <math.h>
#include <stdlib.h>

/* A list for people; each thread keeps as many while it looks. */
enum { MOST_WORST = 200, MOST_FOUND = 1000 };

/* What a plot can show. */
enum { MOST_BINS = 1000, MOST_SIZE = 512 };

/* The places found, the profile of every axis: at most 32 axes of 65,536 indices, twice. */
enum { ARENA_LIMIT = 64 << 20 };

void td_route_worst(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct td_examination found;
    struct td_arena arena;
    int64_t count;
    if (!td_query_int(x, "count", 1, MOST_WORST, 20, &count) || !td_visit_begin_long(&v, x))
        return;
    td_arena_init(&arena, ARENA_LIMIT);
    tdbg_status status = td_look_worst(v.subject, (int)count, td_visit_pool(&v), &arena, &found, &error);
    if (td_visit_check(&v, status, &error)) {
        struct td_document d;
        td_document_begin(&d);
        td_json_key(&d.json, "worst");
        td_json_begin_array(&d.json);
        for (int i = 0; i < found.worst_count; i++) {
            const struct td_worst *w = &found.worst[i];
            td_json_begin_object(&d.json);
            td_json_key(&d.json, "index");
            td_coordinates_json(&d.json, &v.subject->shape, w->index);
            td_json_field_number(&d.json, "a", w->a);
            td_json_field_number(&d.json, "b", w->b);
            td_json_field_number(&d.json, "difference", w->difference);
            td_json_end_object(&d.json);
        }
        td_json_end_array(&d.json);
        td_document_answer(&d, x);
    }
    td_arena_release(&arena);
    td_visit_end(&v);
}

/* --- find ----------------------------------------------------------------------------------------------- */

static bool query_number(struct td_exchange *x, const char *name, double otherwise, double *out)
{
    const char *text = td_query(x, name);
    char *end = NULL;
    *out = text ? strtod(text, &end) : otherwise;
    if (!text || (*text && !*end && !isnan(*out)))
        return true;
    td_answer_error(x, 400, "%s is '%.64s', not a number", name, text);
    return false;
}

static bool read_search(const struct td_visit *v, struct td_search *out)
{
    static const char *const words[] = {"range", "nan", "inf", "zero", NULL};
    struct td_exchange *x = v->x;
    enum td_shown side;
    int what;
    int64_t limit;
    if (!td_visit_shown(v, "side", &side) || !td_visit_word(v, "what", words, &what) ||
        !query_number(x, "low", -(double)INFINITY, &out->low) ||
        !query_number(x, "high", (double)INFINITY, &out->high) ||
        !td_query_int(x, "from", 0, v->subject->count, 0, &out->from) ||
        !td_query_int(x, "limit", 1, MOST_FOUND, 100, &limit))
        return false;
    if (side == TD_SHOW_DIFFERENCE) {
        td_answer_error(x, 400, "side is 'difference', not one of a, b");
        return false;
    }
    if (!td_query(x, "what") && !td_query(x, "low") && !td_query(x, "high")) {
        td_answer_error(x, 400, "what is looked for? low and high, or what=nan, inf or zero");
        return false;
    }
    out->side = (int)side;
    out->what = (enum td_sought)what;
    out->limit = (int)limit;
    return true;
}

void td_route_find(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct td_search search;
    struct td_places found;
    struct td_arena arena;
    if (!td_visit_begin_long(&v, x))
        return;
    td_arena_init(&arena, ARENA_LIMIT);
    if (read_search(&v, &search) &&
        td_visit_check(&v, td_look_find(v.subject, &search, &arena, &found, &error), &error)) {
        struct td_document d;
        td_document_begin(&d);
        td_json_key(&d.json, "places");
        td_json_begin_array(&d.json);
        for (int i = 0; i < found.count; i++) {
            td_json_begin_object(&d.json);
            td_json_key(&d.json, "index");
            td_coordinates_json(&d.json, &v.subject->shape, found.list[i].index);
            td_json_field_int(&d.json, "flat", found.list[i].index);
            td_json_field_number(&d.json, "value", found.list[i].value);
            td_json_end_object(&d.json);
        }
        td_json_end_array(&d.json);
        td_json_key(&d.json, "next");
        found.next < 0 ? td_json_null(&d.json) : td_json_int(&d.json, found.next);
        td_document_answer(&d, x);
    }
    td_arena_release(&arena);
    td_visit_end(&v);
}

/* --- how values lie ------------------------------------------------------------------------------------- */

static void put_numbers(struct td_json *j, const double *values, int64_t count)
{
    td_json_begin_array(j);
    for (int64_t i = 0; i < count; i++)
        td_json_number(j, values[i]);
    td_json_end_array(j);
}

static void put_counts(struct td_json *j, const char *key, const uint64_t *counts, int64_t count)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (int64_t i = 0; i < count; i++)
        td_json_uint(j, counts[i]);
    td_json_end_array(j);
}

void td_route_histogram(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    double edges[MOST_BINS + 1];
    uint64_t a[MOST_BINS], b[MOST_BINS], *const counts[2] = {a, b};
    int64_t bins;
    if (!td_query_int(x, "bins", 1, MOST_BINS, 100, &bins) || !td_visit_begin_long(&v, x))
        return;
    tdbg_status status = td_look_histogram(v.subject, (int)bins, td_visit_pool(&v), edges, counts, &error);
    if (td_visit_check(&v, status, &error)) {
        static const char *const names[] = {"a", "b"};
        struct td_document d;
        td_document_begin(&d);
        td_json_key(&d.json, "edges");
        put_numbers(&d.json, edges, bins + 1);
        for (int side = 0; side < 2; side++) {
            if (v.subject->has[side]) {
                put_counts(&d.json, names[side], counts[side], bins);
            } else {
                td_json_key(&d.json, names[side]);
                td_json_null(&d.json);
            }
        }
        td_document_answer(&d, x);
    }
    td_visit_end(&v);
}

void td_route_density(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    double low, high;
    int64_t size;
    if (!td_query_int(x, "size", 2, MOST_SIZE, 128, &size) || !td_visit_begin_long(&v, x))
        return;
    uint64_t *counts = calloc((size_t)(size * size), sizeof *counts);
    tdbg_status status =
        counts ? td_look_density(v.subject, (int)size, td_visit_pool(&v), &low, &high, counts, &error)
               : td_fail_nomem(&error);
    if (td_visit_check(&v, status, &error)) {
        struct td_document d;
        td_document_begin(&d);
        td_json_field_number(&d.json, "low", low);
        td_json_field_number(&d.json, "high", high);
        td_json_field_int(&d.json, "size", size);
        put_counts(&d.json, "counts", counts, size * size);
        td_document_answer(&d, x);
    }
    free(counts);
    td_visit_end(&v);
}

void td_route_profile(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    const double *axes[TD_MAX_DIMS];
    struct td_arena arena;
    if (!td_visit_begin_long(&v, x))
        return;
    td_arena_init(&arena, ARENA_LIMIT);
    tdbg_status status = td_look_profile(v.subject, td_visit_pool(&v), &arena, axes, &error);
    if (td_visit_check(&v, status, &error)) {
        struct td_document d;
        td_document_begin(&d);
        td_json_key(&d.json, "axes");
        td_json_begin_array(&d.json);
        for (int i = 0; i < v.subject->shape.ndim; i++)
            axes[i] ? put_numbers(&d.json, axes[i], v.subject->shape.size[i]) : td_json_null(&d.json);
        td_json_end_array(&d.json);
        td_document_answer(&d, x);
    }
    td_arena_release(&arena);
    td_visit_end(&v);
}
