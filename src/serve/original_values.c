/* original_values.c: the values of a match: one index for each axis, and `count` values along the last.
 *
 * Two ways to look: both sides in the layout of the comparison, by the same indices; or each side as it is
 * stored, by indices of its own. Indices out of range are moved into it, missing ones are 0. The request that
 * sliders send is the one that must be fast: nothing on its way is computed but the values it shows. Where
 * the largest difference is was found when the two were compared.
 */
#include "serve/original.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values of one side in one answer; its page asks for 100, more than this is what /api/v1 has binary for. */
enum { MAX_VALUES = 1 << 20 };

enum { DEFAULT_COUNT = 10, SMALL = 256, INFO_PER_AXIS = 64 };

struct indices {
    int64_t at[TD_MAX_DIMS];
    int given; /* how many the request has; those beyond TD_MAX_DIMS are counted, not kept */
};

/* What is shown of one side. */
struct part {
    struct td_slice slice;
    char info[TD_MAX_DIMS * INFO_PER_AXIS];
    int64_t count;
    double small[SMALL];
    double *values; /* small, or its own */
};

/* --- what is asked for ---------------------------------------------------------------------------------- */

static bool read_indices(struct td_exchange *x, const char *key, struct indices *out)
{
    const json_t *list = json_object_get(x->body, key);
    out->given = 0;
    if (!list)
        return true;
    bool good = json_is_array(list) && json_array_size(list) <= INT32_MAX;
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        good = json_is_integer(value);
        if (i < TD_MAX_DIMS)
            out->at[i] = json_integer_value(value);
        out->given++;
    }
    if (!good)
        td_answer_error(x, 400, "%s must be a list of whole numbers", key);
    return good;
}

static bool read_count(struct td_exchange *x, int64_t *out)
{
    static const int64_t otherwise = DEFAULT_COUNT;
    return td_body_int(x, "count", 0, INT64_MAX, &otherwise, out);
}

static int64_t clamp(int64_t index, int64_t size)
{
    return index < 0 || size == 0 ? 0 : index < size ? index : size - 1;
}

/* The row of a shape with one axis or more that the indices point at, `count` values long or shorter. */
static void select_row(struct part *p, const struct td_shape *shape, const struct indices *indices,
                       int64_t count)
{
    int last = shape->ndim - 1;
    struct td_slice *s = &p->slice;
    bool empty = false;
    s->ndim = shape->ndim;
    for (int i = 0; i <= last; i++) {
        int64_t size = shape->size[i], at = clamp(i < indices->given ? indices->at[i] : 0, size);
        int64_t room = i == last ? size - at : 1;
        s->axis[i] = (struct td_slice_axis){
            .start = at, .step = 1, .count = i == last && count < room ? count : room, .dropped = i != last};
        empty = empty || size == 0;
    }
    p->count = s->count = empty ? 0 : s->axis[last].count;
    s->shape = (struct td_shape){.ndim = 1, .size = {s->count}};
}

