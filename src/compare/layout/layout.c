/* layout.c: steps applied to operands. See layout.h.
 *
 * Every step works on the view of each part by itself; only two care that there are several parts: the axis
 * along which they follow each other moves with the axes around it, and cannot be cut unless the cut falls
 * between parts.
 */
#include "compare/layout/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void remove_axis(struct td_tensor *t, int axis)
{
    for (int i = axis; i + 1 < t->shape.ndim; i++) {
        t->shape.size[i] = t->shape.size[i + 1];
        t->view.strides[i] = t->view.strides[i + 1];
    }
    t->shape.ndim--;
}

static void insert_axis(struct td_tensor *t, int axis, int64_t size, int64_t stride)
{
    for (int i = t->shape.ndim; i > axis; i--) {
        t->shape.size[i] = t->shape.size[i - 1];
        t->view.strides[i] = t->view.strides[i - 1];
    }
    t->shape.size[axis] = size;
    t->view.strides[axis] = stride;
    t->shape.ndim++;
}

static void advance(struct td_tensor *t, int axis, int64_t index)
{
    if (t->view.data)
        t->view.data += index * t->view.strides[axis] * (int64_t)td_dtype_size(t->dtype);
}

/* The operand's shape from its parts'. */
static void settle(struct td_operand *o)
{
    o->shape = o->parts[0].shape;
    if (o->join == TD_JOIN_CONCAT && o->part_count > 1) {
        o->shape.size[o->axis] = 0;
        for (int p = 0; p < o->part_count; p++)
            o->shape.size[o->axis] += o->parts[p].shape.size[o->axis];
    }
    o->count = 1;
    for (int i = 0; i < o->shape.ndim; i++)
        o->count *= o->shape.size[i];
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor *t = &o->parts[p];
        t->count = 1;
        for (int i = 0; i < t->shape.ndim; i++)
            t->count *= t->shape.size[i];
        t->view.shape = t->shape;
        t->view.count = t->count;
    }
}

static bool single(const struct td_operand *o)
{
    return o->part_count == 1;
}

static tdbg_status join_parts(struct td_operand *o, int axis, struct tdbg_error *error)
{
    for (int p = 0; p < o->part_count; p++) {
        const struct td_shape *x = &o->parts[0].shape, *y = &o->parts[p].shape;
        if (x->ndim != y->ndim)
            return td_fail(error, TDBG_MISMATCH, "shards of %d and %d dimensions", x->ndim, y->ndim);
        for (int i = 0; i < x->ndim; i++)
            if (i != axis && x->size[i] != y->size[i])
                return td_fail(error, TDBG_MISMATCH, "shards differ in axis %d", i);
    }
    o->join = TD_JOIN_CONCAT;
    o->axis = axis;
    return TDBG_OK;
}

/* An axis of ranks in one tensor becomes one part per index. */
static tdbg_status sum_axis(struct td_operand *o, int axis, struct td_arena *arena, struct tdbg_error *error)
{
    int64_t n = o->shape.size[axis];
    struct td_tensor *parts = td_arena_array(arena, (size_t)n, sizeof *parts);
    if (!parts)
        return td_fail_nomem(error);
    for (int64_t i = 0; i < n; i++) {
        parts[i] = o->parts[0];
        advance(&parts[i], axis, i);
        remove_axis(&parts[i], axis);
    }
    o->parts = parts;
    o->part_count = (int)n;
    o->join = TD_JOIN_SUM;
    return TDBG_OK;
}

/* [from, to) of the axis along which the parts are joined: some end earlier or begin later, and some go. */
static void slice_joined(struct td_operand *o, const struct td_step *s)
{
    int64_t start = 0;
    int kept = 0;
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor t = o->parts[p];
        int64_t end = start + t.shape.size[s->axis];
        int64_t from = s->from > start ? s->from : start, to = s->to < end ? s->to : end;
        if (from < to) {
            advance(&t, s->axis, from - start);
            t.shape.size[s->axis] = to - from;
            o->parts[kept++] = t;
        }
        start = end;
    }
    o->part_count = kept;
}

/* Rows of a tensor of packed blocks are a tensor of packed blocks, where they begin with a block: one for
 * each index of the axis in front, which is the only one there may be. */
