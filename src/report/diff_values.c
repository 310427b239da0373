/* diff_values.c: see diff_values.h.
 *
 * A window of the last two axes of the aligned tensors, around the worst element:
 *
 *     [i, j, row, column]     i, j as of the worst element; ROWS rows and COLUMNS columns around it
 *
 * A one-sided NaN or Inf comes first among the worst elements, and is what the window is around then.
 */
#include "report/diff_values.h"

#include "base/limits.h"
#include "kernel/element.h"

#include <string.h>

enum { ROWS = 9, COLUMNS = 16 };

/* [from, from + count) of an axis. */
struct range {
    int64_t from, count;
};

struct window {
    struct range rows, columns;
    int64_t at[TD_MAX_DIMS];           /* the worst element */
    int64_t row_stride, column_stride; /* 0: the tensor has no such axis */
    int64_t origin;                    /* row-major index of the window's first element */
    double a[ROWS][COLUMNS], b[ROWS][COLUMNS];
};

static struct range around(int64_t at, int64_t size, int64_t count)
{
    if (size <= count)
        return (struct range){0, size};
    int64_t from = at - count / 2;
    from = from < 0 ? 0 : from > size - count ? size - count : from;
    return (struct range){from, count};
}

static void place(struct window *w, const struct td_shape *shape, int64_t worst)
{
    int n = shape->ndim;
    for (int64_t i = n - 1, rest = worst; i >= 0; i--) {
        w->at[i] = rest % shape->size[i];
        rest /= shape->size[i];
    }
    w->rows = w->columns = (struct range){0, 1};
    if (n >= 1) {
        w->columns = around(w->at[n - 1], shape->size[n - 1], COLUMNS);
        w->column_stride = 1;
    }
    if (n >= 2) {
        w->rows = around(w->at[n - 2], shape->size[n - 2], ROWS);
        w->row_stride = shape->size[n - 1];
    }
    w->origin = worst;
    if (n >= 1)
        w->origin -= w->at[n - 1] - w->columns.from;
    if (n >= 2)
        w->origin -= (w->at[n - 2] - w->rows.from) * w->row_stride;
}

static tdbg_status load(struct window *w, const struct td_pair *p, struct tdbg_error *error)
{
    struct td_arena arena;
    struct td_operand a, b;
    td_arena_init(&arena, TD_MAX_METADATA);
    tdbg_status status = td_operand_make(&a, p->a, &p->layout->a, &arena, error);
    if (status == TDBG_OK)
        status = td_operand_make(&b, p->b, &p->layout->b, &arena, error);
    for (int64_t r = 0; status == TDBG_OK && r < w->rows.count; r++) {
        int64_t start = w->origin + r * w->row_stride;
        status = td_operand_load(&a, start, w->columns.count, w->a[r], error);
        if (status == TDBG_OK)
            status = td_operand_load(&b, start, w->columns.count, w->b[r], error);
    }
    td_arena_release(&arena);
    return status;
}

/* "[3, 4:13, 0:16]" */
static void put_slice(struct td_json *j, const struct window *w, int ndim)
{
    struct td_buffer text;
    td_buffer_init(&text, 4096);
    td_buffer_puts(&text, "[");
    for (int i = 0; i < ndim; i++) {
        const struct range *range = i == ndim - 1 ? &w->columns : i == ndim - 2 ? &w->rows : NULL;
        td_buffer_puts(&text, i ? ", " : "");
        if (range)
            td_buffer_printf(&text, "%lld:%lld", (long long)range->from,
                             (long long)(range->from + range->count));
        else
            td_buffer_printf(&text, "%lld", (long long)w->at[i]);
    }
    td_buffer_puts(&text, "]");
    td_json_field_string(j, "slice", td_buffer_text(&text));
    td_buffer_release(&text);
}

static void put_range(struct td_json *j, const char *key, struct range range)
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (int64_t i = 0; i < range.count; i++)
        td_json_int(j, range.from + i);
    td_json_end_array(j);
}

static double value_of_a(const struct window *w, int64_t row, int64_t column)
{
    return w->a[row][column];
}

static double value_of_b(const struct window *w, int64_t row, int64_t column)
{
    return w->b[row][column];
}

static double difference(const struct window *w, int64_t row, int64_t column)
{
    return td_difference(w->a[row][column], w->b[row][column]);
}

static void put_grid(struct td_json *j, const char *key, const struct window *w,
                     double (*value)(const struct window *, int64_t, int64_t))
{
    td_json_key(j, key);
    td_json_begin_array(j);
    for (int64_t r = 0; r < w->rows.count; r++) {
        td_json_begin_array(j);
        for (int64_t c = 0; c < w->columns.count; c++)
            td_json_number(j, value(w, r, c));
        td_json_end_array(j);
    }
    td_json_end_array(j);
}

static void put_window(struct td_json *j, const struct window *w, int ndim)
{
    int64_t row = ndim >= 2 ? w->at[ndim - 2] - w->rows.from : 0;
    int64_t column = ndim >= 1 ? w->at[ndim - 1] - w->columns.from : 0;
    put_slice(j, w, ndim);
    put_range(j, "rows", w->rows);
    put_range(j, "columns", w->columns);
    td_json_key(j, "worst");
    td_json_ints(j, (const int64_t[]){row, column}, 2);
    put_grid(j, "a", w, value_of_a);
    put_grid(j, "b", w, value_of_b);
    put_grid(j, "difference", w, difference);
}

void td_values_json(struct td_json *j, const struct td_pair *p)
{
    if (!p || !td_pair_measured(p) || p->outcome.metrics.count == 0) {
        td_json_null(j);
        return;
    }
    struct window w = {0};
    struct tdbg_error error;
    int64_t worst = p->outcome.worst_count ? p->outcome.worst[0].index : p->outcome.metrics.argmax;
    place(&w, &p->layout->shape, worst > 0 ? worst : 0);
    td_json_begin_object(j);
    if (load(&w, p, &error) == TDBG_OK)
        put_window(j, &w, p->layout->shape.ndim);
    else
        td_json_field_string(j, "error", error.message);
    td_json_end_object(j);
}
