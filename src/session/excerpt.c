/* excerpt.c: see excerpt.h. What is not one tensor is read row by row: a part of a row is a slice again. */
#include "session/excerpt.h"

#include "kernel/element.h"
#include "kernel/gather.h"

enum { STEP = 1024 };

static void prepare_alone(struct td_excerpt *e)
{
    const struct td_aspect *side = &e->subject->side[e->shown];
    const struct td_tensor *t = &side->operand.parts[0];
    const struct td_loader *loader = &side->access.loaders[0];
    e->alone = true;
    e->dtype = loader->dtype;
    if (e->flat)
        return;
    e->dense = td_tensor_is_dense(t);
    if (e->dense)
        e->view = td_slice_view(&e->slice, &t->view);
    else
        td_pick_init(&e->pick, loader, &t->shape, &e->slice);
}

tdbg_status td_excerpt_init(struct td_excerpt *out, const struct td_subject *subject, enum td_shown shown,
                            const char *slice, const char *flat, struct tdbg_error *error)
{
    for (int side = 0; side < 2; side++)
        if (!subject->has[side] && (shown == TD_SHOW_DIFFERENCE || (int)shown == side))
            return td_fail(error, TDBG_MISUSE, "this pair has no side %c", 'a' + side);
    *out = (struct td_excerpt){.subject = subject, .shown = shown, .dtype = TD_F64};
    out->flat = flat;
    if (flat)
        TD_TRY(td_subject_parse_flat(subject, flat, &out->slice, error));
    else
        TD_TRY(td_slice_parse(&out->slice, slice, &subject->shape, error));
    if (shown != TD_SHOW_DIFFERENCE && subject->side[shown].operand.part_count == 1)
        prepare_alone(out);
    return TDBG_OK;
}

/* `count` elements of row `row` of the slice from `column` on, as a slice of their own. */
static struct td_slice part_of_row(const struct td_slice *slice, int64_t row, int64_t column, int64_t count)
{
    struct td_slice part = *slice;
    int last = slice->ndim - 1;
    for (int i = last; i >= 0; i--) {
        struct td_slice_axis *axis = &part.axis[i];
        int64_t at = i == last ? column : row % axis->count;
        row = i == last ? row : row / axis->count;
        axis->start += at * axis->step;
        axis->count = i == last ? count : 1;
        axis->dropped = i != last;
    }
    part.shape = (struct td_shape){.ndim = last < 0 ? 0 : 1, .size = {count}};
    part.count = count;
    return part;
}

/* `part` of one side; of a flat excerpt a range of its flattened values. */
static tdbg_status load_side(const struct td_excerpt *e, int side, const struct td_slice *part, double *out,
                             struct tdbg_error *error)
{
    const struct td_access *access = &e->subject->side[side].access;
    return e->flat ? td_access_run(access, part->axis[0].start, part->count, out, error)
                   : td_access_slice(access, part, out, error);
}

static tdbg_status load_row(const struct td_excerpt *e, const struct td_slice *part, double *out,
                            struct tdbg_error *error)
{
    if (e->shown != TD_SHOW_DIFFERENCE)
        return load_side(e, (int)e->shown, part, out, error);
    double other[STEP];
    TD_TRY(load_side(e, 1, part, out, error));
    TD_TRY(load_side(e, 0, part, other, error));
    for (int64_t i = 0; i < part->count; i++)
        out[i] = td_difference(other[i], out[i]);
    return TDBG_OK;
}

static tdbg_status load_alone(const struct td_excerpt *e, int64_t start, int64_t count, void *out,
                              struct tdbg_error *error)
{
    if (e->flat)
        return td_loader_read(&e->subject->side[e->shown].access.loaders[0], e->slice.axis[0].start + start,
                              count, out, error);
    if (!e->dense)
        return td_pick_load(&e->pick, start, count, out, error);
    td_gather_native(&e->view, start, count, out);
    return TDBG_OK;
}

static tdbg_status load_rows(const struct td_excerpt *e, int64_t start, int64_t count, double *out,
                             struct tdbg_error *error)
{
    int last = e->slice.ndim - 1;
    int64_t columns = last < 0 ? 1 : e->slice.axis[last].count;
    while (count > 0) {
        int64_t column = start % columns, n = columns - column < count ? columns - column : count;
        n = n < STEP ? n : STEP;
        struct td_slice part = part_of_row(&e->slice, start / columns, column, n);
        TD_TRY(load_row(e, &part, out, error));
        out += n;
        start += n;
        count -= n;
    }
    return TDBG_OK;
}

static tdbg_status load(const void *context, int64_t start, int64_t count, void *out,
                        struct tdbg_error *error)
{
    const struct td_excerpt *e = context;
    TD_TRY(e->alone ? load_alone(e, start, count, out, error) : load_rows(e, start, count, out, error));
    return td_subject_verify(e->subject, error);
}

struct td_elements td_excerpt_elements(const struct td_excerpt *e)
{
    return (struct td_elements){.dtype = e->dtype, .count = e->slice.count, .context = e, .load = load};
}
