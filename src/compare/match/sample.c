/* sample.c: see sample.h. */
#include "compare/match/sample.h"

#include "compare/layout/layout.h"
#include "kernel/compare.h"

#include <math.h>
#include <string.h>

static const int64_t head_sizes[] = {16, 32, 64, 80, 96, 128, 256};

struct td_shape td_axes_of(const struct td_item *item)
{
    struct td_shape out = {0};
    const struct td_shape *shape = &item->parts[0]->shape;
    for (int i = 0; i < shape->ndim; i++)
        if (shape->size[i] != 1)
            out.size[out.ndim++] = shape->size[i];
    return out;
}

/* --- readings ------------------------------------------------------------------------------------------- */

/* One shape is the other with some neighbouring axes joined. Both have as many elements. */
static bool is_refined(const struct td_shape *a, const struct td_shape *b)
{
    int i = a->ndim - 1, j = b->ndim - 1;
    bool a_splits = false, b_splits = false;
    while (i >= 0 && j >= 0) {
        int64_t x = a->size[i--], y = b->size[j--];
        while (x != y) {
            if (x < y && i >= 0 && !b_splits) {
                x *= a->size[i--];
                a_splits = true;
            } else if (y < x && j >= 0 && !a_splits) {
                y *= b->size[j--];
                b_splits = true;
            } else {
                return false;
            }
            if (a_splits && b_splits)
                return false;
        }
    }
    return i < 0 && j < 0;
}

struct list {
    struct td_reading_of *readings;
    int count;
};

static void add(struct list *l, const struct td_shape *a, const struct td_shape *b, const int *order)
{
    struct td_reading_of r = {.head = 0};
    struct td_shape turned = {.ndim = b->ndim};
    for (int i = 0; i < b->ndim; i++) {
        r.order[i] = order[i];
        turned.size[i] = b->size[order[i]];
    }
    if (!is_refined(a, &turned) || l->count == TD_SAMPLE_READINGS)
        return;
    l->readings[l->count++] = r;
    int64_t rows = b->ndim > 0 ? turned.size[0] : 0;
    for (size_t h = 0; b->ndim <= 2 && h < sizeof head_sizes / sizeof *head_sizes; h++)
        for (int inverse = 0; inverse < 2 && rows % head_sizes[h] == 0; inverse++) {
            if (l->count == TD_SAMPLE_READINGS)
                return;
            r.head = head_sizes[h];
            r.inverse = inverse;
            l->readings[l->count++] = r;
        }
}

