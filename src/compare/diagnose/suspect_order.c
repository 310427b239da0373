/* suspect_order.c: the right values in the wrong places: shifted, permuted, transposed, the two halves of a
 * rotary embedding interleaved.
 *
 * All work the same way: a map from B's index to A's is guessed from a few values and then checked on all.
 */
#include "compare/diagnose/evidence.h"
#include "compare/layout/slabs.h"

#include "kernel/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* |b[k] - a[map[k]]|^2 summed over the axis; map[k] < 0 leaves slab k out. Beyond `most` the rest of it does
 * not matter. */
static double rest_of_map(const struct td_evidence *e, const struct td_slabs *s, const int64_t *map,
                          double most)
{
    double rest = 0;
    for (int64_t o = 0; o < s->outer && rest <= most; o++)
        for (int64_t k = 0; k < s->size && rest <= most; k++) {
            if (map[k] < 0)
                continue;
            const double *b = e->b + (o * s->size + k) * s->inner,
                         *a = e->a + (o * s->size + map[k]) * s->inner;
            for (int64_t i = 0; i < s->inner; i++)
                rest += (b[i] - a[i]) * (b[i] - a[i]);
        }
    return rest;
}

/* |b[k] - a[k - shift]|^2 summed over those slabs k that have one; the slabs of one row lie side by side. */
static double rest_of_shift(const struct td_evidence *e, const struct td_slabs *s, int64_t shift, double most)
{
    enum { PIECE = 4096 };
    int64_t kept = (s->size - (shift < 0 ? -shift : shift)) * s->inner;
    double rest = 0;
    for (int64_t o = 0; o < s->outer && rest <= most; o++) {
        const double *b = e->b + (o * s->size + (shift > 0 ? shift : 0)) * s->inner;
        const double *a = e->a + (o * s->size - (shift < 0 ? shift : 0)) * s->inner;
        for (int64_t at = 0; at < kept && rest <= most; at += PIECE)
            for (int64_t i = at; i < kept && i < at + PIECE; i++)
                rest += (b[i] - a[i]) * (b[i] - a[i]);
    }
    return rest;
}

/* --- matching slabs ------------------------------------------------------------------------------------- */

/* Every slab is held against every other; but only a few at first. */
enum { MAX_SLABS = 2048, MIN_SLABS = 256, FEW_SLABS = 32 };

static void take_print(const double *x, const struct td_slabs *s, int64_t k, double *print)
{
    for (int p = 0; p < TD_SLAB_PROBES; p++)
        print[p] = x[td_slab_probe(s, k, p)];
}

static double distance(const double *x, const double *y, double most)
{
    double sum = 0;
    for (int p = 0; p < TD_SLAB_PROBES && sum <= most; p++)
        sum += (y[p] - x[p]) * (y[p] - x[p]);
    return sum;
}

/* Whether these slabs of B are none of A: their nearest leave most of what there is to explain at the places
 * of their prints. */
static bool are_strangers(int64_t size, const double *a, const double *b, const int64_t *slabs)
{
    double left = 0, power_b = 0, power_d = 0;
    for (int f = 0; f < FEW_SLABS; f++) {
        const double *mine = b + slabs[f] * TD_SLAB_PROBES;
        double nearest = distance(a + slabs[f] * TD_SLAB_PROBES, mine, INFINITY);
        power_d += nearest;
        power_b += td_dot(mine, mine, TD_SLAB_PROBES);
        for (int64_t j = 0; j < size; j++)
            nearest = fmin(nearest, distance(a + j * TD_SLAB_PROBES, mine, nearest));
        left += nearest;
    }
    return left > 0.75 * fmin(power_b, power_d);
}

/* Those that differ most from what A has at their place; `error` is used up. */
static void find_worst(int64_t size, double *error, int64_t *slabs)
{
    for (int f = 0; f < FEW_SLABS; f++) {
        slabs[f] = 0;
        for (int64_t k = 1; k < size; k++)
            if (error[k] > error[slabs[f]])
                slabs[f] = k;
        error[slabs[f]] = -1;
    }
}

