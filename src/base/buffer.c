/* buffer.c: see buffer.h. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void td_buffer_init(struct td_buffer *b, size_t limit)
{
    *b = (struct td_buffer){.limit = limit};
}

void td_buffer_release(struct td_buffer *b)
{
    free(b->data);
    *b = (struct td_buffer){.limit = b->limit};
}

void td_buffer_clear(struct td_buffer *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = 0;
}

char *td_buffer_extend(struct td_buffer *b, size_t count)
{
    if (b->failed || count > b->limit - b->size) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->size + count + 1;
    if (need > b->capacity) {
        size_t capacity = b->capacity ? b->capacity : 64;
        while (capacity < need)
            capacity += capacity / 2;
        char *data = realloc(b->data, capacity);
        if (!data) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->capacity = capacity;
    }
    char *at = b->data + b->size;
    b->size += count;
    b->data[b->size] = 0;
    return at;
}

void td_buffer_append(struct td_buffer *b, const void *bytes, size_t count)
{
    char *at = td_buffer_extend(b, count);
    if (at && count)
        memcpy(at, bytes, count);
}

void td_buffer_puts(struct td_buffer *b, const char *text)
{
    td_buffer_append(b, text, strlen(text));
}

void td_buffer_printf(struct td_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        b->failed = true;
    } else {
        char *at = td_buffer_extend(b, (size_t)length);
        if (at)
            vsnprintf(at, (size_t)length + 1, format, again);
    }
    va_end(again);
}

const char *td_buffer_text(const struct td_buffer *b)
{
    return b->data ? b->data : "";
}

char *td_buffer_take(struct td_buffer *b)
{
    char *data = b->failed ? NULL : b->data ? b->data : calloc(1, 1);
    if (b->failed)
        free(b->data);
    *b = (struct td_buffer){.limit = b->limit};
    return data;
}
