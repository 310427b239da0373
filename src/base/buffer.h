/* buffer.h: a growing run of bytes with a cap.
 *
 * Like the error of a cursor, the error of a buffer is sticky: after an append that would pass the limit, or
 * for which there was no memory, `failed` is set and further appends do nothing. Always NUL-terminated
 * beyond `size`, so that text can be used as a C string.
 */
#ifndef TD_BASE_BUFFER_H
#define TD_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct td_buffer {
    char *data; /* NULL until the first append; use td_buffer_text for text */
    size_t size, capacity, limit;
    bool failed;
};

void td_buffer_init(struct td_buffer *b, size_t limit);
void td_buffer_release(struct td_buffer *b);
void td_buffer_clear(struct td_buffer *b);
void td_buffer_append(struct td_buffer *b, const void *bytes, size_t count);
void td_buffer_puts(struct td_buffer *b, const char *text);
void td_buffer_printf(struct td_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Room for `count` bytes at the end, already counted in `size`; NULL on failure. */
char *td_buffer_extend(struct td_buffer *b, size_t count);

/* The content as a C string, never NULL. */
const char *td_buffer_text(const struct td_buffer *b);

/* Hands the memory to the caller (free) and leaves the buffer empty. NULL when the buffer failed. */
char *td_buffer_take(struct td_buffer *b);

#endif
