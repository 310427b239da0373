/* safetensors_file.c: see safetensors_file.h.
 *
 *     u64 length of the header | header: JSON, padded with spaces to a multiple of 8 | values, one tensor
 * after the other, row-major, little-endian
 *
 * Sizes follow from types and shapes, so the header is written first and the values stream behind it.
 */
#include "report/safetensors_file.h"

#include "base/checked.h"
#include "base/json.h"
#include "base/limits.h"
#include "format/safetensors.h"
#include "kernel/load.h"

enum { CHUNK_BYTES = 1 << 16, ALIGNMENT = 8 };

struct listing {
    const void *context;
    const struct td_tensor *(*at)(const void *context, size_t i);
    size_t count;
};

/* What was complex128. */
static void put_notes(struct td_json *j, const struct listing *l)
{
    bool any = false;
    for (size_t i = 0; i < l->count; i++) {
        const struct td_tensor *t = l->at(l->context, i);
        if (td_value_dtype(t) != TD_C128 || !td_safetensors_holds(TD_C128, &t->shape))
            continue;
        if (!any) {
            td_json_key(j, TD_SAFETENSORS_METADATA);
            td_json_begin_object(j);
        }
        any = true;
        td_safetensors_put_note(j, t->name);
    }
    if (any)
        td_json_end_object(j);
}

static tdbg_status put_header(struct td_buffer *header, const struct listing *l,
                              struct td_safetensors_counts *counts, struct tdbg_error *error)
{
    struct td_json json, *j = &json;
    td_json_to_buffer(j, header);
    td_json_begin_object(j);
    for (size_t i = 0; i < l->count; i++) {
        const struct td_tensor *t = l->at(l->context, i);
        uint64_t bytes = 0, end = 0;
        if (!td_safetensors_holds(td_value_dtype(t), &t->shape)) {
            counts->left_out++;
            counts->why = td_dtype_name(t->dtype);
            continue;
        }
        if (!td_mul_u64((uint64_t)t->count, td_dtype_size(td_value_dtype(t)), &bytes) ||
            !td_add_u64(counts->bytes, bytes, &end) || end > INT64_MAX)
            return td_fail(error, TDBG_LIMIT, "%s is too large", t->name);
        td_safetensors_put(j, t->name, td_value_dtype(t), &t->shape, counts->bytes, end);
        counts->bytes = end;
        counts->written++;
    }
    put_notes(j, l);
    td_json_end_object(j);
    (void)td_json_finish(j); /* the buffer remembers */
    while (!header->failed && header->size % ALIGNMENT)
        td_buffer_puts(header, " ");
    return header->failed ? td_fail(error, TDBG_LIMIT, "more tensors than a header may name") : TDBG_OK;
}

static tdbg_status put_values(const struct td_tensor *t, FILE *file, struct td_job *job,
                              struct tdbg_error *error)
{
    _Alignas(16) char chunk[CHUNK_BYTES];
    struct td_loader loader;
    TD_TRY(td_loader_init(&loader, t, error));
    int64_t count = t->count, size = (int64_t)td_dtype_size(loader.dtype);
    tdbg_status status = TDBG_OK;
    for (int64_t at = 0; at < count && status == TDBG_OK; at += CHUNK_BYTES / size) {
        int64_t taken = count - at < CHUNK_BYTES / size ? count - at : CHUNK_BYTES / size;
        status = td_loader_read(&loader, at, taken, chunk, error);
        if (status == TDBG_OK && fwrite(chunk, (size_t)size, (size_t)taken, file) != (size_t)taken)
            status = td_fail_errno(error, "cannot write");
        if (status == TDBG_OK && td_job_cancelled(job))
            status = td_fail(error, TDBG_CANCELLED, "cancelled");
    }
    td_loader_release(&loader);
    return status;
}

static tdbg_status put_all(const struct listing *l, const struct td_buffer *header, FILE *file,
                           struct td_job *job, struct tdbg_error *error)
{
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)header->size >> (8 * i));
    if (fwrite(length, sizeof length, 1, file) != 1 || fwrite(header->data, header->size, 1, file) != 1)
        return td_fail_errno(error, "cannot write");
    for (size_t i = 0; i < l->count; i++) {
        const struct td_tensor *t = l->at(l->context, i);
        if (td_safetensors_holds(td_value_dtype(t), &t->shape))
            TD_TRY(put_values(t, file, job, error));
    }
    return TDBG_OK;
}

tdbg_status td_safetensors_write(const void *context,
                                 const struct td_tensor *(*at)(const void *context, size_t i), size_t count,
                                 FILE *file, struct td_job *job, struct td_safetensors_counts *out,
                                 struct tdbg_error *error)
{
    struct listing listing = {context, at, count};
    struct td_safetensors_counts counts = {0};
    struct td_buffer header;
    td_buffer_init(&header, TD_MAX_SAFETENSORS_HEADER);
    tdbg_status status = put_header(&header, &listing, &counts, error);
    if (status == TDBG_OK)
        status = put_all(&listing, &header, file, job, error);
    td_buffer_release(&header);
    if (status == TDBG_OK)
        *out = counts;
    return status;
}
