/* access.c: see access.h, and compare.h for td_operand_load and td_operand_gather.
 *
 * A run of the operand's row-major order is cut where it passes from one part to the next; inside a part it
 * is a run of that part's own order. A slice is cut along the axis the parts follow each other on: what falls
 * into one part is a slice of that part, and lies in the result as one piece for each index of the axes
 * before.
 */
#include "kernel/access.h"

#include "kernel/compare.h"
#include "kernel/convert.h"
#include "kernel/gather.h"
#include "kernel/pick.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1024 }; /* elements on the stack while they are converted */

tdbg_status td_access_init(struct td_access *access, const struct td_operand *o, struct tdbg_error *error)
{
    struct td_access made = {.operand = o, .loaders = calloc((size_t)o->part_count, sizeof *made.loaders)};
    tdbg_status status = made.loaders ? TDBG_OK : td_fail_nomem(error);
    for (int p = 0; p < o->part_count && status == TDBG_OK; p++) {
        const struct td_tensor *t = td_tensor_is_dense(&o->parts[p]) ? &o->parts[p] : o->stored[p];
        status = td_loader_init(&made.loaders[p], t, error);
    }
    if (status == TDBG_OK)
        *access = made;
    else
        td_access_release(&made);
    return status;
}

void td_access_release(struct td_access *access)
{
    for (int p = 0; access->loaders && p < access->operand->part_count; p++)
        td_loader_release(&access->loaders[p]);
    free(access->loaders);
    *access = (struct td_access){0};
}

/* --- runs ---------------------------------------------------------------------------------------------- */

struct span {
    int part;
    int64_t at, left; /* index within the part, and how many follow it there */
};

static struct span locate(const struct td_operand *o, int64_t index)
{
    if (o->part_count == 1)
        return (struct span){0, index, o->count - index};
    int64_t inner = 1;
    for (int i = o->axis + 1; i < o->shape.ndim; i++)
        inner *= o->shape.size[i];
    int64_t row = o->shape.size[o->axis] * inner, outer = index / row, rest = index % row;
    for (int p = 0; p < o->part_count; p++) {
        int64_t mine = o->parts[p].shape.size[o->axis] * inner;
        if (rest < mine)
            return (struct span){p, outer * mine + rest, mine - rest};
        rest -= mine;
    }
    return (struct span){0, 0, 0}; /* not reached: the parts add up to the axis */
}

/* Elements [start, start + count) of one part, added to `out` where it is one of several that add up. */
static tdbg_status read_part(const struct td_loader *loader, int64_t start, int64_t count, bool add,
                             double *out, struct tdbg_error *error)
{
    while (count > 0) {
        uint8_t elements[PIECE * 16];
        double values[PIECE];
        int64_t n = count < PIECE ? count : PIECE;
        TD_TRY(td_loader_read(loader, start, n, elements, error));
        td_convert_f64(loader->dtype, elements, n, add ? values : out);
        for (int64_t i = 0; add && i < n; i++)
            out[i] += values[i];
        out += n;
        start += n;
        count -= n;
    }
    return TDBG_OK;
}

tdbg_status td_access_run(const struct td_access *access, int64_t start, int64_t count, double *out,
                          struct tdbg_error *error)
{
    const struct td_operand *o = access->operand;
    if (o->join == TD_JOIN_SUM) {
        memset(out, 0, (size_t)count * sizeof *out);
        for (int p = 0; p < o->part_count; p++)
            TD_TRY(read_part(&access->loaders[p], start, count, true, out, error));
        return TDBG_OK;
    }
    while (count > 0) {
        struct span s = locate(o, start);
        int64_t n = s.left < count ? s.left : count;
        TD_TRY(read_part(&access->loaders[s.part], s.at, n, false, out, error));
        start += n;
        out += n;
        count -= n;
    }
    return TDBG_OK;
}

/* --- slices -------------------------------------------------------------------------------------------- */

/* A slice of one part. */
struct cut {
    const struct td_loader *loader;
    bool dense;
    struct td_view view; /* dense */
    struct td_pick pick; /* else */
};

static void cut_init(struct cut *c, const struct td_access *access, int part, const struct td_slice *slice)
{
    const struct td_tensor *t = &access->operand->parts[part];
    c->loader = &access->loaders[part];
    c->dense = td_tensor_is_dense(t);
    if (c->dense)
        c->view = td_slice_view(slice, &t->view);
    else
        td_pick_init(&c->pick, c->loader, &t->shape, slice);
}

static tdbg_status cut_read(const struct cut *c, int64_t start, int64_t count, bool add, double *out,
                            struct tdbg_error *error)
{
    while (count > 0) {
        uint8_t elements[PIECE * 16];
        double values[PIECE];
        int64_t n = count < PIECE ? count : PIECE;
        if (c->dense)
            td_gather_native(&c->view, start, n, elements);
        else
            TD_TRY(td_pick_load(&c->pick, start, n, elements, error));
        td_convert_f64(c->loader->dtype, elements, n, add ? values : out);
        for (int64_t i = 0; add && i < n; i++)
            out[i] += values[i];
        out += n;
        start += n;
        count -= n;
    }
    return TDBG_OK;
}

