/* arena.h: memory that is freed all at once, with a cap on the whole.
 *
 * For descriptors, names and parsed graphs, whose parts live and die together. Not for tensor data.
 */
#ifndef TD_BASE_ARENA_H
#define TD_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct td_arena {
    struct td_arena_chunk *chunks; /* newest first */
    size_t used, limit;            /* bytes handed out, and the most that may be */
};

void td_arena_init(struct td_arena *a, size_t limit);
void td_arena_release(struct td_arena *a);

/* Takes over all memory of `from`, which is empty afterwards. False, and nothing moved, when that would pass
 * the limit. */
bool td_arena_join(struct td_arena *a, struct td_arena *from);

/* Zeroed, aligned for any type. NULL when memory or the limit is exhausted. */
void *td_arena_alloc(struct td_arena *a, size_t size);
void *td_arena_array(struct td_arena *a, size_t count, size_t size);

char *td_arena_strdup(struct td_arena *a, const char *text);
char *td_arena_strndup(struct td_arena *a, const char *text, size_t length);
char *td_arena_printf(struct td_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes over everything `from` handed out, which lives on in `into`; `from` is left empty. False, and nothing
 * moved, when the limit of `into` is too small. */
bool td_arena_absorb(struct td_arena *into, struct td_arena *from);

#endif