static tdbg_status slice_blocks(struct td_operand *o, const struct td_step *s, struct td_arena *arena,
                                struct tdbg_error *error)
{
    const struct td_tensor *whole = o->stored[0];
    int64_t inner = 1, outer = s->axis > 0 ? o->shape.size[s->axis - 1] : 1, before = 1;
    for (int i = 0; i < o->shape.ndim; i++)
        *(i < s->axis ? &before : &inner) *= i == s->axis ? 1 : o->shape.size[i];
    int64_t row = o->shape.size[s->axis] * inner;
    const struct td_dtype_facts *facts = td_dtype_facts(whole->dtype);
    if (!single(o) || facts->kind != TD_BLOCK || before != outer || inner % facts->block || outer < 1)
        return td_fail(error, TDBG_MISMATCH,
                       "a part of a quantised or sparse tensor that has no blocks of its own");
    struct td_tensor *parts = td_arena_array(arena, (size_t)outer * 2, sizeof *parts);
    const struct td_tensor **stored = td_arena_array(arena, (size_t)outer, sizeof(*stored));
    if (!parts || !stored)
        return td_fail_nomem(error);
    for (int64_t i = 0; i < outer; i++) {
        struct td_tensor *t = &parts[i];
        *t = o->parts[0];
        t->view.data += (i * row + s->from * inner) / facts->block * (int64_t)facts->bytes;
        t->shape.size[s->axis] = s->to - s->from;
        if (s->axis > 0)
            t->shape.size[s->axis - 1] = 1;
        t->view.shape = t->shape;
        t->count = t->view.count = (s->to - s->from) * inner;
        parts[outer + i] = *t; /* as it is stored: later steps change the other one */
        stored[i] = &parts[outer + i];
        if (s->kind == TD_STEP_TAKE)
            remove_axis(t, s->axis);
    }
    o->parts = parts;
    o->stored = stored;
    o->part_count = (int)outer;
    o->join = TD_JOIN_CONCAT;
    o->axis = s->axis > 0 ? s->axis - 1 : 0;
    return TDBG_OK;
}

static tdbg_status slice(struct td_operand *o, const struct td_step *s, struct td_arena *arena,
                         struct tdbg_error *error)
{
    if (!td_tensor_is_dense(&o->parts[0]))
        return slice_blocks(o, s, arena, error);
    if (!single(o) && o->join == TD_JOIN_CONCAT && s->axis == o->axis) {
        if (s->kind == TD_STEP_TAKE || s->from >= s->to)
            return td_fail(error, TDBG_MISMATCH, "an index across shards");
        slice_joined(o, s);
        return TDBG_OK;
    }
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor *t = &o->parts[p];
        advance(t, s->axis, s->from);
        t->shape.size[s->axis] = s->to - s->from;
        if (s->kind == TD_STEP_TAKE)
            remove_axis(t, s->axis);
    }
    if (s->kind == TD_STEP_TAKE && o->axis > s->axis)
        o->axis--;
    return TDBG_OK;
}

/* The part that holds `index` of the axis along which they are joined; `index` becomes its own. */
static const struct td_tensor *part_at(const struct td_operand *o, int axis, int64_t *index)
{
    const struct td_tensor *t = o->parts;
    while (t + 1 < o->parts + o->part_count && *index >= t->shape.size[axis])
        *index -= t++->shape.size[axis];
    return t;
}

/* Each run of neighbours that stay neighbours becomes a part; the parts follow each other in the new order.
 */
static tdbg_status reorder(struct td_operand *o, const struct td_step *s, struct td_arena *arena,
                           struct tdbg_error *error)
{
    bool joined_there = o->join == TD_JOIN_CONCAT && o->axis == s->axis;
    if ((!single(o) && !joined_there) || s->axis >= o->shape.ndim || s->to != o->shape.size[s->axis])
        return td_fail(error, TDBG_MISMATCH, "another order across shards");
    struct td_tensor *parts = td_arena_array(arena, (size_t)s->to, sizeof *parts);
    if (!parts)
        return td_fail_nomem(error);
    int count = 0;
    for (int64_t i = 0, run; i < s->to; i += run) {
        int64_t first = s->order[i];
        parts[count] = *part_at(o, s->axis, &first);
        int64_t left = parts[count].shape.size[s->axis] - first;
        for (run = 1; run < left && i + run < s->to && s->order[i + run] == s->order[i] + run;)
            run++;
        advance(&parts[count], s->axis, first);
        parts[count++].shape.size[s->axis] = run;
    }
    o->parts = parts;
    o->part_count = count;
    o->join = TD_JOIN_CONCAT;
    o->axis = s->axis;
    return TDBG_OK;
}