/* Whether a look at a few slabs tells that B's are not A's in another order: neither those that are spread
 * evenly nor those that differ most, as a few do that moved among many. */
static bool are_others(int64_t size, const double *a, const double *b)
{
    int64_t slabs[FEW_SLABS];
    double error[MAX_SLABS];
    if (size < MIN_SLABS)
        return false;
    for (int f = 0; f < FEW_SLABS; f++)
        slabs[f] = f * size / FEW_SLABS;
    if (!are_strangers(size, a, b, slabs))
        return false;
    for (int64_t k = 0; k < size; k++)
        error[k] = distance(a + k * TD_SLAB_PROBES, b + k * TD_SLAB_PROBES, INFINITY);
    find_worst(size, error, slabs);
    return are_strangers(size, a, b, slabs);
}

/* map[k]: the slab of A that is B's slab k. */
static bool match_slabs(struct td_evidence *e, const struct td_slabs *s, int64_t *map)
{
    if (s->size < 2 || s->size > MAX_SLABS || s->outer * s->inner < 2)
        return false;
    double *a = malloc((size_t)s->size * TD_SLAB_PROBES * 2 * sizeof *a), *b = a + s->size * TD_SLAB_PROBES;
    bool matched = false;
    e->starved |= !a;
    for (int64_t k = 0; a && k < s->size; k++) {
        take_print(e->a, s, k, a + k * TD_SLAB_PROBES);
        take_print(e->b, s, k, b + k * TD_SLAB_PROBES);
    }
    if (a && !are_others(s->size, a, b))
        matched = td_slabs_match(a, b, s->size, map);
    free(a);
    return matched;
}

static int64_t constant_shift(const int64_t *map, int64_t n)
{
    int64_t shift = (n - map[0]) % n; /* b[k] = a[k - shift] */
    for (int64_t k = 0; k < n; k++)
        if (map[k] != (k - shift + n) % n)
            return 0;
    return shift;
}

static void print_map(const int64_t *map, int64_t n, int64_t origin, char *out, size_t size)
{
    int64_t shift = constant_shift(map, n), swapped = -1, moved = 0;
    bool reversed = true;
    for (int64_t k = 0; k < n; k++) {
        reversed = reversed && map[k] == n - 1 - k;
        if (map[k] != k) {
            moved++;
            if (swapped < 0)
                swapped = k;
        }
    }
    if (shift)
        snprintf(out, size, "rolled by %lld", (long long)(shift <= n / 2 ? shift : shift - n));
    else if (reversed)
        snprintf(out, size, "in reverse order");
    else if (moved == 2)
        snprintf(out, size, "%lld and %lld exchanged", (long long)(origin + swapped),
                 (long long)(origin + map[swapped]));
    else
        snprintf(out, size, "%lld of %lld moved; B's %s four are A's %lld, %lld, %lld, %lld",
                 (long long)moved, (long long)n, origin ? "next" : "first", (long long)(origin + map[0]),
                 (long long)(origin + map[1 % n]), (long long)(origin + map[2 % n]),
                 (long long)(origin + map[3 % n]));
}

/* A roll of the sequence, of the channels or of the rows of a weight is a shift; heads have no order to shift
 * along. */
static bool is_ordered(const struct td_evidence *e, int axis)
{
    return axis == e->token_axis || axis == e->shape.ndim - 1 || (axis == 0 && e->c->item_a->parameter);
}

static bool whole_heads(const struct td_evidence *e, const int64_t *map, int64_t n)
{
    int64_t shift = constant_shift(map, n);
    for (int h = 0; h < e->c->heads->count && !e->c->heads->guessed; h++)
        if (n > e->c->heads->size[h] && shift % e->c->heads->size[h] == 0)
            return true;
    return false;
}