/* Which of the indices start, start + step, … fall into [low, high): `count` of them from `first` on. */
static void clip(const struct td_slice_axis *axis, int64_t low, int64_t high, int64_t *first, int64_t *count)
{
    int64_t step = axis->step < 0 ? -axis->step : axis->step;
    int64_t before = axis->step > 0 ? low - axis->start : axis->start - (high - 1);
    int64_t until = axis->step > 0 ? high - axis->start : axis->start - low + 1;
    int64_t from = before > 0 ? (before - 1) / step + 1 : 0, to = until > 0 ? (until - 1) / step + 1 : 0;
    to = to < axis->count ? to : axis->count;
    *first = from;
    *count = to > from ? to - from : 0;
}

/* The share of part `p`, which begins at `low` of the axis, written to where it belongs in `out`. */
static tdbg_status read_share(const struct td_access *access, int p, int64_t low,
                              const struct td_slice *slice, double *out, struct tdbg_error *error)
{
    const struct td_operand *o = access->operand;
    const struct td_slice_axis *axis = &slice->axis[o->axis];
    int64_t outer = 1, inner = 1, first, count;
    clip(axis, low, low + o->parts[p].shape.size[o->axis], &first, &count);
    if (count == 0)
        return TDBG_OK;
    for (int i = 0; i < slice->ndim; i++)
        *(i < o->axis ? &outer : &inner) *= i == o->axis ? 1 : slice->axis[i].count;

    struct td_slice mine = *slice;
    mine.axis[o->axis].start = axis->start + first * axis->step - low;
    mine.axis[o->axis].count = count;
    mine.count = outer * count * inner;
    mine.shape.ndim = 0;
    for (int i = 0; i < mine.ndim; i++)
        if (!mine.axis[i].dropped)
            mine.shape.size[mine.shape.ndim++] = mine.axis[i].count;
    struct cut cut;
    cut_init(&cut, access, p, &mine);
    for (int64_t i = 0; i < outer; i++)
        TD_TRY(cut_read(&cut, i * count * inner, count * inner, false,
                        out + (i * axis->count + first) * inner, error));
    return TDBG_OK;
}

tdbg_status td_access_slice(const struct td_access *access, const struct td_slice *slice, double *out,
                            struct tdbg_error *error)
{
    const struct td_operand *o = access->operand;
    struct cut cut;
    if (slice->count == 0)
        return TDBG_OK;
    if (o->join == TD_JOIN_CONCAT && o->part_count > 1) {
        int64_t low = 0;
        for (int p = 0; p < o->part_count; p++) {
            TD_TRY(read_share(access, p, low, slice, out, error));
            low += o->parts[p].shape.size[o->axis];
        }
        return TDBG_OK;
    }
    bool add = o->join == TD_JOIN_SUM;
    if (add)
        memset(out, 0, (size_t)slice->count * sizeof *out);
    for (int p = 0; p < o->part_count; p++) {
        cut_init(&cut, access, p, slice);
        TD_TRY(cut_read(&cut, 0, slice->count, add, out, error));
    }
    return TDBG_OK;
}

/* --- once ---------------------------------------------------------------------------------------------- */

tdbg_status td_operand_load(const struct td_operand *o, int64_t start, int64_t count, double *out,
                            struct tdbg_error *error)
{
    struct td_access access;
    TD_TRY(td_access_init(&access, o, error));
    tdbg_status status = td_access_run(&access, start, count, out, error);
    td_access_release(&access);
    return status;
}

static tdbg_status fetch(const struct td_access *access, int part, int64_t index, double *out,
                         struct tdbg_error *error)
{
    const struct td_tensor *t = &access->operand->parts[part];
    if (!td_tensor_is_dense(t) || t->view.swapped)
        return read_part(&access->loaders[part], index, 1, false, out, error);
    int64_t offset = 0;
    for (int i = t->shape.ndim - 1; i >= 0; i--) {
        offset += index % t->shape.size[i] * t->view.strides[i];
        index /= t->shape.size[i];
    }
    td_convert_f64(t->dtype, t->view.data + offset * (int64_t)td_dtype_size(t->dtype), 1, out);
    return TDBG_OK;
}

static tdbg_status gather(const struct td_access *access, const int64_t *indices, int count, double *out,
                          struct tdbg_error *error)
{
    const struct td_operand *o = access->operand;
    for (int i = 0; i < count; i++) {
        if (o->join == TD_JOIN_SUM) {
            out[i] = 0;
            for (int p = 0; p < o->part_count; p++) {
                double value;
                TD_TRY(fetch(access, p, indices[i], &value, error));
                out[i] += value;
            }
        } else {
            struct span s = locate(o, indices[i]);
            TD_TRY(fetch(access, s.part, s.at, &out[i], error));
        }
    }
    return TDBG_OK;
}

tdbg_status td_operand_gather(const struct td_operand *o, const int64_t *indices, int count, double *out,
                              struct tdbg_error *error)
{
    struct td_access access;
    TD_TRY(td_access_init(&access, o, error));
    tdbg_status status = gather(&access, indices, count, out, error);
    td_access_release(&access);
    return status;
}
