/* shim.h: the parts of libtdbg-malloc.so; private to src/shim.
 *
 * The library lives inside somebody else's program, below everything: it may be called before main, in any
 * thread, in a signal handler, during exit. So it calls nothing that allocates (and where a call might, a
 * flag of the thread keeps it from noting itself), never fails the program, and keeps errno.
 */
#ifndef TD_SHIM_SHIM_H
#define TD_SHIM_SHIM_H

#include "shim/ring.h"

#include <stdbool.h>
#include <stddef.h>

enum { CACHE_ENTRIES = 4096 };

/* A stack seen before: the frame of the allocation function, and where above it the return addresses lie. */
struct cached_stack {
    uintptr_t frame, caller;
    uint32_t site;
    uint32_t offsets[TD_SHIM_FRAMES]; /* from the frame; 0: not found on the stack */
};

/* What a thread has of its own; in a mapping, as it must not come from malloc. */
struct shim_thread {
    struct shim_thread *next; /* among those without a thread */
    struct cached_stack cache[CACHE_ENTRIES];
};

/* shim_record.c: events into the ring. `frame` is that of the allocation function, whose caller is meant. */
void td_shim_note(const void *address, uint64_t bytes, const void *frame);

/* shim_sites.c: the number of the stack above `frame`; 0 when there is no room for another. */
uint32_t td_shim_site(struct td_shim_place *place, struct shim_thread *thread, const void *frame);

/* In a new process: nothing is known of its place. */
void td_shim_forget_sites(void);

#endif