static void suspect_permuted(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    struct td_slabs s = td_slabs_of(&e->shape, axis);
    int64_t *map = s.size <= MAX_SLABS ? calloc((size_t)s.size + 1, sizeof *map) : NULL;
    if (map && match_slabs(e, &s, map)) {
        bool roll = constant_shift(map, s.size) != 0 && is_ordered(e, axis) &&
                    !(axis != e->token_axis && whole_heads(e, map, s.size));
        char text[128];
        print_map(map, s.size, e->origin[axis], text, sizeof text);
        double rest = rest_of_map(e, &s, map, td_most_left(e));
        td_enter(e, d, roll ? TD_IS_SHIFT : TD_IS_PERMUTATION, rest, 1,
                 "%.1f %% explained by axis %d (%s) %s", 100 * td_explained(e, rest), axis,
                 td_axis_plural(e, axis), text);
    }
    free(map);
}

/* error[k]: |b[k] - a[k]|^2 of slab k. */
static void slab_errors(const struct td_evidence *e, const struct td_slabs *s, double *error)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < s->size; k++) {
            int64_t at = (o * s->size + k) * s->inner;
            for (int64_t i = at; i < at + s->inner; i++)
                error[k] += (e->b[i] - e->a[i]) * (e->b[i] - e->a[i]);
        }
}

/* A shift that does not wrap around: what falls out at one end is lost, the other end is new. The new end
 * proves nothing, so the shift is judged by the share of the error it explains in the rest: an error that
 * sits in the new end alone is explained by no shift. */
static void suspect_shift(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    struct td_slabs s = td_slabs_of(&e->shape, axis);
    const int64_t reach = s.size / 2 < 8 ? s.size / 2 : 8;
    double *error = s.size < 4 ? NULL : calloc((size_t)s.size, sizeof *error), middle = 0;
    if (!error) {
        e->starved |= s.size >= 4;
        return;
    }
    slab_errors(e, &s, error);
    for (int64_t k = reach; k < s.size - reach; k++)
        middle += error[k];
    for (int64_t shift = -reach; shift <= reach; shift++) {
        if (shift == 0)
            continue;
        double kept = middle;
        for (int64_t k = 0; k < reach; k++) {
            kept += k >= shift ? error[k] : 0;
            kept += k >= -shift ? error[s.size - 1 - k] : 0;
        }
        double rest = rest_of_shift(e, &s, shift, 0.25 * kept);
        if (!(rest < 0.25 * kept))
            continue;
        rest *= e->power_d / kept;
        td_enter(e, d, TD_IS_SHIFT, rest, 1, "%.1f %% explained by axis %d (%s) shifted by %lld",
                 100 * td_explained(e, rest), axis, td_axis_plural(e, axis), (long long)shift);
    }
    free(error);
}

/* Heads inside a merged axis: [.., heads * size]. */
static void suspect_merged_heads(struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_shape whole = e->shape;
    int last = whole.ndim - 1;
    for (int h = 0; h < e->c->heads->count && whole.ndim + 1 < TD_MAX_DIMS; h++) {
        int64_t size = e->c->heads->size[h];
        if (whole.size[last] % size || whole.size[last] <= size)
            continue;
        e->shape.size[last] = whole.size[last] / size;
        e->shape.size[last + 1] = size;
        e->shape.ndim = whole.ndim + 1;
        suspect_permuted(e, d, last);
        e->shape = whole;
    }
}

/* Whether one side has axes `axis` and `axis` + 1 as one, which the layout has split. */
static bool is_split(const struct td_evidence *e, int axis)
{
    const struct td_item *items[] = {e->c->item_a, e->c->item_b};
    const struct td_steps *steps[] = {&e->c->layout->a, &e->c->layout->b};
    for (int side = 0; side < 2; side++) {
        const struct td_shape *own = &items[side]->parts[0]->shape;
        int last = steps[side]->count - 1;
        for (int i = 0; i < own->ndim && last >= 0 && steps[side]->step[last].kind == TD_STEP_RESHAPE; i++)
            if (own->size[i] == e->shape.size[axis] * e->shape.size[axis + 1])
                return true;
    }
    return false;
}

