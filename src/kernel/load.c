/* load.c: see load.h. Memory in use is a few KiB of stack whatever the range. */
#include "kernel/load.h"

#include "kernel/convert.h"
#include "kernel/dequant.h"
#include "kernel/gather.h"
#include "kernel/sparse.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "native elements are taken to be little-endian");

/* Elements converted at a time on the stack; a multiple of every block size. */
enum { PIECE = 1024 };

enum td_dtype td_value_dtype(const struct td_tensor *tensor)
{
    return td_dtype_facts(tensor->dtype)->value;
}

const void *td_direct(const struct td_tensor *tensor)
{
    const struct td_view *view = &tensor->view;
    if (tensor->sparse || !td_dtype_is_plain(tensor->dtype) || !td_view_is_packed(view))
        return NULL;
    return view->swapped && td_dtype_size(view->dtype) > 1 ? NULL : view->data;
}

/* Blocks are packed, so element and block numbers tell the place. A range may begin and end inside one. */
static void read_blocks(const struct td_view *view, int64_t start, int64_t count, float *out)
{
    const struct td_dtype_facts *facts = td_dtype_facts(view->dtype);
    const int64_t block = facts->block;
    float values[PIECE];
    while (count > 0) {
        int64_t first = start / block, skip = start % block, taken;
        const uint8_t *at = view->data + first * (int64_t)facts->bytes;
        if (skip == 0 && count >= block) {
            taken = count / block * block;
            td_dequantise(view->dtype, at, taken / block, out);
        } else {
            taken = block - skip < count ? block - skip : count;
            td_dequantise(view->dtype, at, 1, values);
            memcpy(out, values + skip, (size_t)taken * sizeof *out);
        }
        out += taken;
        start += taken;
        count -= taken;
    }
}

static double number_at(const struct td_view *view, int64_t index)
{
    uint8_t bytes[16];
    double value;
    td_gather_native(view, index, 1, bytes);
    td_convert_f64(view->dtype, bytes, 1, &value);
    return value;
}

/* The difference is exact. The product is that of the scale's own type, rounded once, as in torch: one scale
 * for all is a float32 there, scales per channel are float64. */
static void dequantise_affine(enum td_dtype dtype, const void *from, int64_t count, double scale, bool wide,
                              double zero, float *out)
{
    double q[PIECE];
    enum td_dtype plain = dtype == TD_QINT8 ? TD_I8 : dtype == TD_QUINT8 ? TD_U8 : TD_I32;
    td_convert_f64(plain, from, count, q);
    for (int64_t i = 0; i < count; i++)
        out[i] = wide ? (float)(scale * (q[i] - zero)) : (float)scale * (float)(q[i] - zero);
}

static void read_affine(const struct td_tensor *tensor, int64_t start, int64_t count, float *out)
{
    const struct td_affine *affine = tensor->affine;
    int64_t inner = tensor->count; /* elements in a row that share a scale */
    if (affine->axis >= 0) {
        inner = 1;
        for (int i = affine->axis + 1; i < tensor->shape.ndim; i++)
            inner *= tensor->shape.size[i];
    }
    while (count > 0) {
        int32_t stored[PIECE];
        int64_t run = inner - start % inner, taken = count < PIECE ? count : PIECE;
        taken = taken < run ? taken : run;
        int64_t channel = affine->axis >= 0 ? start / inner % tensor->shape.size[affine->axis] : 0;
        double scale = number_at(&affine->scale, affine->scale.count > 1 ? channel : 0);
        double zero = number_at(&affine->zero, affine->zero.count > 1 ? channel : 0);
        td_gather_native(&tensor->view, start, taken, stored);
        dequantise_affine(tensor->dtype, stored, taken, scale, affine->scale.dtype == TD_F64, zero, out);
        out += taken;
        start += taken;
        count -= taken;
    }
}

