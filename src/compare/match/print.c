/* print.c: see print.h. Only the tokens that are looked at are read, one row at a time. */
#include "compare/match/print.h"

#include "compare/layout/layout.h"
#include "kernel/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row of more elements than this is no token of a model but a picture, and is sampled. */
static const int64_t WIDEST = INT64_C(1) << 19;

/* Views whose elements share bytes are read token by token up to this many elements. */
static const int64_t MOST_SHARED = INT64_C(1) << 18;

/* Rows with fewer elements tell little; a scalar nothing. */
enum { NARROWEST = 2 };

void td_tokens_choose(struct td_tokens *a, struct td_tokens *b, int64_t length_a, int64_t length_b,
                      int64_t batch)
{
    *a = (struct td_tokens){.length = length_a, .batch = batch};
    *b = (struct td_tokens){.length = length_b, .batch = batch};
    int64_t common = length_a < length_b ? length_a : length_b;
    if (common < 2)
        return;
    int count = common - 1 < TD_PRINT_TOKENS ? (int)common - 1 : TD_PRINT_TOKENS;
    for (int i = 0; i < count; i++)
        a->at[i] = b->at[i] = count > 1 ? 1 + i * (common - 2) / (count - 1) : 1; /* up to the last */
    a->count = b->count = count;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* The item with the axis of tokens in front, and of a batch the first sequence alone. Where the batch is
 * joined with the tokens, the first sequence comes first. */
static bool tokens_first(const struct td_item *item, int axis, int batch_axis, struct td_operand *out,
                         struct td_arena *arena)
{
    struct td_steps steps = {0};
    const struct td_shape *shape = &item->parts[0]->shape;
    int ndim = shape->ndim;
    if (batch_axis >= 0) {
        steps.step[steps.count++] = (struct td_step){.kind = TD_STEP_TAKE, .axis = batch_axis, .to = 1};
        axis -= batch_axis < axis;
        ndim--;
    }
    if (axis > 0) {
        struct td_step step = {.kind = TD_STEP_PERMUTE, .list = {.ndim = ndim}};
        step.list.size[0] = axis;
        for (int i = 1; i < ndim; i++)
            step.list.size[i] = i <= axis ? i - 1 : i;
        steps.step[steps.count++] = step;
    }
    return td_operand_make(out, item, &steps, arena, NULL) == TDBG_OK;
}

/* The axis of the batch: in front of all, or right behind the tokens. */
static int find_batch_axis(const struct td_shape *shape, int axis, int64_t batch)
{
    if (batch < 2 || shape->ndim < 2)
        return -1;
    if (axis > 0 && shape->size[0] == batch)
        return 0;
    return axis == 0 && shape->ndim > 2 && shape->size[1] == batch ? 1 : -1;
}

static void add_products(double gram[TD_PRINT_GRAM], const double *const *rows, int n, int64_t channel,
                         double scale)
{
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            gram[at++] += rows[i][channel] * rows[j][channel] * scale;
}

static void fill_grams(struct td_print *p, const double *const *rows)
{
    for (int64_t c = 0; c < p->width; c++) {
        double square = 0;
        for (int i = 0; i < p->rows; i++)
            square += rows[i][c] * rows[i][c];
        if (!(square > 0) || !isfinite(square))
            continue;
        add_products(p->gram, rows, p->rows, c, 1);
        add_products(p->even, rows, p->rows, c, 1 / square);
    }
}

/* Values that are not finite, or far beyond all others as masks are, would drown the rest. */
static double tame(double x)
{
    return isfinite(x) && fabs(x) < 1e30 ? x : 0;
}

static bool keep_values(struct td_print *p, const double *const *rows, struct td_arena *arena)
{
    p->kept = p->width < TD_PRINT_CHANNELS ? (int)p->width : TD_PRINT_CHANNELS;
    p->values = td_arena_array(arena, (size_t)p->rows * (size_t)p->kept + 1, sizeof *p->values);
    if (!p->values)
        return false;
    double square = 0, first = rows[0][0];
    p->constant = true;
    for (int i = 0; i < p->rows; i++)
        for (int k = 0; k < p->kept; k++) {
            double x = rows[i][k * p->width / p->kept];
            p->values[i * p->kept + k] = x;
            p->constant = p->constant && x == first;
            square += x * x;
        }
    p->norm = sqrt(square);
    return true;
}

static bool finish(struct td_print *p, double *buffer, struct td_arena *arena)
{
    const double *rows[TD_PRINT_TOKENS];
    for (int i = 0; i < p->rows; i++)
        rows[i] = buffer + i * p->width;
    for (int64_t i = 0; i < p->rows * p->width; i++)
        buffer[i] = tame(buffer[i]);
    fill_grams(p, rows);
    return keep_values(p, rows, arena);
}

static bool read_tokens(struct td_print *out, const struct td_item *item, int axis,
                        const struct td_tokens *tokens, struct td_arena *arena)
{
    struct td_arena scratch;
    struct td_operand o;
    const struct td_shape *shape = &item->parts[0]->shape;
    int batch_axis = shape->size[axis] == tokens->length ? find_batch_axis(shape, axis, tokens->batch) : -1;
    *out = (struct td_print){.rows = tokens->count};
    out->width = item->parts[0]->count / shape->size[axis];
    if (batch_axis >= 0)
        out->width /= tokens->batch;
    if (out->width < NARROWEST || out->width > WIDEST)
        return false;
    double *buffer = malloc((size_t)out->rows * (size_t)out->width * sizeof *buffer);
    td_arena_init(&scratch, TD_MAX_METADATA);
    bool ok = buffer && tokens_first(item, axis, batch_axis, &o, &scratch);
    for (int i = 0; ok && i < out->rows; i++)
        ok = td_operand_load(&o, tokens->at[i] * out->width, out->width, buffer + i * out->width, NULL) ==
             TDBG_OK;
    ok = ok && finish(out, buffer, arena);
    td_arena_release(&scratch);
    free(buffer);
    return ok;
}

/* All elements, or a sample of them: one row. */
static bool read_flat(struct td_print *out, const struct td_item *item, struct td_arena *arena)
{
    struct td_arena scratch;
    struct td_operand o;
    struct td_steps none = {0};
    int64_t count = item->parts[0]->count, indices[TD_PRINT_CHANNELS];
    double values[TD_PRINT_CHANNELS];
    int n = count < TD_PRINT_CHANNELS ? (int)count : TD_PRINT_CHANNELS;
    *out = (struct td_print){.rows = 1, .width = count};
    if (count < NARROWEST)
        return false;
    for (int i = 0; i < n; i++)
        indices[i] = (int64_t)((double)count * i / n);
    td_arena_init(&scratch, TD_MAX_METADATA);
    bool ok = td_operand_make(&o, item, &none, &scratch, NULL) == TDBG_OK &&
              td_operand_gather(&o, indices, n, values, NULL) == TDBG_OK;
    td_arena_release(&scratch);
    if (!ok)
        return false;
    out->width = n;
    ok = finish(out, values, arena);
    out->width = count;
    return ok;
}

/* The axis holds the tokens, or the tokens of all sequences. */
static bool may_hold_tokens(const struct td_tokens *tokens, int64_t size)
{
    return size == tokens->length || (tokens->batch > 1 && size == tokens->batch * tokens->length);
}

struct td_print_cost td_print_cost(const struct td_item *item, const struct td_tokens *tokens)
{
    const struct td_shape *shape = &item->parts[0]->shape;
    struct td_print_cost cost = {TD_PRINT_CHANNELS, TD_PRINT_CHANNELS};
    int readings = 0;
    /* A few bytes can pose as rows without end. */
    bool walked = item->parts[0]->count <= MOST_SHARED || !td_view_overlaps(&item->parts[0]->view);
    for (int axis = 0; walked && tokens->count && axis < shape->ndim && readings < TD_PRINT_READINGS;
         axis++) {
        int64_t width = shape->size[axis] > 0 ? item->parts[0]->count / shape->size[axis] : 0;
        if (!may_hold_tokens(tokens, shape->size[axis]) || width / tokens->batch > WIDEST)
            continue;
        width = width < WIDEST ? width : WIDEST;
        cost.read += tokens->count * width;
        cost.kept += tokens->count * (width < TD_PRINT_CHANNELS ? width : TD_PRINT_CHANNELS);
        readings++;
    }
    return cost;
}

int td_print_take(struct td_print out[TD_PRINT_READINGS], const struct td_item *item,
                  const struct td_tokens *tokens, struct td_arena *arena)
{
    const struct td_shape *shape = &item->parts[0]->shape;
    int readings = 0;
    if (item->part_count != 1 || (td_tensor_is_dense(item->parts[0]) && !item->parts[0]->view.data))
        return 0;
    /* A few bytes can pose as rows without end. */
    bool walked = item->parts[0]->count <= MOST_SHARED || !td_view_overlaps(&item->parts[0]->view);
    for (int axis = 0; walked && tokens->count && axis < shape->ndim && readings < TD_PRINT_READINGS; axis++)
        if (may_hold_tokens(tokens, shape->size[axis]))
            readings += read_tokens(&out[readings], item, axis, tokens, arena);
    if (readings == 0)
        readings = read_flat(&out[0], item, arena);
    return readings;
}

/* --- comparing ------------------------------------------------------------------------------------------ */

/* Without what all tokens have in common: the products of their differences from the mean. */
static void centre(const double *gram, int n, double out[TD_PRINT_GRAM])
{
    double mean[TD_PRINT_TOKENS] = {0}, all = 0;
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++, at++) {
            mean[i] += gram[at] / n;
            if (i != j)
                mean[j] += gram[at] / n;
        }
    for (int i = 0; i < n; i++)
        all += mean[i] / n;
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++, at++)
            out[at] = gram[at] - mean[i] - mean[j] + all;
}

