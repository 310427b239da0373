/* api.c: the public functions of tdbg.h over an input. */
#include "session/input.h"

#include "base/checked.h"
#include "kernel/load.h"

#include <inttypes.h>
#include <stdlib.h>

struct tdbg_input {
    struct td_input *input;
    struct td_pool *pool;
};

const char *tdbg_version(void)
{
    return TDBG_VERSION;
}

tdbg_status tdbg_input_open(tdbg_input **out, const char *path, struct tdbg_error *error)
{
    if (!path)
        return td_fail(error, TDBG_MISUSE, "no path");
    tdbg_input *handle = calloc(1, sizeof *handle);
    if (!handle)
        return td_fail_nomem(error);
    tdbg_status status = td_pool_open(&handle->pool, 0, error);
    if (status == TDBG_OK)
        status = td_input_open(&handle->input, path, NULL, error);
    if (status == TDBG_OK)
        *out = handle;
    else
        tdbg_input_close(&handle);
    return status;
}

void tdbg_input_close(tdbg_input **input)
{
    if (!input || !*input)
        return;
    td_input_close(&(*input)->input);
    td_pool_close(&(*input)->pool);
    free(*input);
    *input = NULL;
}

size_t tdbg_input_count(const tdbg_input *input)
{
    return td_input_count(input->input);
}

struct tdbg_info tdbg_input_info(const tdbg_input *input, size_t index)
{
    if (index >= td_input_count(input->input))
        return (struct tdbg_info){0};
    const struct td_tensor *t = td_input_tensor(input->input, index);
    return (struct tdbg_info){
        .name = t->name,
        .dtype = td_dtype_name(t->dtype),
        .format = t->format,
        .ndim = t->shape.ndim,
        .shape = t->shape.size,
        .bytes = t->bytes,
        .value = td_dtype_name(td_value_dtype(t)),
        .value_bytes = td_dtype_size(td_value_dtype(t)),
    };
}

tdbg_status tdbg_input_find(const tdbg_input *input, const char *name, size_t *index,
                            struct tdbg_error *error)
{
    return td_input_find(input->input, name, index, error);
}

size_t tdbg_input_skipped(const tdbg_input *input)
{
    return td_input_skips(input->input);
}

void tdbg_input_skip(const tdbg_input *input, size_t index, const char **name, const char **reason)
{
    const struct td_skip *skip = td_input_skip(input->input, index);
    *name = skip->name;
    *reason = skip->reason;
}

static tdbg_status tensor_at(const tdbg_input *input, size_t index, const struct td_tensor **out,
                             struct tdbg_error *error)
{
    size_t count = td_input_count(input->input);
    if (index >= count)
        return td_fail(error, TDBG_MISUSE, "tensor %zu of %zu", index, count);
    *out = td_input_tensor(input->input, index);
    return TDBG_OK;
}

static tdbg_status range_of(const tdbg_input *input, size_t index, uint64_t start, uint64_t count,
                            const struct td_tensor **out, struct tdbg_error *error)
{
    const struct td_tensor *tensor = NULL;
    TD_TRY(tensor_at(input, index, &tensor, error));
    if (!td_range_within(start, count, (uint64_t)tensor->count))
        return td_fail(error, TDBG_MISUSE, "elements %" PRIu64 " + %" PRIu64 " of a tensor of %" PRId64,
                       start, count, tensor->count);
    *out = tensor;
    return TDBG_OK;
}

tdbg_status tdbg_input_read(const tdbg_input *input, size_t index, uint64_t start, uint64_t count,
                            double *out, struct tdbg_error *error)
{
    const struct td_tensor *tensor = NULL;
    TD_TRY(range_of(input, index, start, count, &tensor, error));
    TD_TRY(td_load_f64(tensor, (int64_t)start, (int64_t)count, out, error));
    return td_input_verify(tensor, error);
}

tdbg_status tdbg_input_elements(const tdbg_input *input, size_t index, uint64_t start, uint64_t count,
                                void *out, struct tdbg_error *error)
{
    const struct td_tensor *tensor = NULL;
    TD_TRY(range_of(input, index, start, count, &tensor, error));
    TD_TRY(td_load(tensor, (int64_t)start, (int64_t)count, out, error));
    return td_input_verify(tensor, error);
}

const void *tdbg_input_borrow(const tdbg_input *input, size_t index)
{
    if (index >= td_input_count(input->input))
        return NULL;
    return td_direct(td_input_tensor(input->input, index));
}

tdbg_status tdbg_input_verify(const tdbg_input *input, size_t index, struct tdbg_error *error)
{
    const struct td_tensor *tensor = NULL;
    TD_TRY(tensor_at(input, index, &tensor, error));
    return td_input_verify(tensor, error);
}

tdbg_status tdbg_input_stats(const tdbg_input *input, size_t index, struct tdbg_stats *out,
                             struct tdbg_error *error)
{
    const struct td_tensor *tensor = NULL;
    TD_TRY(tensor_at(input, index, &tensor, error));
    return td_input_stats(tensor, input->pool, NULL, out, error);
}
