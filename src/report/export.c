/* export.c: see export.h.
 *
 *     .npy, version 1:  "\x93NUMPY" 01 00  u16 length of the header  header  elements, little-endian
 *     header:           {'descr': '<f4', 'fortran_order': False, 'shape': (76, 45, 64), }  blanks  \n
 *     with 10 + length a multiple of 64
 */
#include "report/export.h"

#include "base/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *npy_descr(enum td_dtype dtype)
{
    static const char *const descr[TD_PLAIN_DTYPES] = {
        [TD_F64] = "<f8", [TD_F32] = "<f4",  [TD_F16] = "<f2", [TD_I64] = "<i8",   [TD_I32] = "<i4",
        [TD_I16] = "<i2", [TD_I8] = "|i1",   [TD_U64] = "<u8", [TD_U32] = "<u4",   [TD_U16] = "<u2",
        [TD_U8] = "|u1",  [TD_BOOL] = "|b1", [TD_C64] = "<c8", [TD_C128] = "<c16",
    };
    return descr[dtype];
}

enum td_dtype td_export_npy_dtype(const struct td_export *e)
{
    return npy_descr(e->values->dtype) ? e->values->dtype : TD_F32;
}

/* Longest with every axis of the largest size: 32 * 22 bytes, far below the 64 KiB of version 1. */
static tdbg_status write_header(const struct td_export *e, FILE *file, struct tdbg_error *error)
{
    struct td_buffer header;
    td_buffer_init(&header, UINT16_MAX);
    td_buffer_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     npy_descr(td_export_npy_dtype(e)));
    for (int i = 0; i < e->shape->ndim; i++)
        td_buffer_printf(&header, i ? ", %" PRId64 : "%" PRId64, e->shape->size[i]);
    td_buffer_puts(&header, e->shape->ndim == 1 ? ",), }" : "), }");
    while ((10 + header.size + 1) % 64 && !header.failed)
        td_buffer_puts(&header, " ");
    td_buffer_puts(&header, "\n");
    const unsigned char magic[10] = {0x93,
                                     'N',
                                     'U',
                                     'M',
                                     'P',
                                     'Y',
                                     1,
                                     0,
                                     (unsigned char)(header.size & 255),
                                     (unsigned char)(header.size >> 8)};
    tdbg_status status = TDBG_OK;
    if (header.failed)
        status = td_fail_nomem(error);
    else if (fwrite(magic, 1, sizeof magic, file) != sizeof magic ||
             fwrite(header.data, 1, header.size, file) != header.size)
        status = td_fail_errno(error, "cannot write");
    td_buffer_release(&header);
    return status;
}

/* The chunk that is loaded as elements of the .npy type; narrowed in place where numpy lacks the type. */
static const void *npy_elements(const struct td_export *e)
{
    struct td_values *v = e->values;
    if (td_export_npy_dtype(e) == v->dtype)
        return v->raw;
    float *narrow = (float *)(void *)v->raw;
    for (int64_t i = 0; i < v->count; i++)
        narrow[i] = (float)v->real[i];
    return narrow;
}

tdbg_status td_export_npy(const struct td_export *e, FILE *file, struct td_job *job, struct tdbg_error *error)
{
    size_t size = td_dtype_size(td_export_npy_dtype(e));
    TD_TRY(write_header(e, file, error));
    for (int64_t at = 0; at < e->count; at += TD_VALUES_CHUNK) {
        int64_t left = e->count - at, n = left < TD_VALUES_CHUNK ? left : TD_VALUES_CHUNK;
        if (td_job_cancelled(job))
            return td_fail(error, TDBG_CANCELLED, "cancelled");
        TD_TRY(td_values_load(e->values, at, n, error));
        if (fwrite(npy_elements(e), size, (size_t)n, file) != (size_t)n)
            return td_fail_errno(error, "cannot write");
        td_job_advance(job, (uint64_t)n * size);
    }
    return TDBG_OK;
}

/* Complex as Python writes it: 0.5-2.0j. */
static size_t print_complex(char *out, const struct td_values *v, const struct td_value *value)
{
    size_t length = td_number_float(out, value->complex.re, v->wide);
    size_t sign = length; /* the imaginary part brings a minus of its own */
    out[length++] = '+';
    length += td_number_float(out + length, value->complex.im, v->wide);
    if (out[sign + 1] == '-') {
        memmove(out + sign, out + sign + 1, length - sign - 1);
        length--;
    }
    out[length++] = 'j';
    return length;
}

static size_t print_csv(char *out, const struct td_values *v, const struct td_value *value)
{
    switch (value->kind) {
    case TD_VALUE_FLOAT:
        return td_number_float(out, value->real, v->wide);
    case TD_VALUE_INT:
        return td_number_int(out, value->integer);
    case TD_VALUE_UINT:
        return td_number_uint(out, value->natural);
    case TD_VALUE_BOOL:
        return td_number_uint(out, value->truth);
    case TD_VALUE_COMPLEX:
        return print_complex(out, v, value);
    }
    return 0;
}

tdbg_status td_export_csv(const struct td_export *e, FILE *file, struct td_job *job, struct tdbg_error *error)
{
    int64_t row = e->shape->ndim ? e->shape->size[e->shape->ndim - 1] : 1;
    char text[2 * TD_NUMBER_SIZE + 4];
    for (int64_t i = 0; i < e->count; i++) {
        struct td_value value;
        TD_TRY(td_values_get(e->values, i, &value, error));
        size_t length = print_csv(text, e->values, &value);
        text[length++] = (i + 1) % row ? ',' : '\n';
        if (fwrite(text, 1, length, file) != length)
            return td_fail_errno(error, "cannot write");
        if (i % TD_VALUES_CHUNK == 0) {
            if (td_job_cancelled(job))
                return td_fail(error, TDBG_CANCELLED, "cancelled");
            td_job_advance(job, TD_VALUES_CHUNK * td_dtype_size(e->values->dtype));
        }
    }
    return TDBG_OK;
}