static void squeeze(struct td_operand *o)
{
    for (int i = o->shape.ndim - 1; i >= 0; i--) {
        if (o->shape.size[i] != 1)
            continue;
        for (int p = 0; p < o->part_count; p++)
            remove_axis(&o->parts[p], i);
        if (o->axis > i)
            o->axis--;
    }
}

static tdbg_status permute(struct td_operand *o, const struct td_shape *order, struct tdbg_error *error)
{
    if (order->ndim != o->shape.ndim)
        return td_fail(error, TDBG_MISMATCH, "a permutation of %d axes for %d", order->ndim, o->shape.ndim);
    int moved = o->axis;
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor old = o->parts[p], *t = &o->parts[p];
        for (int i = 0; i < order->ndim; i++) {
            t->shape.size[i] = old.shape.size[order->size[i]];
            t->view.strides[i] = old.view.strides[order->size[i]];
            if (order->size[i] == o->axis)
                moved = i;
        }
    }
    o->axis = moved;
    return TDBG_OK;
}

/* Splits axes of one part so that it has shape `to`; false when that needs more than splitting. */
static bool split_axes(struct td_tensor *t, const struct td_shape *to)
{
    struct td_tensor out = *t;
    int at = 0;
    for (int i = 0; i < t->shape.ndim; i++) {
        int first = at;
        int64_t product = 1;
        while (at < to->ndim && (product < t->shape.size[i] || (at == first && product == 1)))
            product *= to->size[at++];
        if (product != t->shape.size[i])
            return false;
        int64_t stride = t->view.strides[i];
        for (int j = at - 1; j >= first; j--) {
            out.view.strides[j] = stride;
            stride *= to->size[j];
        }
    }
    while (at < to->ndim) /* trailing axes of size 1 */
        if (to->size[at++] != 1)
            return false;
    out.shape = *to;
    *t = out;
    return true;
}

/* A packed part takes any shape of as many elements. */
static bool repack(struct td_tensor *t, const struct td_shape *to)
{
    if (t->sparse || !td_view_is_packed(&t->view))
        return false;
    int64_t stride = 1;
    for (int i = to->ndim - 1; i >= 0; i--) {
        t->view.strides[i] = stride;
        stride *= to->size[i];
    }
    t->shape = *to;
    return true;
}

/* Which axis of `to` the parts follow each other along, when the joined axis is split: the first piece. */
static int split_position(const struct td_shape *from, const struct td_shape *to, int axis)
{
    int64_t before = 1, seen = 1;
    for (int i = 0; i < axis; i++)
        before *= from->size[i];
    int at = 0;
    while (at < to->ndim && seen < before)
        seen *= to->size[at++];
    return seen == before ? at : -1;
}

static tdbg_status reshape(struct td_operand *o, const struct td_shape *to, struct tdbg_error *error)
{
    bool joined = o->join == TD_JOIN_CONCAT && !single(o);
    int axis = joined ? split_position(&o->shape, to, o->axis) : 0;
    if (axis < 0 || axis >= TD_MAX_DIMS || (joined && axis >= to->ndim))
        return td_fail(error, TDBG_MISMATCH, "a reshape across shards");
    for (int p = 0; p < o->part_count; p++) {
        struct td_tensor *t = &o->parts[p];
        struct td_shape want = *to;
        if (joined) { /* the part's share of the axis it is joined along */
            int64_t whole = o->shape.size[o->axis], mine = t->shape.size[o->axis];
            if (want.size[axis] * mine % whole)
                return td_fail(error, TDBG_MISMATCH, "a reshape across shards");
            want.size[axis] = want.size[axis] * mine / whole;
        }
        t->view.shape = t->shape;
        t->view.count = t->count;
        if (!split_axes(t, &want) && !repack(t, &want))
            return td_fail(error, TDBG_MISMATCH, "a reshape of a strided view");
    }
    o->axis = axis;
    return TDBG_OK;
}