/* Orders in which frameworks keep the axes of matrices, attention by heads, and convolutions. */
int td_readings_of(struct td_reading_of out[TD_SAMPLE_READINGS], const struct td_shape *a,
                   const struct td_shape *b)
{
    static const int two[][2] = {{0, 1}, {1, 0}};
    static const int three[][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
    static const int four[][4] = {{0, 1, 2, 3}, {3, 2, 0, 1}, {2, 3, 1, 0}, {0, 3, 1, 2},
                                  {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 2, 3}};
    int same[TD_MAX_DIMS];
    struct list l = {.readings = out};
    for (int i = 0; i < TD_MAX_DIMS; i++)
        same[i] = i;
    if (b->ndim == 2)
        for (size_t i = 0; i < sizeof two / sizeof *two; i++)
            add(&l, a, b, two[i]);
    else if (b->ndim == 3)
        for (size_t i = 0; i < sizeof three / sizeof *three; i++)
            add(&l, a, b, three[i]);
    else if (b->ndim == 4)
        for (size_t i = 0; i < sizeof four / sizeof *four; i++)
            add(&l, a, b, four[i]);
    else
        add(&l, a, b, same);
    return l.count;
}

/* --- values --------------------------------------------------------------------------------------------- */

/* Position k of a tensor of `count` elements: spread evenly, and in no step with its rows. */
static int64_t position(int64_t count, int k)
{
    static const double golden = 0.6180339887498949;
    if (count <= TD_SAMPLE_POINTS)
        return k;
    double at = (k + 1) * golden;
    int64_t index = (int64_t)((at - floor(at)) * (double)count);
    return index < count ? index : count - 1;
}

/* In B, of a row that is `row` in A. */
static int64_t row_in_b(int64_t row, int64_t head, bool inverse)
{
    int64_t within = row % head, half = head / 2;
    int64_t moved = inverse ? within / 2 + (within % 2) * half : 2 * (within % half) + within / half;
    return row - within + moved;
}

static int64_t place_in(const struct td_shape *axes, const struct td_reading_of *r, int64_t index)
{
    int64_t at[TD_MAX_DIMS] = {0}, place = 0;
    for (int i = axes->ndim - 1; i >= 0; i--) {
        int64_t size = axes->size[r->order[i]], x = index % size;
        index /= size;
        at[r->order[i]] = i == 0 && r->head ? row_in_b(x, r->head, r->inverse) : x;
    }
    for (int i = 0; i < axes->ndim; i++)
        place = place * axes->size[i] + at[i];
    return place;
}

static bool gather(struct td_sample *out, const struct td_item *item, const int64_t *places, int count,
                   struct td_arena *arena)
{
    struct td_arena scratch;
    struct td_operand o;
    struct td_steps none = {0};
    double values[TD_SAMPLE_POINTS];
    *out = (struct td_sample){.count = count, .constant = true};
    td_arena_init(&scratch, TD_MAX_METADATA);
    bool ok = td_operand_make(&o, item, &none, &scratch, NULL) == TDBG_OK &&
              td_operand_gather(&o, places, count, values, NULL) == TDBG_OK;
    td_arena_release(&scratch);
    out->values = ok ? td_arena_array(arena, (size_t)count + 1, sizeof *out->values) : NULL;
    if (!out->values)
        return false;
    for (int i = 0; i < count; i++) {
        double x = isfinite(values[i]) && fabs(values[i]) < 1e30 ? values[i] : 0;
        out->values[i] = (float)x;
        out->mean += x / count;
        out->constant = out->constant && values[i] == values[0];
    }
    double square = 0;
    for (int i = 0; i < count; i++)
        square += (out->values[i] - out->mean) * (out->values[i] - out->mean);
    out->spread = sqrt(square);
    return true;
}

static bool can_read(const struct td_item *item)
{
    return item->part_count == 1 && item->parts[0]->count > 0 &&
           (!td_tensor_is_dense(item->parts[0]) || item->parts[0]->view.data);
}

bool td_sample_take(struct td_sample *out, const struct td_item *item, const struct td_reading_of *reading,
                    struct td_arena *arena)
{
    if (!can_read(item))
        return false;
    int64_t places[TD_SAMPLE_POINTS], all = item->parts[0]->count;
    int count = all < TD_SAMPLE_POINTS ? (int)all : TD_SAMPLE_POINTS;
    struct td_shape axes = td_axes_of(item);
    for (int k = 0; k < count; k++) {
        int64_t index = position(all, k);
        places[k] = reading ? place_in(&axes, reading, index) : index;
    }
    return gather(out, item, places, count, arena);
}

bool td_sample_cut(struct td_sample *out, const struct td_item *part, const struct td_item *whole,
                   const struct td_cut_of *cut, struct td_arena *arena)
{
    if (!can_read(part) || !can_read(whole))
        return false;
    struct td_shape p = td_axes_of(part), w = td_axes_of(whole);
    int64_t places[TD_SAMPLE_POINTS], all = part->parts[0]->count;
    int count = all < TD_SAMPLE_POINTS ? (int)all : TD_SAMPLE_POINTS;
    int64_t rows = p.size[cut->part_turned], rows_of_whole = w.size[cut->whole_turned], columns = all / rows;
    int64_t run = rows / cut->groups, period = rows_of_whole / cut->groups;
    for (int k = 0; k < count; k++) {
        int64_t index = position(all, k);
        int64_t row = cut->part_turned ? index % rows : index / columns;
        int64_t column = cut->part_turned ? index / rows : index % columns;
        int64_t there = row / run * period + cut->offset + row % run;
        places[k] = cut->whole_turned ? column * rows_of_whole + there : there * columns + column;
    }
    return gather(out, whole, places, count, arena);
}

double td_sample_correlation(const struct td_sample *a, const struct td_sample *b)
{
    if (a->constant || b->constant || a->count != b->count || !(a->spread > 0) || !(b->spread > 0))
        return 0;
    double sum = 0;
    for (int i = 0; i < a->count; i++)
        sum += (a->values[i] - a->mean) * (b->values[i] - b->mean);
    return sum / (a->spread * b->spread);
}

double td_sample_error(const struct td_sample *a, const struct td_sample *b)
{
    double apart = 0, size = 0;
    for (int i = 0; i < a->count && a->count == b->count; i++) {
        double x = a->values[i], d = x - b->values[i];
        apart += d * d;
        size += x * x;
    }
    return size > 0 ? sqrt(apart / size) : INFINITY;
}
