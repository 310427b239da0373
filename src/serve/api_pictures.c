/* api_pictures.c: tiles of heatmaps, and slices as files; see docs/api.md. */
#include "report/export.h"
#include "serve/visit.h"
#include "session/excerpt.h"

#include <inttypes.h>
#include <stdlib.h>

/* Elements of one file: a gigabyte of float64, and a few more as text. */
#define MOST_EXPORTED (INT64_C(1) << 27)

/* Tiles below this level are ready in a millisecond. */
enum { QUICK_LEVEL = 2 };

struct tile_request {
    int64_t level, x, y, width, transposed;
    const char *view;
    enum td_shown shown;
    int reduce;
};

static bool read_tile(const struct td_visit *v, struct tile_request *r)
{
    static const char *const reduces[] = {"mean", "max", NULL};
    struct td_exchange *x = v->x;
    r->view = td_query(x, "view") ? td_query(x, "view") : "";
    return td_query_int(x, "x", 0, TD_MAX_ELEMENTS, 0, &r->x) &&
           td_query_int(x, "y", 0, TD_MAX_ELEMENTS, 0, &r->y) &&
           td_query_int(x, "width", 1, TD_MAX_ELEMENTS, 1024, &r->width) &&
           td_query_int(x, "transpose", 0, 1, 0, &r->transposed) && td_visit_shown(v, "what", &r->shown) &&
           td_visit_word(v, "reduce", reduces, &r->reduce);
}

static tdbg_status draw(const struct td_visit *v, const struct tile_request *r, struct td_buffer *out,
                        int64_t shape[2], struct tdbg_error *error)
{
    struct td_picture picture;
    int rows, columns;
    TD_TRY(td_picture_init(&picture, v->subject, r->view, r->width, r->shown, r->transposed, error));
    float *cells = (float *)(void *)td_buffer_extend(out, TD_TILE_CELLS * TD_TILE_CELLS * sizeof *cells);
    if (!cells)
        return td_fail_nomem(error);
    TD_TRY(td_picture_tile(&picture, (int)r->level, r->y, r->x,
                           r->reduce ? TD_REDUCE_LARGEST : TD_REDUCE_MEAN, cells, &rows, &columns, error));
    shape[0] = rows;
    shape[1] = columns;
    out->size = (size_t)rows * (size_t)columns * sizeof *cells;
    return TDBG_OK;
}

void td_route_tile(struct td_exchange *x)
{
    struct td_visit v;
    struct tdbg_error error;
    struct tile_request request;
    struct td_buffer body;
    int64_t shape[2];
    if (!td_query_int(x, "level", 0, TD_TILE_LEVELS, 0, &request.level) ||
        !(request.level < QUICK_LEVEL ? td_visit_begin(&v, x) : td_visit_begin_long(&v, x)))
        return;
    td_buffer_init(&body, TD_TILE_CELLS * TD_TILE_CELLS * sizeof(float));
    if (read_tile(&v, &request) && td_visit_check(&v, draw(&v, &request, &body, shape, &error), &error)) {
        td_answer_shape(x, shape, 2);
        td_answer_bytes(x, "application/octet-stream", &body);
    }
    td_buffer_release(&body);
    td_visit_end(&v);
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* Holds the comparison until the file is written. */
struct export
{
    struct td_visit visit;
    struct td_excerpt excerpt;
    struct td_values values;
    bool csv;
};

static tdbg_status write_export(void *context, FILE *out)
{
    struct export *e = context;
    struct td_export file = {&e->values, &e->excerpt.slice.shape, e->excerpt.slice.count};
    return e->csv ? td_export_csv(&file, out, NULL, NULL) : td_export_npy(&file, out, NULL, NULL);
}

static void release_export(void *context)
{
    struct export *e = context;
    td_visit_end(&e->visit);
    free(e);
}

static tdbg_status prepare(struct export *e, enum td_shown side, struct tdbg_error *error)
{
    const char *slice = td_query(e->visit.x, "slice");
    TD_TRY(td_excerpt_init(&e->excerpt, e->visit.subject, side, slice ? slice : "",
                           td_query(e->visit.x, "flat"), error));
    if (e->excerpt.slice.count > MOST_EXPORTED)
        return td_fail(error, TDBG_LIMIT, "%" PRId64 " elements; a file gets at most %" PRId64,
                       e->excerpt.slice.count, MOST_EXPORTED);
    td_values_init(&e->values, td_excerpt_elements(&e->excerpt));
    return TDBG_OK;
}

void td_route_export(struct td_exchange *x)
{
    static const char *const formats[] = {"npy", "csv", NULL};
    static const char *const sides[] = {"a", "b", "difference"};
    struct export *e = calloc(1, sizeof *e);
    struct tdbg_error error;
    enum td_shown side;
    int format;
    if (!e) {
        td_answer_error(x, 503, "out of memory");
        return;
    }
    if (!td_visit_begin_long(&e->visit, x)) {
        free(e);
        return;
    }
    if (td_visit_shown(&e->visit, "side", &side) && td_visit_word(&e->visit, "format", formats, &format) &&
        td_visit_check(&e->visit, prepare(e, side, &error), &error)) {
        char name[64];
        snprintf(name, sizeof name, "pair-%zu-%s.%s", e->visit.index, sides[side], formats[format]);
        e->csv = format == 1;
        const struct td_producer producer = {e, write_export, release_export};
        td_answer_file(x, e->csv ? "text/csv" : "application/octet-stream", name, &producer);
        return;
    }
    release_export(e);
}
