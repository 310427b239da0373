/* catalog.c: the list of tensors a reader fills. See tensor.h. */
#include "tensor/tensor.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void td_catalog_init(struct td_catalog *c)
{
    *c = (struct td_catalog){0};
    td_arena_init(&c->arena, TD_MAX_METADATA);
}

void td_catalog_release(struct td_catalog *c)
{
    td_arena_release(&c->arena);
    free(c->tensors);
    free(c->skips);
    td_catalog_init(c);
}

/* Makes room for one more element of `size` bytes; false when there is no memory. */
static bool grow(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *moved = reallocarray(*items, wanted, size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = wanted;
    return true;
}

static tdbg_status take_name(struct td_catalog *c, const char *name, const char **out,
                             struct tdbg_error *error)
{
    size_t length = name ? strlen(name) : 0;
    if (length > TD_MAX_NAME)
        return td_fail(error, TDBG_LIMIT, "a name of %zu bytes, %d at most", length, TD_MAX_NAME);
    char *copy = td_arena_strndup(&c->arena, name, length);
    if (!copy)
        return td_fail(error, TDBG_LIMIT, "more names and descriptors than tdbg takes on");
    td_utf8_clean(copy);
    *out = copy;
    return TDBG_OK;
}

tdbg_status td_catalog_add(struct td_catalog *c, const char *name, struct td_tensor tensor,
                           struct tdbg_error *error)
{
    if (c->count >= TD_MAX_TENSORS)
        return td_fail(error, TDBG_LIMIT, "more than %llu tensors", (unsigned long long)TD_MAX_TENSORS);
    TD_TRY(take_name(c, name, &tensor.name, error));
    if (!grow((void **)&c->tensors, &c->capacity, c->count, sizeof *c->tensors))
        return td_fail_nomem(error);
    c->tensors[c->count++] = tensor;
    return TDBG_OK;
}

tdbg_status td_catalog_add_view(struct td_catalog *c, const char *name, const char *format,
                                const struct td_view *view, struct tdbg_error *error)
{
    const struct td_dtype_facts *facts = td_dtype_facts(view->dtype);
    struct td_tensor tensor = {
        .format = format,
        .dtype = view->dtype,
        .shape = view->shape,
        .count = view->count,
        .bytes = (uint64_t)view->count / facts->block * facts->bytes,
        .view = *view,
    };
    return td_catalog_add(c, name, tensor, error);
}

tdbg_status td_catalog_skip(struct td_catalog *c, const char *name, struct tdbg_error *error,
                            const char *format, ...)
{
    if (c->skip_count >= TD_MAX_TENSORS)
        return td_fail(error, TDBG_LIMIT, "more than %llu things to skip",
                       (unsigned long long)TD_MAX_TENSORS);
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);

    struct td_skip skip;
    TD_TRY(take_name(c, name, &skip.name, error));
    TD_TRY(take_name(c, reason, &skip.reason, error));
    if (!grow((void **)&c->skips, &c->skip_capacity, c->skip_count, sizeof *c->skips))
        return td_fail_nomem(error);
    c->skips[c->skip_count++] = skip;
    return TDBG_OK;
}
