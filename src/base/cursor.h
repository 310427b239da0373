/* cursor.h: reading little-endian fields out of bytes that may lie about their length.
 *
 * The error is sticky: a read past the end sets `bad`, returns zeros and moves no further, so that a parser
 * reads a whole record and asks once. Byte-wise reads: no alignment, no struct casts.
 */
#ifndef TD_BASE_CURSOR_H
#define TD_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_cursor {
    const uint8_t *data;
    size_t size, at;
    bool bad;
};

/* An empty file has no data to point at; arithmetic needs a pointer all the same. */
static inline struct td_cursor td_cursor_init(const void *data, size_t size)
{
    return (struct td_cursor){.data = (const uint8_t *)(data ? data : ""), .size = size};
}

static inline size_t td_cursor_left(const struct td_cursor *c)
{
    return c->size - c->at;
}

/* The next `count` bytes, or NULL and `bad`. Zero bytes give a valid pointer. */
static inline const uint8_t *td_cursor_take(struct td_cursor *c, uint64_t count)
{
    if (c->bad || count > td_cursor_left(c)) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->data + c->at;
    c->at += (size_t)count;
    return p;
}

static inline uint64_t td_cursor_uint(struct td_cursor *c, int width)
{
    const uint8_t *p = td_cursor_take(c, (uint64_t)width);
    uint64_t value = 0;
    if (p)
        for (int i = width - 1; i >= 0; i--)
            value = value << 8 | p[i];
    return value;
}

static inline uint8_t td_cursor_u8(struct td_cursor *c)
{
    return (uint8_t)td_cursor_uint(c, 1);
}

static inline uint16_t td_cursor_u16(struct td_cursor *c)
{
    return (uint16_t)td_cursor_uint(c, 2);
}

static inline uint32_t td_cursor_u32(struct td_cursor *c)
{
    return (uint32_t)td_cursor_uint(c, 4);
}

static inline uint64_t td_cursor_u64(struct td_cursor *c)
{
    return td_cursor_uint(c, 8);
}

#endif
