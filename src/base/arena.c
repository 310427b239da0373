/* arena.c: see arena.h. Chunks double from 512 bytes to 1 MiB; a larger request gets a chunk of its own. */
#include "base/arena.h"

#include "base/checked.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 512, LAST_CHUNK = 1 << 20 };

struct td_arena_chunk {
    struct td_arena_chunk *next;
    size_t used, size;
    alignas(max_align_t) char data[];
};

void td_arena_init(struct td_arena *a, size_t limit)
{
    *a = (struct td_arena){.limit = limit};
}

void td_arena_release(struct td_arena *a)
{
    for (struct td_arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct td_arena){.limit = a->limit};
}

bool td_arena_join(struct td_arena *a, struct td_arena *from)
{
    if (from->used > a->limit - a->used)
        return false;
    struct td_arena_chunk **last = &a->chunks; /* behind ours: the newest chunk still has room */
    while (*last)
        last = &(*last)->next;
    *last = from->chunks;
    a->used += from->used;
    *from = (struct td_arena){.limit = from->limit};
    return true;
}

static struct td_arena_chunk *add_chunk(struct td_arena *a, size_t need)
{
    size_t size = a->chunks ? a->chunks->size * 2 : FIRST_CHUNK;
    if (size > LAST_CHUNK)
        size = LAST_CHUNK;
    if (size < need)
        size = need;
    struct td_arena_chunk *c = calloc(1, sizeof *c + size);
    if (!c)
        return NULL;
    c->size = size;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

void *td_arena_alloc(struct td_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > a->limit - a->used || a->limit - a->used - size < align)
        return NULL;
    size = (size + align - 1) / align * align;
    struct td_arena_chunk *c = a->chunks;
    if (!c || size > c->size - c->used) {
        c = add_chunk(a, size);
        if (!c)
            return NULL;
    }
    void *p = c->data + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void *td_arena_array(struct td_arena *a, size_t count, size_t size)
{
    size_t bytes;
    return td_mul_size(count, size, &bytes) ? td_arena_alloc(a, bytes) : NULL;
}

char *td_arena_strndup(struct td_arena *a, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = td_arena_alloc(a, length + 1);
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *td_arena_strdup(struct td_arena *a, const char *text)
{
    return td_arena_strndup(a, text, strlen(text));
}

char *td_arena_printf(struct td_arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : td_arena_alloc(a, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

bool td_arena_absorb(struct td_arena *into, struct td_arena *from)
{
    if (from->used > into->limit - into->used)
        return false;
    /* Behind the newest chunk, which still has room that is worth using. */
    struct td_arena_chunk **end = into->chunks ? &into->chunks->next : &into->chunks;
    struct td_arena_chunk *rest = *end;
    *end = from->chunks;
    while (*end)
        end = &(*end)->next;
    *end = rest;
    into->used += from->used;
    from->chunks = NULL;
    td_arena_release(from);
    return true;
}