/* Heads that the other side has shared out over ranks: [.., ranks, heads / ranks, ..]. */
static void suspect_shared_heads(struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_shape whole = e->shape;
    for (int axis = 0; axis + 1 < whole.ndim; axis++) {
        if (!is_split(e, axis))
            continue;
        e->shape.size[axis] *= whole.size[axis + 1];
        for (int i = axis + 1; i + 1 < whole.ndim; i++)
            e->shape.size[i] = whole.size[i + 1];
        e->shape.ndim--;
        suspect_permuted(e, d, axis);
        e->shape = whole;
    }
}

/* --- other orders of the axes --------------------------------------------------------------------------- */

/* work = A with its axes in another order, read in row-major order under the old shape. */
static void reorder(const struct td_evidence *e, const int *order)
{
    int n = e->shape.ndim;
    int64_t strides[TD_MAX_DIMS], size[TD_MAX_DIMS], step[TD_MAX_DIMS], index[TD_MAX_DIMS] = {0};
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= e->shape.size[i];
    }
    for (int i = 0; i < n; i++) {
        size[i] = e->shape.size[order[i]];
        step[i] = strides[order[i]];
    }
    int64_t from = 0;
    for (int64_t to = 0; to < e->count; to++) {
        e->work[to] = e->a[from];
        for (int i = n - 1; i >= 0; i--) {
            from += step[i];
            if (++index[i] < size[i])
                break;
            from -= step[i] * size[i];
            index[i] = 0;
        }
    }
}

static void suspect_transposed(struct td_evidence *e, struct td_diagnosis *d)
{
    int n = e->shape.ndim;
    if (n < 2 || n > 4 || e->count < 16 || e->survey ||
        !td_evidence_work(e)) /* some rows of a matrix are nobody's columns */
        return;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            int order[4] = {0, 1, 2, 3};
            order[i] = j;
            order[j] = i;
            reorder(e, order);
            double rest = td_rest(e, e->work);
            bool square = e->shape.size[i] == e->shape.size[j];
            td_enter(e, d, TD_IS_TRANSPOSE, rest, 1,
                     square
                         ? "%.1f %% explained by axes %d and %d exchanged"
                         : "%.1f %% explained by a reshape where axes %d and %d should have been exchanged",
                     100 * td_explained(e, rest), i, j);
        }
}

/* The same for heads merged into the last axis: [tokens, heads * size] read as [heads, tokens, size]. */
static void suspect_scrambled_heads(struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_shape whole = e->shape;
    if (whole.ndim != 2 || e->survey || !td_evidence_work(e))
        return;
    for (int h = 0; h < e->c->heads->count; h++) {
        int64_t size = e->c->heads->size[h];
        if (whole.size[1] % size || whole.size[1] <= size)
            continue;
        e->shape = (struct td_shape){3, {whole.size[0], whole.size[1] / size, size}};
        reorder(e, (const int[]){1, 0, 2});
        double rest = td_rest(e, e->work);
        e->shape = whole;
        td_enter(e, d, TD_IS_TRANSPOSE, rest, 1,
                 "%.1f %% explained by heads of %lld merged without moving tokens to the front",
                 100 * td_explained(e, rest), (long long)size);
    }
}

/* |b - a|^2 with the channels of each head of `size` in the other order: x[2i], x[2i+1] <-> x[i], x[i + n/2].
 */
static double rest_of_rotary_order(const struct td_evidence *e, int64_t size, bool interleaved)
{
    enum { PIECE = 4096 };
    const double most = td_most_left(e);
    const int64_t half = size / 2;
    double rest = 0;
    for (int64_t head = 0; head < e->count && rest <= most; head += size)
        for (int64_t at = 0; at < size && rest <= most; at += PIECE)
            for (int64_t c = at; c < size && c < at + PIECE; c++) {
                int64_t from = interleaved ? c / 2 + c % 2 * half : c < half ? 2 * c : 2 * (c - half) + 1;
                double d = e->b[head + c] - e->a[head + from];
                rest += d * d;
            }
    return rest;
}