/* How far two centred grams are apart, as a share of what the first has beside a constant diagonal: that is
 * what unrelated channels add up to, the more of them the closer, and it tells nothing. */
static double triangle_error(const double *x, const double *y, int n)
{
    double apart = 0, size = 0, trace = 0;
    for (int i = 0, at = 0; i < n; i++, at += i + 1)
        trace += x[at];
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++, at++) {
            double weight = i == j ? 1 : 2, d = y[at] - x[at];
            double chance = trace / (n - 1) * ((i == j) - 1.0 / n), own = x[at] - chance;
            apart += weight * d * d;
            size += weight * own * own;
        }
    return size > 0 ? sqrt(apart / size) : INFINITY;
}

/* How alike the tokens lie to each other: the correlation of two centred grams. */
static double triangle_likeness(const double *x, const double *y, int n)
{
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++, at++) {
            double weight = i == j ? 1 : 2;
            xy += weight * x[at] * y[at];
            xx += weight * x[at] * x[at];
            yy += weight * y[at] * y[at];
        }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

static void compare_grams(const double *gram_a, const double *even_a, const double *gram_b,
                          const double *even_b, int n, struct td_likeness *out)
{
    double a[TD_PRINT_GRAM], b[TD_PRINT_GRAM];
    centre(gram_a, n, a);
    centre(gram_b, n, b);
    out->gram_error = n > 2 ? triangle_error(a, b, n) : INFINITY;
    centre(even_a, n, a);
    centre(even_b, n, b);
    out->even_error = n > 2 ? triangle_error(a, b, n) : INFINITY;
    out->shape = triangle_likeness(a, b, n);
}

