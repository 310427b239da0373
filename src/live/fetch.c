/* fetch.c: the stopped tensor for somebody else to look at: a copy as a .safetensors file that exists in
 * memory only. Its descriptor goes through the socket, and whoever gets it reads it like any other input.
 *
 *     8 bytes: length of the header | {"NAME": {"dtype", "shape", "data_offsets"}} | elements, row-major
 */
#include "live/control_core.h"

#include "format/safetensors.h"
#include "io/write_all.h"
#include "session/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A copy takes memory from the model's machine. */
enum { PIECE = 1 << 16 };
#define MOST_BYTES (UINT64_C(2) << 30)

static tdbg_status append(int file, const void *data, size_t size, struct tdbg_error *error)
{
    errno = td_write_all(file, data, size);
    return errno ? td_fail_errno(error, "cannot copy the tensor") : TDBG_OK;
}

static tdbg_status write_header(int file, const char *name, const struct td_selection *s,
                                struct tdbg_error *error)
{
    struct td_buffer text;
    struct td_json json, *j = &json;
    uint64_t bytes = (uint64_t)s->slice.count * td_dtype_size(s->loader.dtype);
    td_buffer_init(&text, 1 << 20);
    td_json_to_buffer(j, &text);
    td_json_begin_object(j);
    td_safetensors_put(j, name, s->loader.dtype, &s->slice.shape, 0, bytes);
    if (s->loader.dtype == TD_C128) {
        td_json_key(j, TD_SAFETENSORS_METADATA);
        td_json_begin_object(j);
        td_safetensors_put_note(j, name);
        td_json_end_object(j);
    }
    td_json_end_object(j);
    tdbg_status status = td_json_finish(j) ? TDBG_OK : td_fail_nomem(error);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)text.size >> (8 * i));
    if (status == TDBG_OK)
        status = append(file, length, sizeof length, error);
    if (status == TDBG_OK)
        status = append(file, text.data, text.size, error);
    td_buffer_release(&text);
    return status;
}

static tdbg_status write_values(int file, const struct td_selection *s, struct tdbg_error *error)
{
    size_t size = td_dtype_size(s->loader.dtype);
    int64_t step = PIECE / (int64_t)size;
    _Alignas(16) char piece[PIECE];
    for (int64_t at = 0; at < s->slice.count; at += step) {
        int64_t count = s->slice.count - at < step ? s->slice.count - at : step;
        TD_TRY(td_selection_load(s, at, count, piece, error));
        TD_TRY(append(file, piece, (size_t)count * size, error));
    }
    return TDBG_OK;
}

static tdbg_status copy(int *file, const char *name, const struct td_selection *s, struct tdbg_error *error)
{
    uint64_t bytes = (uint64_t)s->slice.count * td_dtype_size(s->loader.dtype);
    if (bytes > MOST_BYTES)
        return td_fail(error, TDBG_LIMIT, "%llu MiB are too much to copy: name a slice",
                       (unsigned long long)(bytes >> 20));
    if (!td_safetensors_holds(s->loader.dtype, &s->slice.shape))
        return td_fail(error, TDBG_UNSUPPORTED, "values of %s cannot be passed on",
                       td_dtype_name(s->loader.dtype));
    int fd = memfd_create("tdbg-tensor", MFD_CLOEXEC);
    if (fd < 0)
        return td_fail_errno(error, "cannot copy the tensor");
    tdbg_status status = write_header(fd, name, s, error);
    if (status == TDBG_OK)
        status = write_values(fd, s, error);
    if (status == TDBG_OK)
        *file = fd;
    else
        close(fd);
    return status;
}

tdbg_status control_copy(int *file, const char *name, const struct td_tensor *tensor, const char *slice,
                         struct tdbg_error *error)
{
    struct td_selection s;
    TD_TRY(td_selection_init(&s, tensor, slice, error));
    tdbg_status status = copy(file, name, &s, error);
    td_selection_release(&s);
    return status;
}