static tdbg_status apply(struct td_operand *o, const struct td_step *s, struct td_arena *arena,
                         struct tdbg_error *error)
{
    bool order_kept = s->kind == TD_STEP_SQUEEZE || s->kind == TD_STEP_RESHAPE || s->kind == TD_STEP_JOIN ||
                      s->kind == TD_STEP_FIRST || (s->kind == TD_STEP_SUM && !single(o)) ||
                      s->kind == TD_STEP_SLICE || s->kind == TD_STEP_TAKE;
    if (!order_kept && !td_tensor_is_dense(&o->parts[0]))
        return td_fail(error, TDBG_MISMATCH, "a quantised or sparse tensor in another order of axes");
    switch (s->kind) {
    case TD_STEP_JOIN:
        return join_parts(o, s->axis, error);
    case TD_STEP_FIRST:
        o->parts += s->from;
        o->stored += s->from;
        o->part_count = 1;
        return TDBG_OK;
    case TD_STEP_SUM:
        if (single(o))
            return sum_axis(o, s->axis, arena, error);
        o->join = TD_JOIN_SUM;
        return TDBG_OK;
    case TD_STEP_TAKE:
    case TD_STEP_SLICE:
        return slice(o, s, arena, error);
    case TD_STEP_SQUEEZE:
        squeeze(o);
        return TDBG_OK;
    case TD_STEP_RESHAPE:
        return reshape(o, &s->list, error);
    case TD_STEP_PERMUTE:
        return permute(o, &s->list, error);
    case TD_STEP_REPEAT:
        for (int p = 0; p < o->part_count; p++)
            insert_axis(&o->parts[p], s->axis, s->to, 0);
        if (o->axis >= s->axis)
            o->axis++;
        return TDBG_OK;
    case TD_STEP_REORDER:
        return reorder(o, s, arena, error);
    }
    return TDBG_OK;
}

tdbg_status td_operand_make(struct td_operand *out, const struct td_item *item, const struct td_steps *steps,
                            struct td_arena *arena, struct tdbg_error *error)
{
    struct td_operand o = {.part_count = item->part_count, .stored = item->parts};
    o.parts = td_arena_array(arena, (size_t)item->part_count, sizeof *o.parts);
    if (!o.parts)
        return td_fail_nomem(error);
    for (int p = 0; p < item->part_count; p++)
        o.parts[p] = *item->parts[p];
    o.shape = o.parts[0].shape;
    o.count = o.parts[0].count;
    for (int i = 0; i < steps->count; i++) {
        TD_TRY(apply(&o, &steps->step[i], arena, error));
        settle(&o);
    }
    *out = o;
    return TDBG_OK;
}

static void print_list(char *out, size_t size, const char *word, const int64_t *list, int64_t count)
{
    int used = snprintf(out, size, "%s ", word);
    for (int64_t i = 0; i < count && used > 0 && (size_t)used < size; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%" PRId64, i ? "," : "", list[i]);
}

/* A long order is told by its beginning. */
static void print_order(char *out, size_t size, const struct td_step *s)
{
    enum { SHOWN = 16 };
    char word[40];
    snprintf(word, sizeof word, "reorder axis %d:", s->axis);
    print_list(out, size, word, s->order, s->to <= SHOWN ? s->to : SHOWN);
    if (s->to > SHOWN)
        snprintf(out + strlen(out), size - strlen(out), ",... (%" PRId64 ")", s->to);
}

void td_step_print(char *out, size_t size, char side, const struct td_step *s)
{
    char text[256] = "";
    switch (s->kind) {
    case TD_STEP_JOIN:
        snprintf(text, sizeof text, "concatenate %s on axis %d", s->from ? "experts" : "shards", s->axis);
        break;
    case TD_STEP_SUM:
        snprintf(text, sizeof text, s->from ? "sum axis %d" : "sum shards", s->axis);
        break;
    case TD_STEP_FIRST:
        if (s->from)
            snprintf(text, sizeof text, "shard %" PRId64 " of replicated shards", s->from);
        else
            snprintf(text, sizeof text, "first of replicated shards");
        break;
    case TD_STEP_TAKE:
        snprintf(text, sizeof text, "take %" PRId64 " of axis %d", s->from, s->axis);
        break;
    case TD_STEP_SLICE:
        snprintf(text, sizeof text, "slice %" PRId64 ":%" PRId64 " of axis %d", s->from, s->to, s->axis);
        break;
    case TD_STEP_SQUEEZE:
        print_list(text, sizeof text, "squeeze", s->list.size, s->list.ndim);
        break;
    case TD_STEP_RESHAPE:
        print_list(text, sizeof text, "reshape", s->list.size, s->list.ndim);
        break;
    case TD_STEP_PERMUTE:
        print_list(text, sizeof text, "permute", s->list.size, s->list.ndim);
        break;
    case TD_STEP_REPEAT:
        snprintf(text, sizeof text, "repeat axis %d x%" PRId64, s->axis, s->to);
        break;
    case TD_STEP_REORDER:
        print_order(text, sizeof text, s);
        break;
    }
    snprintf(out, size, "%c: %s", side, text);
}
