/* shim.c: the allocation functions of libtdbg-malloc.so, which stands in front of those of the program.
 *
 * Each does what it must by the next library's function of the same name, and notes it. The next one is found
 * by dlsym(RTLD_NEXT) and not taken from glibc by its private names: a program that brings an allocator of
 * its own (jemalloc, tcmalloc) keeps it. dlsym itself may allocate; what is asked for meanwhile comes from a
 * small buffer that is never given back.
 */
#include "shim/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIM_API __attribute__((visibility("default")))
#define HERE __builtin_frame_address(0)

enum { BOOTSTRAP = 64 << 10 };

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*usable)(void *);
    bool looking;
    _Alignas(64) char buffer[BOOTSTRAP];
    size_t used;
} next;

static void *bootstrap(size_t size)
{
    size_t start = (next.used + 63) & ~(size_t)63;
    if (size > BOOTSTRAP || start > BOOTSTRAP - size)
        return NULL;
    next.used = start + size;
    return next.buffer + start;
}

static bool is_bootstrap(const void *p)
{
    return (const char *)p >= next.buffer && (const char *)p < next.buffer + BOOTSTRAP;
}

/* The first allocation comes before there are threads. */
static bool ready(void)
{
    if (__builtin_expect(next.malloc != NULL, 1))
        return true;
    if (next.looking)
        return false;
    next.looking = true;
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    *(void **)&next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&next.usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    next.looking = false;
    return next.malloc != NULL;
}

static void *noted(void *p, size_t size, const void *frame)
{
    if (p)
        td_shim_note(p, size ? size : 1, frame);
    return p;
}

SHIM_API void *malloc(size_t size)
{
    return ready() ? noted(next.malloc(size), size, HERE) : bootstrap(size);
}

SHIM_API void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (ready())
        return noted(next.calloc(count, size), count * size, HERE);
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : bootstrap(bytes);
}

SHIM_API void free(void *p)
{
    if (!p || is_bootstrap(p) || !ready())
        return;
    td_shim_note(p, 0, HERE);
    next.free(p);
}

/* Out of the buffer into real memory. Its size is not known, but what lies behind it is readable. */
static void *move_out(void *p, size_t size, const void *frame)
{
    size_t most = (size_t)(next.buffer + BOOTSTRAP - (char *)p);
    void *moved = ready() ? noted(next.malloc(size), size, frame) : bootstrap(size);
    if (moved)
        memcpy(moved, p, size < most ? size : most);
    return moved;
}

static void *resize(void *p, size_t size, const void *frame)
{
    if (p && is_bootstrap(p))
        return move_out(p, size, frame);
    if (!ready())
        return bootstrap(size);
    if (p)
        td_shim_note(p, 0, frame);
    void *moved = next.realloc(p, size);
    if (!moved && p && size) /* it failed, and the old block lives on */
        td_shim_note(p, next.usable ? next.usable(p) : 1, frame);
    return noted(moved, size, frame);
}

SHIM_API void *realloc(void *p, size_t size)
{
    return resize(p, size, HERE);
}

SHIM_API void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(p, bytes, HERE);
}

SHIM_API int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (!ready())
        return ENOMEM;
    int code = next.posix_memalign(out, alignment, size);
    if (code == 0)
        (void)noted(*out, size, HERE);
    return code;
}

SHIM_API void *aligned_alloc(size_t alignment, size_t size)
{
    return ready() ? noted(next.aligned_alloc(alignment, size), size, HERE) : NULL;
}

SHIM_API void *memalign(size_t alignment, size_t size)
{
    return ready() ? noted(next.memalign(alignment, size), size, HERE) : NULL;
}

SHIM_API void *valloc(size_t size)
{
    return ready() ? noted(next.memalign((size_t)sysconf(_SC_PAGESIZE), size), size, HERE) : NULL;
}

SHIM_API void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole;
    if (__builtin_add_overflow(size, page - 1, &whole) || !ready()) {
        errno = ENOMEM;
        return NULL;
    }
    whole &= ~(page - 1);
    return noted(next.memalign(page, whole), whole, HERE);
}

SHIM_API size_t malloc_usable_size(void *p)
{
    if (!p || is_bootstrap(p) || !ready() || !next.usable)
        return 0;
    return next.usable(p);
}