/* "dim0[5] × dim1[12:28]" */
static void describe_row(struct part *p)
{
    char *at = p->info;
    for (int i = 0; i < p->slice.ndim; i++) {
        const struct td_slice_axis *axis = &p->slice.axis[i];
        at = stpcpy(at, i ? " × dim" : "dim");
        at += td_number_int(at, i);
        at = stpcpy(at, "[");
        at += td_number_int(at, axis->start);
        if (!axis->dropped) {
            at = stpcpy(at, ":");
            at += td_number_int(at, axis->start + p->count);
        }
        at = stpcpy(at, "]");
    }
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static tdbg_status part_room(struct part *p, struct tdbg_error *error)
{
    p->values = NULL;
    if (p->count > MAX_VALUES)
        return td_fail(error, TDBG_MISUSE, "at most %d values at once, not %" PRId64, MAX_VALUES, p->count);
    p->values = p->count <= SMALL ? p->small : malloc((size_t)p->count * sizeof *p->values);
    return p->values ? TDBG_OK : td_fail_nomem(error);
}

static void part_release(struct part *p)
{
    if (p->values != p->small)
        free(p->values);
}

static void put_values(struct td_json *j, const char *key, const double *values, int64_t count)
{
    td_json_key(j, key);
    if (!values) {
        td_json_null(j);
        return;
    }
    td_json_begin_array(j);
    for (int64_t i = 0; i < count; i++)
        td_json_number(j, values[i]);
    td_json_end_array(j);
}

/* --- both by the same indices --------------------------------------------------------------------------- */

static void put_argmax(struct td_json *j, const struct td_subject *s, bool wanted)
{
    int64_t flat = wanted && s->pair && td_pair_measured(s->pair) && s->shape.ndim > 0
                       ? s->pair->outcome.metrics.argmax
                       : -1;
    int64_t at[TD_MAX_DIMS];
    td_json_key(j, "argmax_index");
    s->shape.ndim == 1 && flat >= 0 ? td_json_int(j, flat) : td_json_null(j);
    td_json_key(j, "argmax_coordinates");
    if (flat < 0) {
        td_json_null(j);
        return;
    }
    for (int i = s->shape.ndim - 1; i >= 0; i--) {
        at[i] = flat % s->shape.size[i];
        flat /= s->shape.size[i];
    }
    td_json_ints(j, at, (size_t)s->shape.ndim);
}

static tdbg_status put_both(struct td_json *j, const struct td_subject *s, struct part *p,
                            struct tdbg_error *error)
{
    static const char *const keys[] = {"tensor1_values", "tensor2_values"};
    tdbg_status status = part_room(p, error);
    for (int side = 0; side < 2 && status == TDBG_OK; side++) {
        if (s->has[side] && p->count > 0)
            status = td_subject_values(s, side, &p->slice, p->values, error);
        put_values(j, keys[side], s->has[side] ? p->values : NULL, p->count);
    }
    part_release(p);
    return status;
}

static tdbg_status put_row(struct td_json *j, const struct td_subject *s, const struct indices *indices,
                           int64_t count, bool argmax, struct tdbg_error *error)
{
    struct part p;
    char type[32];
    if (s->shape.ndim == 0) {
        p.slice = (struct td_slice){.count = 1};
        p.count = 1;
        snprintf(type, sizeof type, "scalar");
        snprintf(p.info, sizeof p.info, "Scalar value");
    } else {
        select_row(&p, &s->shape, indices, count);
        if (s->shape.ndim == 1) {
            snprintf(type, sizeof type, "1D tensor");
            snprintf(p.info, sizeof p.info, "Values %" PRId64 " to %" PRId64, p.slice.axis[0].start,
                     p.slice.axis[0].start + p.count - 1);
        } else {
            snprintf(type, sizeof type, "%dD tensor slice", s->shape.ndim);
            describe_row(&p);
        }
    }
    TD_TRY(put_both(j, s, &p, error));
    td_put_shape(j, "tensor_shape", &s->shape);
    td_json_field_string(j, "display_type", type);
    put_argmax(j, s, argmax);
    td_json_field_string(j, "slice_info", p.info);
    return TDBG_OK;
}

/* An object where the layout changed a shape, else a list: that is how its page tells. */
static void put_original_shapes(struct td_json *j, const struct td_subject *s)
{
    const struct td_shape *own[2];
    bool changed = false;
    for (int side = 0; side < 2; side++) {
        own[side] = s->has[side] ? &s->items[side]->parts[0]->shape : NULL;
        changed = changed || (own[side] && (own[side]->ndim != s->shape.ndim ||
                                            memcmp(own[side]->size, s->shape.size,
                                                   (size_t)s->shape.ndim * sizeof *s->shape.size) != 0));
    }
    td_json_key(j, "original_shapes");
    if (changed) {
        td_json_begin_object(j);
        td_put_shape(j, "shape1", own[0]);
        td_put_shape(j, "shape2", own[1]);
        td_json_end_object(j);
        return;
    }
    td_json_begin_array(j);
    for (int side = 0; side < 2; side++)
        own[side] ? td_json_ints(j, own[side]->size, (size_t)own[side]->ndim) : td_json_null(j);
    td_json_end_array(j);
}

static void put_final_shape(struct td_json *j, const struct td_subject *s)
{
    char type[32];
    snprintf(type, sizeof type, "%dD tensor", s->shape.ndim);
    td_put_shape(j, "tensor_shape", &s->shape);
    put_original_shapes(j, s);
    td_json_field_string(j, "display_type", type);
    td_json_field_string(j, "slice_info", "Shape information only");
}

void td_original_values(struct td_exchange *x)
{
    struct td_listing listing;
    struct indices indices;
    int64_t count;
    size_t position;
    if (!td_body_is_object(x) || !read_indices(x, "dimension_indices", &indices) || !read_count(x, &count) ||
        !td_listing_open(&listing, x))
        return;
    if (td_body_match(x, &listing, &position)) {
        const struct td_subject *subject;
        struct tdbg_error error;
        struct td_buffer body;
        struct td_json j;
        td_buffer_init(&body, SIZE_MAX);
        td_json_to_buffer(&j, &body);
        tdbg_status status = td_listing_subject(&listing, position, &subject, &error);
        td_json_begin_object(&j);
        if (status == TDBG_OK && json_is_true(json_object_get(x->body, "get_final_shape")))
            put_final_shape(&j, subject);
        else if (status == TDBG_OK)
            status = put_row(&j, subject, &indices, count,
                             json_is_true(json_object_get(x->body, "get_argmax")), &error);
        td_json_end_object(&j);
        td_answer_written(x, &j, &body, status, &error);
    }
    td_listing_close(&listing);
}

/* --- each by its own indices ---------------------------------------------------------------------------- */

void td_original_shapes(struct td_exchange *x)
{
    struct td_listing listing;
    size_t position;
    if (!td_body_is_object(x) || !td_listing_open(&listing, x))
        return;
    if (td_body_match(x, &listing, &position)) {
        const struct td_pair *p;
        struct tdbg_error error;
        struct td_buffer body;
        struct td_json j;
        td_buffer_init(&body, SIZE_MAX);
        td_json_to_buffer(&j, &body);
        tdbg_status status = td_listing_pair(&listing, position, &p, &error);
        if (status == TDBG_OK) {
            td_json_begin_object(&j);
            td_put_shape(&j, "tensor1_shape", p->a ? &p->a->parts[0]->shape : NULL);
            td_json_field_string(&j, "tensor1_name", p->a ? p->a->name : NULL);
            td_put_shape(&j, "tensor2_shape", p->b ? &p->b->parts[0]->shape : NULL);
            td_json_field_string(&j, "tensor2_name", p->b ? p->b->name : NULL);
            td_json_end_object(&j);
        }
        td_answer_written(x, &j, &body, status, &error);
    }
    td_listing_close(&listing);
}

/* The row that the indices point at; without them, or with too few or too many, the first values of all. */
static tdbg_status read_part(struct part *p, const struct td_tensor *tensor, const struct indices *indices,
                             int64_t count, struct tdbg_error *error)
{
    struct td_subject s;
    bool row = tensor->shape.ndim > 0 && indices->given == tensor->shape.ndim;
    p->values = NULL;
    if (row) {
        select_row(p, &tensor->shape, indices, count);
        describe_row(p);
    } else {
        p->count = tensor->shape.ndim == 0 || count > tensor->count ? tensor->count : count;
        if (tensor->shape.ndim == 0)
            snprintf(p->info, sizeof p->info, "scalar");
        else if (indices->given == 0)
            snprintf(p->info, sizeof p->info, "flattened[0:%" PRId64 "]", p->count);
        else
            snprintf(p->info, sizeof p->info, "fallback_flattened");
    }
    TD_TRY(part_room(p, error));
    TD_TRY(td_subject_of_tensor(&s, tensor, error));
    tdbg_status status = TDBG_OK;
    if (p->count > 0 && row)
        status = td_subject_values(&s, 0, &p->slice, p->values, error);
    else if (p->count > 0)
        status = td_access_run(&s.side[0].access, 0, p->count, p->values, error);
    if (status == TDBG_OK)
        status = td_subject_verify(&s, error);
    td_subject_release(&s);
    return status;
}

static void put_part_stats(struct td_json *j, const char *key, const struct tdbg_stats *s)
{
    td_json_key(j, key);
    td_json_begin_object(j);
    td_put_finite(j, "mean", s->mean);
    td_put_finite(j, "std", s->std);
    td_put_finite(j, "min", s->min);
    td_put_finite(j, "max", s->max);
    td_json_end_object(j);
}

/* Over as many values as both have. */
static tdbg_status put_summary(struct td_json *j, const struct part *a, const struct part *b,
                               struct tdbg_error *error)
{
    static const double same = 1e-6; /* what its page calls identical */
    int64_t count = a->count < b->count ? a->count : b->count;
    struct td_metrics m;
    TD_TRY(td_measure_doubles(a->values, b->values, count, &m, error));
    bool shared = td_metrics_lost(&m) == 0;
    td_json_begin_object(j);
    put_part_stats(j, "tensor1_stats", &m.a);
    put_part_stats(j, "tensor2_stats", &m.b);
    td_json_key(j, "difference_stats");
    td_json_begin_object(j);
    td_put_finite(j, "abs_diff_mean", m.mean_abs);
    td_put_finite(j, "abs_diff_max", m.max_abs);
    td_put_finite(j, "rel_diff_mean", m.mean_rel);
    td_put_finite(j, "mse", m.mse);
    td_json_field_number(j, "cosine_sim", isfinite(m.cosine) ? m.cosine : 1);
    td_json_end_object(j);
    td_json_key(j, "comparison_info");
    td_json_begin_object(j);
    td_json_field_int(j, "elements_compared", count);
    td_json_field_bool(j, "shapes_match", a->count == b->count);
    td_json_field_bool(j, "values_identical", shared && !(m.max_abs >= same));
    td_json_end_object(j);
    td_json_end_object(j);
    return TDBG_OK;
}

static tdbg_status put_mapped(struct td_json *j, const struct td_pair *pair, const struct indices *indices,
                              int64_t count, struct part *parts, struct tdbg_error *error)
{
    static const char *const keys[][2] = {{"tensor1_values", "tensor1_slice_info"},
                                          {"tensor2_values", "tensor2_slice_info"}};
    const struct td_item *items[] = {pair->a, pair->b};
    td_json_begin_object(j);
    for (int side = 0; side < 2; side++) {
        struct part *p = &parts[side];
        if (items[side])
            TD_TRY(read_part(p, items[side]->parts[0], &indices[side], count, error));
        put_values(j, keys[side][0], items[side] ? p->values : NULL, p->count);
        td_json_field_string(j, keys[side][1], items[side] ? p->info : NULL);
    }
    td_json_key(j, "summary_stats");
    if (pair->a && pair->b)
        TD_TRY(put_summary(j, &parts[0], &parts[1], error));
    else
        td_json_null(j);
    td_json_end_object(j);
    return TDBG_OK;
}

void td_original_mapped(struct td_exchange *x)
{
    struct td_listing listing;
    struct indices indices[2];
    int64_t count;
    size_t position;
    if (!td_body_is_object(x) || !read_indices(x, "tensor1_indices", &indices[0]) ||
        !read_indices(x, "tensor2_indices", &indices[1]) || !read_count(x, &count) ||
        !td_listing_open(&listing, x))
        return;
    if (td_body_match(x, &listing, &position)) {
        struct part parts[2] = {0};
        const struct td_pair *pair;
        struct tdbg_error error;
        struct td_buffer body;
        struct td_json j;
        td_buffer_init(&body, SIZE_MAX);
        td_json_to_buffer(&j, &body);
        tdbg_status status = td_listing_pair(&listing, position, &pair, &error);
        if (status == TDBG_OK)
            status = put_mapped(&j, pair, indices, count, parts, &error);
        td_answer_written(x, &j, &body, status, &error);
        part_release(&parts[0]);
        part_release(&parts[1]);
    }
    td_listing_close(&listing);
}