static void suspect_rotary_order(struct td_evidence *e, struct td_diagnosis *d, int64_t size)
{
    int64_t last = e->shape.size[e->shape.ndim - 1];
    if (size < 4 || size % 2 || last % size)
        return;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        double rest = rest_of_rotary_order(e, size, interleaved);
        td_enter(e, d, TD_IS_ROPE, rest, 1, "%.1f %% explained by channels in %s order within heads of %lld",
                 100 * td_explained(e, rest), interleaved ? "interleaved" : "half-split", (long long)size);
    }
}

/* The layout that fits this layer alone, as the values of the whole pair see it, or as many of them as were
 * looked at otherwise. */
static void suspect_other_layout(struct td_evidence *e, struct td_diagnosis *d)
{
    const struct td_layout *other = e->c->other;
    struct td_arena arena;
    struct td_operand a, b;
    td_arena_init(&arena, TD_MAX_METADATA);
    double *x = malloc(((size_t)e->count + 1) * sizeof *x);
    e->starved |= !x;
    if (x && td_evidence_work(e) && td_operand_make(&a, e->c->item_a, &other->a, &arena, NULL) == TDBG_OK &&
        td_operand_make(&b, e->c->item_b, &other->b, &arena, NULL) == TDBG_OK && a.count >= e->count &&
        td_operand_load(&a, 0, e->count, x, NULL) == TDBG_OK &&
        td_operand_load(&b, 0, e->count, e->work, NULL) == TDBG_OK) {
        double rest = 0;
        char steps[160] = "";
        for (int64_t i = 0; i < e->count; i++)
            rest += isfinite(x[i]) && isfinite(e->work[i]) ? (x[i] - e->work[i]) * (x[i] - e->work[i]) : 0;
        for (int side = other->part ? 'a' : 'b'; side <= 'b'; side++) {
            const struct td_steps *made = side == 'a' ? &other->a : &other->b;
            for (int i = 0; i < made->count; i++) {
                size_t at = strlen(steps);
                if (at + 32 < sizeof steps) {
                    td_step_print(steps + at + (at ? 2 : 0), sizeof steps - at - 2, (char)side,
                                  &made->step[i]);
                    if (at)
                        memcpy(steps + at, ", ", 2);
                }
            }
        }
        td_enter(e, d,
                 other->rotary ? TD_IS_ROPE
                 : other->part ? TD_IS_PERMUTATION
                               : TD_IS_TRANSPOSE,
                 rest, 1,
                 other->rotary ? "%.1f %% explained by the halves of each head interleaved on one side (%s)"
                 : other->part ? "%.1f %% explained by another split of the fused tensor (%s)"
                               : "%.1f %% explained by another order of the axes (%s)",
                 100 * td_explained(e, rest), steps);
    }
    free(x);
    td_arena_release(&arena);
}

void td_suspect_layout(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    if (e->c->other)
        suspect_other_layout(e, d);
}

void td_suspect_axis(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    suspect_permuted(e, d, axis);
    if (is_ordered(e, axis))
        suspect_shift(e, d, axis);
}

void td_suspect_axes(struct td_evidence *e, struct td_diagnosis *d, int axis)
{
    (void)axis;
    int n = e->shape.ndim;
    if (n == 0)
        return;
    suspect_transposed(e, d);
    suspect_merged_heads(e, d);
    suspect_shared_heads(e, d);
    suspect_scrambled_heads(e, d);
    suspect_rotary_order(e, d, e->shape.size[n - 1]);
    for (int h = 0; h < e->c->heads->count; h++)
        if (e->c->heads->size[h] != e->shape.size[n - 1])
            suspect_rotary_order(e, d, e->c->heads->size[h]);
}