static tdbg_status check_affine(const struct td_tensor *tensor, struct tdbg_error *error)
{
    const struct td_affine *affine = tensor->affine;
    if (!affine)
        return td_fail(error, TDBG_CORRUPT, "a quantised tensor without a scale");
    if (affine->axis >= tensor->shape.ndim)
        return td_fail(error, TDBG_CORRUPT, "quantised along axis %d of %d", affine->axis,
                       tensor->shape.ndim);
    int64_t channels = affine->axis < 0 ? 1 : tensor->shape.size[affine->axis];
    const struct td_view *tables[] = {&affine->scale, &affine->zero};
    for (int i = 0; i < 2; i++) {
        const struct td_view *table = tables[i];
        if (table->count != 1 && table->count != channels)
            return td_fail(error, TDBG_CORRUPT, "%" PRId64 " quantisation %s for %" PRId64 " channels",
                           table->count, i == 0 ? "scales" : "zero points", channels);
        if (!td_dtype_is_plain(table->dtype) || td_dtype_facts(table->dtype)->kind == TD_COMPLEX)
            return td_fail(error, TDBG_CORRUPT, "quantisation %s of type %s",
                           i == 0 ? "scales" : "zero points", td_dtype_name(table->dtype));
    }
    return TDBG_OK;
}

tdbg_status td_loader_init(struct td_loader *loader, const struct td_tensor *tensor, struct tdbg_error *error)
{
    struct td_loader made = {.tensor = tensor, .dtype = td_value_dtype(tensor), .direct = td_direct(tensor)};
    if (tensor->sparse)
        TD_TRY(td_sparse_order_open(&made.order, tensor, error));
    else if (td_dtype_facts(tensor->dtype)->kind == TD_AFFINE)
        TD_TRY(check_affine(tensor, error));
    *loader = made;
    return TDBG_OK;
}

void td_loader_release(struct td_loader *loader)
{
    td_sparse_order_close(&loader->order);
}

static tdbg_status check_range(const struct td_tensor *tensor, int64_t start, int64_t count,
                               struct tdbg_error *error)
{
    if (start < 0 || count < 0 || start > tensor->count || count > tensor->count - start)
        return td_fail(error, TDBG_MISUSE, "%" PRId64 " elements from %" PRId64 " of a tensor of %" PRId64,
                       count, start, tensor->count);
    return TDBG_OK;
}

tdbg_status td_loader_read(const struct td_loader *loader, int64_t start, int64_t count, void *out,
                           struct tdbg_error *error)
{
    const struct td_tensor *tensor = loader->tensor;
    TD_TRY(check_range(tensor, start, count, error));
    if (tensor->sparse)
        return td_sparse_read(loader->order, start, count, out, error);
    switch (td_dtype_facts(tensor->dtype)->kind) {
    case TD_BLOCK:
        read_blocks(&tensor->view, start, count, out);
        break;
    case TD_AFFINE:
        read_affine(tensor, start, count, out);
        break;
    default:
        td_gather_native(&tensor->view, start, count, out);
    }
    return TDBG_OK;
}

tdbg_status td_load(const struct td_tensor *tensor, int64_t start, int64_t count, void *out,
                    struct tdbg_error *error)
{
    struct td_loader loader;
    TD_TRY(td_loader_init(&loader, tensor, error));
    tdbg_status status = td_loader_read(&loader, start, count, out, error);
    td_loader_release(&loader);
    return status;
}

tdbg_status td_load_f64(const struct td_tensor *tensor, int64_t start, int64_t count, double *out,
                        struct tdbg_error *error)
{
    struct td_loader loader;
    TD_TRY(check_range(tensor, start, count, error));
    TD_TRY(td_loader_init(&loader, tensor, error));
    tdbg_status status = TDBG_OK;
    while (count > 0 && status == TDBG_OK) {
        uint8_t elements[PIECE * 16];
        int64_t taken = count < PIECE ? count : PIECE;
        status = td_loader_read(&loader, start, taken, elements, error);
        if (status == TDBG_OK)
            td_convert_f64(loader.dtype, elements, taken, out);
        out += taken;
        start += taken;
        count -= taken;
    }
    td_loader_release(&loader);
    return status;
}
