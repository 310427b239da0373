/* stats_json.c: see stats_json.h. */
#include "report/stats_json.h"

void td_stats_members_json(struct td_json *j, const struct tdbg_stats *s)
{
    td_json_field_uint(j, "count", s->count);
    td_json_field_uint(j, "finite", s->finite);
    td_json_field_uint(j, "nan", s->nan);
    td_json_field_uint(j, "inf", s->inf);
    td_json_field_uint(j, "zeros", s->zeros);
    td_json_field_number(j, "mean", s->mean);
    td_json_field_number(j, "std", s->std);
    td_json_field_number(j, "min", s->min);
    td_json_field_number(j, "max", s->max);
    td_json_field_number(j, "absmax", s->absmax);
    td_json_field_number(j, "norm", s->norm);
}

static void put_histogram(struct td_json *j, const struct td_stats_row *row, int bins)
{
    td_json_key(j, "hist");
    td_json_begin_object(j);
    td_json_key(j, "edges");
    td_json_begin_array(j);
    for (int i = 0; i <= bins; i++)
        td_json_number(j, row->edges[i]);
    td_json_end_array(j);
    td_json_key(j, "counts");
    td_json_begin_array(j);
    for (int i = 0; i < bins; i++)
        td_json_uint(j, row->counts[i]);
    td_json_end_array(j);
    td_json_end_object(j);
}

static void put_row(struct td_json *j, const struct td_stats_row *row, int bins)
{
    const struct td_tensor *t = row->tensor;
    td_json_begin_object(j);
    td_json_field_string(j, "name", t->name);
    td_json_field_string(j, "path", row->path);
    if (*row->slice)
        td_json_field_string(j, "slice", row->slice);
    td_json_field_string(j, "dtype", td_dtype_name(t->dtype));
    td_json_key(j, "shape");
    td_json_ints(j, t->shape.size, (size_t)t->shape.ndim);
    td_json_field_uint(j, "bytes", t->bytes);
    td_json_field_string(j, "format", t->format);
    td_stats_members_json(j, &row->stats);
    if (row->counts)
        put_histogram(j, row, bins);
    td_json_end_object(j);
}

void td_stats_rows_json(struct td_json *j, const struct td_stats_rows *r)
{
    td_json_key(j, "tensors");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].error.status == TDBG_OK)
            put_row(j, &r->rows[i], r->bins);
    td_json_end_array(j);
}

void td_stats_skips_json(struct td_json *j, const struct td_stats_rows *r)
{
    char reason[512];
    for (size_t i = 0; i < r->count; i++) {
        const struct td_stats_row *row = &r->rows[i];
        if (row->error.status == TDBG_OK)
            continue;
        td_json_begin_object(j);
        td_json_field_string(j, "path", row->path);
        td_json_field_string(j, "name", row->tensor->name);
        td_json_field_string(j, "reason", td_error_text(&row->error, reason, sizeof reason));
        td_json_end_object(j);
    }
}
