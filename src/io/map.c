/* map.c: mappings and the SIGBUS guard; see map.h.
 *
 * The handler runs in the middle of anything, so it takes no lock and allocates nothing: it walks a table of
 * address ranges that only ever grows, in linked segments, and is written so that a reader without a lock
 * sees a slot either empty or whole (`begin` is published last and withdrawn first). A fault inside one of
 * our ranges puts an anonymous zero page over the lost one and sets the slot's flag.
 *
 * The guard is the one piece of state of the whole process in the library: a signal handler has no other
 * place to look. Segments are never freed.
 */
#include "io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENT_SLOTS = 1024 };

/* The kernel gives a process 65530 mappings (vm.max_map_count), and a folder may hold a million files. Well
 * before the last one, small files are read instead of mapped. */
enum { MANY_MAPPINGS = 50000, SMALL_FILE = 256 << 10 };

struct td_map_slot {
    _Atomic uintptr_t begin, end; /* begin 0: free */
    atomic_bool shrunk;
    atomic_bool writable;
    struct td_map_slot *next_free;
};

struct segment {
    struct td_map_slot slots[SEGMENT_SLOTS];
    struct segment *next; /* set before the segment is published */
};

static struct {
    pthread_once_t once;
    pthread_mutex_t lock; /* of `unused` and of adding segments; never taken by the handler */
    _Atomic(struct segment *) segments;
    struct td_map_slot *unused;
    atomic_size_t mapped; /* slots in use */
    atomic_bool faulted;  /* ever: lets td_map_shrunk answer at once in the usual case */
    struct sigaction previous;
    uintptr_t page;
} guard = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct td_map_slot *slot_of(uintptr_t address)
{
    for (struct segment *s = atomic_load(&guard.segments); s; s = s->next)
        for (size_t i = 0; i < SEGMENT_SLOTS; i++) {
            struct td_map_slot *slot = &s->slots[i];
            uintptr_t begin = atomic_load(&slot->begin);
            if (begin != 0 && address >= begin && address < atomic_load(&slot->end))
                return slot;
        }
    return NULL;
}

static bool mend(uintptr_t address)
{
    struct td_map_slot *slot = slot_of(address);
    if (!slot)
        return false;
    int protection = PROT_READ | (atomic_load(&slot->writable) ? PROT_WRITE : 0);
    void *page = (void *)(address & ~(guard.page - 1));
    if (mmap(page, guard.page, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    atomic_store(&slot->shrunk, true);
    atomic_store(&guard.faulted, true);
    return true;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    bool mended = mend((uintptr_t)info->si_addr);
    errno = saved;
    if (mended)
        return;
    if (guard.previous.sa_flags & SA_SIGINFO)
        guard.previous.sa_sigaction(number, info, context);
    else if (guard.previous.sa_handler != SIG_DFL && guard.previous.sa_handler != SIG_IGN)
        guard.previous.sa_handler(number);
    else
        signal(number, SIG_DFL); /* the fault comes again and ends the process as it would have */
}

static void install(void)
{
    guard.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &guard.previous);
}

static bool add_segment(void)
{
    struct segment *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    for (size_t i = 0; i < SEGMENT_SLOTS; i++) {
        s->slots[i].next_free = guard.unused;
        guard.unused = &s->slots[i];
    }
    s->next = atomic_load(&guard.segments);
    atomic_store(&guard.segments, s);
    return true;
}

static struct td_map_slot *slot_take(const void *data, size_t size, bool writable)
{
    pthread_once(&guard.once, install);
    pthread_mutex_lock(&guard.lock);
    struct td_map_slot *slot = guard.unused || add_segment() ? guard.unused : NULL;
    if (slot)
        guard.unused = slot->next_free;
    pthread_mutex_unlock(&guard.lock);
    if (!slot)
        return NULL;
    atomic_fetch_add(&guard.mapped, 1);
    atomic_store(&slot->shrunk, false);
    atomic_store(&slot->writable, writable);
    atomic_store(&slot->end, (uintptr_t)data + size);
    atomic_store(&slot->begin, (uintptr_t)data);
    return slot;
}

static void slot_give(struct td_map_slot *slot)
{
    atomic_store(&slot->begin, 0);
    atomic_fetch_sub(&guard.mapped, 1);
    pthread_mutex_lock(&guard.lock);
    slot->next_free = guard.unused;
    guard.unused = slot;
    pthread_mutex_unlock(&guard.lock);
}

static tdbg_status map_range(struct td_map *out, int fd, uint64_t offset, size_t size, bool writable,
                             struct tdbg_error *error)
{
    if (size == 0) {
        *out = (struct td_map){0};
        return TDBG_OK;
    }
    int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void *data = mmap(NULL, size, protection, writable ? MAP_SHARED : MAP_PRIVATE, fd, (off_t)offset);
    if (data == MAP_FAILED)
        return td_fail_errno(error, "cannot map");
    struct td_map_slot *slot = slot_take(data, size, writable);
    if (!slot) {
        munmap(data, size);
        return td_fail_nomem(error);
    }
    *out = (struct td_map){.data = data, .size = size, .slot = slot};
    return TDBG_OK;
}

tdbg_status td_map_fd(struct td_map *out, int fd, uint64_t offset, size_t size, struct tdbg_error *error)
{
    return map_range(out, fd, offset, size, false, error);
}

tdbg_status td_map_fd_writable(struct td_map *out, int fd, size_t size, struct tdbg_error *error)
{
    return map_range(out, fd, 0, size, true, error);
}

static tdbg_status read_file(struct td_map *out, int fd, size_t size, struct tdbg_error *error)
{
    uint8_t *data = malloc(size);
    if (!data)
        return td_fail_nomem(error);
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(fd, data + at, size - at, (off_t)at);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            free(data);
            return got < 0 ? td_fail_errno(error, "cannot read")
                           : td_fail(error, TDBG_IO, "the file was cut short while it was read");
        }
        at += got > 0 ? (size_t)got : 0;
    }
    *out = (struct td_map){.data = data, .size = size};
    return TDBG_OK;
}

tdbg_status td_map_open(struct td_map *out, const char *path, struct tdbg_error *error)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return td_fail_errno(error, "cannot open");
    struct stat info;
    tdbg_status status;
    if (fstat(fd, &info) != 0)
        status = td_fail_errno(error, "cannot open");
    else if (!S_ISREG(info.st_mode))
        status = td_fail(error, TDBG_IO, "not a regular file");
    else if (info.st_size > 0 && info.st_size <= SMALL_FILE && atomic_load(&guard.mapped) >= MANY_MAPPINGS)
        status = read_file(out, fd, (size_t)info.st_size, error);
    else
        status = map_range(out, fd, 0, (size_t)info.st_size, false, error);
    close(fd);
    return status;
}

void td_map_close(struct td_map *map)
{
    if (map->slot) {
        slot_give(map->slot);
        munmap((void *)(uintptr_t)map->data, map->size);
    } else {
        free((void *)(uintptr_t)map->data);
    }
    *map = (struct td_map){0};
}

bool td_map_shrunk(const void *data)
{
    if (!atomic_load(&guard.faulted))
        return false;
    struct td_map_slot *slot = slot_of((uintptr_t)data);
    return slot && atomic_load(&slot->shrunk);
}
