/* slice.c: see slice.h.
 *
 *     slice := item { ',' item } [',']          item := integer | range | '...'
 *     range := [integer] ':' [integer] [':' [integer]]
 */
#include "tensor/slice.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One item as written. */
struct item {
    bool ellipsis, range;
    bool has_start, has_stop, has_step;
    int64_t start, stop, step; /* an integer index is `start` */
};

static void skip_blanks(const char **at)
{
    while (isspace((unsigned char)**at))
        ++*at;
}

static tdbg_status bad(struct tdbg_error *error, const char *text)
{
    return td_fail(error, TDBG_MISUSE,
                   "bad slice [%.80s]: expected integers, ranges a:b:c and ... between commas", text);
}

/* An optional integer; numbers too large for int64 are as good as the largest. */
static bool parse_integer(const char **at, int64_t *value)
{
    skip_blanks(at);
    const char *digits = *at + (**at == '-' || **at == '+');
    if (!isdigit((unsigned char)*digits))
        return false;
    char *end;
    *value = strtoll(*at, &end, 10);
    *at = end;
    return true;
}

static tdbg_status parse_item(const char **at, const char *text, struct item *out, struct tdbg_error *error)
{
    *out = (struct item){.step = 1};
    skip_blanks(at);
    if (strncmp(*at, "...", 3) == 0) {
        *at += 3;
        out->ellipsis = true;
        return TDBG_OK;
    }
    out->has_start = parse_integer(at, &out->start);
    skip_blanks(at);
    if (**at != ':')
        return out->has_start ? TDBG_OK : bad(error, text);
    ++*at;
    out->range = true;
    out->has_stop = parse_integer(at, &out->stop);
    skip_blanks(at);
    if (**at == ':') {
        ++*at;
        out->has_step = parse_integer(at, &out->step);
        if (out->has_step && out->step == 0)
            return td_fail(error, TDBG_MISUSE, "bad slice [%.80s]: a step of zero", text);
    }
    return TDBG_OK;
}

static int64_t clip(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static tdbg_status resolve_integer(const struct item *item, int axis, int64_t size, struct td_slice_axis *out,
                                   struct tdbg_error *error)
{
    if (item->start >= size || item->start < -size)
        return td_fail(error, TDBG_MISUSE, "index %" PRId64 " is out of range for axis %d of size %" PRId64,
                       item->start, axis, size);
    *out = (struct td_slice_axis){
        .start = item->start < 0 ? item->start + size : item->start, .step = 1, .count = 1, .dropped = true};
    return TDBG_OK;
}

/* As CPython's PySlice_AdjustIndices defines it: ends count from the back when negative, then are clipped. */
static void resolve_range(const struct item *item, int64_t size, struct td_slice_axis *out)
{
    int64_t step = item->step < -INT64_MAX ? -INT64_MAX : item->step;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    int64_t start = step < 0 ? high : low, stop = step < 0 ? low : high;
    if (item->has_start)
        start = clip(item->start < 0 ? item->start + size : item->start, low, high);
    if (item->has_stop)
        stop = clip(item->stop < 0 ? item->stop + size : item->stop, low, high);
    int64_t span = step < 0 ? start - stop : stop - start;
    int64_t stride = step < 0 ? -step : step;
    int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    if (count <= 1)
        step = 1; /* never used to move, and a huge one would overflow a stride */
    *out = (struct td_slice_axis){.start = count ? start : 0, .step = step, .count = count};
}

static struct td_slice_axis whole(int64_t size)
{
    return (struct td_slice_axis){.start = 0, .step = 1, .count = size};
}

static tdbg_status parse_items(const char *text, struct item *items, int *count, struct tdbg_error *error)
{
    const char *at = text;
    int ellipses = 0;
    *count = 0;
    skip_blanks(&at);
    while (*at) {
        if (*count > TD_MAX_DIMS)
            return td_fail(error, TDBG_MISUSE, "bad slice [%.80s]: more than %d axes", text, TD_MAX_DIMS);
        TD_TRY(parse_item(&at, text, &items[*count], error));
        ellipses += items[(*count)++].ellipsis;
        skip_blanks(&at);
        if (*at && *at != ',')
            return bad(error, text);
        if (*at)
            at++;
        skip_blanks(&at);
    }
    return ellipses > 1 ? td_fail(error, TDBG_MISUSE, "bad slice [%.80s]: more than one ...", text) : TDBG_OK;
}

tdbg_status td_slice_check(const char *text, struct tdbg_error *error)
{
    struct item items[TD_MAX_DIMS + 1];
    int count;
    return parse_items(text, items, &count, error);
}

static tdbg_status finish(struct td_slice *slice, struct tdbg_error *error)
{
    for (int i = 0; i < slice->ndim; i++)
        if (!slice->axis[i].dropped)
            slice->shape.size[slice->shape.ndim++] = slice->axis[i].count;
    return td_shape_count(&slice->shape, &slice->count, error);
}

tdbg_status td_slice_parse(struct td_slice *out, const char *text, const struct td_shape *shape,
                           struct tdbg_error *error)
{
    struct item items[TD_MAX_DIMS + 1]; /* every axis and one ... */
    int count, named = 0, axis = 0;
    TD_TRY(parse_items(text, items, &count, error));
    for (int i = 0; i < count; i++)
        named += !items[i].ellipsis;
    if (named > shape->ndim)
        return td_fail(error, TDBG_MISUSE, "too many indices: [%.80s] names %d axes, the tensor has %d", text,
                       named, shape->ndim);
    struct td_slice slice = {.ndim = shape->ndim};
    for (int i = 0; i < count; i++) {
        if (items[i].ellipsis) {
            for (int n = shape->ndim - named; n > 0; n--, axis++)
                slice.axis[axis] = whole(shape->size[axis]);
        } else if (items[i].range) {
            resolve_range(&items[i], shape->size[axis], &slice.axis[axis]);
            axis++;
        } else {
            TD_TRY(resolve_integer(&items[i], axis, shape->size[axis], &slice.axis[axis], error));
            axis++;
        }
    }
    for (; axis < shape->ndim; axis++)
        slice.axis[axis] = whole(shape->size[axis]);
    TD_TRY(finish(&slice, error));
    *out = slice;
    return TDBG_OK;
}

bool td_slice_is_whole(const struct td_slice *slice, const struct td_shape *shape)
{
    for (int i = 0; i < slice->ndim; i++) {
        const struct td_slice_axis *axis = &slice->axis[i];
        if (axis->dropped || axis->start != 0 || axis->step != 1 || axis->count != shape->size[i])
            return false;
    }
    return true;
}

struct td_view td_slice_view(const struct td_slice *slice, const struct td_view *view)
{
    struct td_view out = *view;
    out.shape = slice->shape;
    out.count = slice->count;
    int64_t offset = 0;
    for (int i = 0, kept = 0; i < slice->ndim; i++) {
        const struct td_slice_axis *axis = &slice->axis[i];
        offset += axis->start * view->strides[i];
        if (!axis->dropped)
            out.strides[kept++] = axis->step * view->strides[i];
    }
    if (out.count > 0)
        out.data = view->data + offset * (int64_t)td_dtype_size(view->dtype);
    else
        out.data = NULL;
    return out;
}