/* The same of the norms of the tokens: a rotation of each token leaves them. */
static double diagonal_error(const double *x, const double *y, int n)
{
    double apart = 0, size = 0;
    for (int i = 0, at = 0; i < n; i++, at += i + 1) {
        double d = sqrt(fmax(y[at], 0)) - sqrt(fmax(x[at], 0));
        apart += d * d;
        size += x[at];
    }
    return size > 0 ? sqrt(apart / size) : INFINITY;
}

static double add_lanes(const double lanes[4])
{
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static void compare_values(const struct td_print *a, const struct td_print *b, int row_a, int row_b, int rows,
                           struct td_likeness *out)
{
    enum { LANES = 4 }; /* of sums that do not wait for each other: most of the time is spent here */
    double sums[4][LANES] = {{0}};
    const double *x = a->values + row_a * a->kept, *y = b->values + row_b * b->kept;
    int count = rows * a->kept;
    for (int i = 0; i < count; i += LANES)
        for (int k = 0; k < LANES && i + k < count; k++) {
            double u = x[i + k], v = y[i + k];
            sums[0][k] += (v - u) * (v - u);
            sums[1][k] += u * u;
            sums[2][k] += v * v;
            sums[3][k] += u * v;
        }
    double apart = add_lanes(sums[0]), aa = add_lanes(sums[1]), bb = add_lanes(sums[2]);
    double ab = add_lanes(sums[3]);
    out->error = aa > 0 ? sqrt(apart / aa) : INFINITY;
    out->cosine = aa > 0 && bb > 0 ? fabs(ab) / sqrt(aa * bb) : 0;
    out->ratio = aa > 0 && bb > 0 ? sqrt(bb / aa) : 1;
    out->count = rows * a->kept;
}

/* One side kept the last token only, as engines do behind their last layer. */
static bool is_last_of(const struct td_print *one, const struct td_print *many)
{
    return one->rows == 1 && many->rows > 1 && one->width == many->width;
}

struct td_likeness td_print_compare(const struct td_print *a, const struct td_print *b)
{
    struct td_likeness out = {INFINITY, INFINITY, INFINITY, INFINITY, 0, 0, 1, 1};
    if (a->constant || b->constant || a->width != b->width || a->kept != b->kept)
        return out;
    if (a->rows == b->rows) {
        compare_values(a, b, 0, 0, a->rows, &out);
        if (a->rows > 1) {
            compare_grams(a->gram, a->even, b->gram, b->even, a->rows, &out);
            out.norm_error = diagonal_error(a->gram, b->gram, a->rows);
        }
    } else if (is_last_of(b, a)) {
        compare_values(a, b, a->rows - 1, 0, 1, &out);
    } else if (is_last_of(a, b)) {
        compare_values(a, b, 0, b->rows - 1, 1, &out);
    }
    return out;
}

struct td_likeness td_print_compare_sum(const struct td_print *whole, const struct td_print *const *parts,
                                        int count)
{
    struct td_likeness out = {INFINITY, INFINITY, INFINITY, INFINITY, 0, 0, 1, 1};
    double sum[TD_PRINT_GRAM] = {0}, even[TD_PRINT_GRAM] = {0};
    for (int p = 0; p < count; p++) {
        if (parts[p]->rows != whole->rows || parts[p]->rows < 2)
            return out;
        for (int i = 0; i < TD_PRINT_GRAM; i++) {
            sum[i] += parts[p]->gram[i];
            even[i] += parts[p]->even[i];
        }
    }
    compare_grams(whole->gram, whole->even, sum, even, whole->rows, &out);
    return out;
}

bool td_print_equal(const struct td_print *a, const struct td_print *b)
{
    return a->rows == b->rows && a->width == b->width && a->kept == b->kept && !a->constant &&
           memcmp(a->values, b->values, (size_t)a->rows * (size_t)a->kept * sizeof *a->values) == 0;
}
