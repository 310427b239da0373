/* npy.c: reads .npy: the header of npy_header.c, then the elements and nothing else.
 *
 * The elements are row-major or, with fortran_order, column-major: both are strides to us. A structured array
 * is seen field by field: a field of a plain type is a view that steps from record to record. That needs the
 * record to be a multiple of the field's element, since strides count elements; where it is not, the field is
 * skipped by name.
 */
#include "format/npy.h"

#include "base/checked.h"
#include "format/npy_header.h"
#include "format/reader.h"

#include <inttypes.h>
#include <string.h>

static bool probe(const struct td_source *source)
{
    return td_npy_probe(source->data, source->size);
}

/* With a field of Python objects the data is a pickle of any length, not records: no field can be viewed. */
static bool is_pickled(const struct td_npy_header *header)
{
    for (const struct td_npy_field *f = header->fields; f; f = f->next)
        if (f->type.pickled)
            return true;
    return false;
}

/* Bytes of all records; fails when there are fewer. */
static tdbg_status check_size(const struct td_npy_header *header, size_t have, uint64_t *need,
                              struct tdbg_error *error)
{
    int64_t count;
    TD_TRY(td_shape_count(&header->shape, &count, error));
    if (is_pickled(header)) {
        *need = have;
        return TDBG_OK;
    }
    if (!td_mul_u64((uint64_t)count, header->record, need))
        return td_fail(error, TDBG_CORRUPT, "more bytes of data than 64 bits count");
    if (*need > have)
        return td_fail_at(error, TDBG_CORRUPT, header->size, "needs %" PRIu64 " bytes of data, has %zu",
                          *need, have);
    return TDBG_OK;
}

/* The array's axes, stepping from record to record, then the subarray's. All products stay within the size of
 * the data, which was checked; without elements there is nothing to step over. */
static void lay_out(const struct td_npy_header *header, const struct td_npy_field *field, bool empty,
                    struct td_shape *shape, int64_t *strides)
{
    int outer = header->shape.ndim, inner = field->shape.ndim;
    *shape = header->shape;
    shape->ndim = outer + inner;
    for (int i = 0; i < inner; i++)
        shape->size[outer + i] = field->shape.size[i];
    memset(strides, 0, sizeof *strides * TD_MAX_DIMS);
    if (empty)
        return;
    int64_t step = (int64_t)(header->record / field->type.size);
    for (int i = 0; i < outer; i++) {
        int axis = header->fortran_order ? i : outer - 1 - i;
        strides[axis] = step;
        step *= shape->size[axis];
    }
    step = 1;
    for (int i = outer + inner - 1; i >= outer; i--) {
        strides[i] = step;
        step *= shape->size[i];
    }
}

static tdbg_status view_field(struct td_view *out, const struct td_npy_header *header,
                              const struct td_npy_field *field, const uint8_t *data, uint64_t size,
                              struct tdbg_error *error)
{
    if (field->type.reason)
        return td_fail(error, TDBG_UNSUPPORTED, "%s", field->type.reason);
    if (is_pickled(header))
        return td_fail(error, TDBG_UNSUPPORTED, "records with Python objects in them are a pickle");
    if (header->record % field->type.size)
        return td_fail(error, TDBG_UNSUPPORTED,
                       "records of %" PRIu64 " bytes are no multiple of the field's %" PRIu64, header->record,
                       field->type.size);
    if (header->shape.ndim + field->shape.ndim > TD_MAX_DIMS)
        return td_fail(error, TDBG_UNSUPPORTED, "more than %d dimensions", TD_MAX_DIMS);

    int64_t strides[TD_MAX_DIMS], within;
    struct td_shape shape;
    TD_TRY(td_shape_count(&field->shape, &within, error));
    lay_out(header, field, size == 0 || within == 0, &shape, strides);
    uint64_t skipped =
        size ? field->offset : 0; /* within the first record, which is there when there is one */
    TD_TRY(
        td_view_strided(out, data + skipped, size - skipped, field->type.dtype, 0, &shape, strides, error));
    out->swapped = field->type.swapped;
    return TDBG_OK;
}

/* Padding has no name and is nobody's loss. */
static tdbg_status add_field(struct td_catalog *out, const char *name, const char *format,
                             const struct td_npy_header *header, const struct td_npy_field *field,
                             const uint8_t *data, uint64_t size, struct tdbg_error *error)
{
    const char *full = name;
    if (header->structured) {
        if (!*field->name)
            return TDBG_OK;
        full = *name ? td_arena_printf(&out->arena, "%s.%s", name, field->name) : field->name;
        if (!full)
            return td_fail_nomem(error);
    }
    struct td_view view;
    struct tdbg_error why;
    if (view_field(&view, header, field, data, size, &why) != TDBG_OK)
        return td_catalog_skip(out, full, error, "%s", why.message);
    return td_catalog_add_view(out, full, format, &view, error);
}

tdbg_status td_npy_read(struct td_catalog *out, const char *name, const char *format, const uint8_t *data,
                        size_t size, struct tdbg_error *error)
{
    struct td_npy_header header;
    TD_TRY(td_npy_header_parse(&header, data, size, &out->arena, error));
    uint64_t need, have = size - header.size;
    TD_TRY(check_size(&header, have, &need, error));
    for (const struct td_npy_field *f = header.fields; f; f = f->next)
        TD_TRY(add_field(out, name, format, &header, f, data + header.size, need, error));
    if (have > need)
        TD_TRY(td_catalog_skip(out, name, error,
                               "the array ends at byte %" PRIu64 " of %zu; the rest is not read",
                               header.size + need, size));
    return TDBG_OK;
}

static tdbg_status open_source(const struct td_source *source, struct td_catalog *out,
                               struct tdbg_error *error)
{
    return td_npy_read(out, "", td_reader_npy.name, source->data, source->size, error);
}

const struct td_reader td_reader_npy = {.name = "npy", .probe = probe, .open = open_source};
