/* shim_record.c: finds the shared memory, takes a place in it, and writes events into its ring.
 *
 * Everything starts with the first allocation, when libc has set up its environment: other libraries allocate
 * before our constructor would run. A forked child takes a place of its own; until it has one it is silent.
 * What it inherited belongs to its parent's report.
 *
 * A reader that is gone (tdbg was killed) must not hold the program: whoever waits for a slot looks now and
 * then whether it lives, and switches recording off.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { UNTRIED, STARTING, ON, OFF };
enum { SPINS = 64, MOST_PAUSES = 300000 };

static struct {
    _Atomic int state;
    struct td_shim_header *header;
    struct td_shim_place *place;
    char path[64]; /* /proc/READER/fd/N */
    pthread_key_t key;
    atomic_flag lock; /* of `idle` */
    struct shim_thread *idle;
} shim = {.lock = ATOMIC_FLAG_INIT};

/* Initial-exec: the general way of reaching them may allocate. */
static __thread bool busy __attribute__((tls_model("initial-exec")));
static __thread struct shim_thread *mine __attribute__((tls_model("initial-exec")));

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- A place -------------------------------------------------------------------------------------------- */

static void *map_shared(size_t size, uint64_t offset)
{
    int fd = open(shim.path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static int free_place(void)
{
    for (int i = 0; i < TD_SHIM_PLACES; i++) {
        uint32_t expected = TD_SHIM_FREE;
        if (atomic_compare_exchange_strong(&shim.header->states[i], &expected, TD_SHIM_TAKEN))
            return i;
    }
    atomic_fetch_add(&shim.header->unseen, 1);
    return -1;
}

static bool take_place(void)
{
    int i = free_place();
    if (i < 0)
        return false;
    shim.place = map_shared(sizeof *shim.place, TD_SHIM_OFFSET(i));
    if (!shim.place) {
        atomic_store(&shim.header->states[i], TD_SHIM_FREE);
        return false;
    }
    struct td_shim_place *p = shim.place;
    ssize_t length = readlink("/proc/self/exe", p->program, sizeof p->program - 1);
    p->program[length > 0 ? length : 0] = 0;
    p->pid = getpid();
    p->start_ns = now();
    p->heap = (uint64_t)(uintptr_t)sbrk(0);
    atomic_store(&p->site_count, 1);
    atomic_store(&shim.header->states[i], TD_SHIM_LIVE);
    return true;
}

/* --- Threads -------------------------------------------------------------------------------------------- */

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&shim.lock, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&shim.lock, memory_order_release);
}

static void retire(void *thread)
{
    struct shim_thread *t = thread;
    mine = NULL;
    lock();
    t->next = shim.idle;
    shim.idle = t;
    unlock();
}

static struct shim_thread *this_thread(void)
{
    if (__builtin_expect(mine != NULL, 1))
        return mine;
    lock();
    struct shim_thread *t = shim.idle;
    if (t)
        shim.idle = t->next;
    unlock();
    if (!t) {
        t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (t == MAP_FAILED)
            return NULL;
    }
    mine = t;
    pthread_setspecific(shim.key, t);
    return t;
}

/* --- Start and fork ------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    lock();
}

static void after_fork_parent(void)
{
    unlock();
}

/* The only thread left is this one. The parent's place stays mapped by the parent alone. */
static void after_fork_child(void)
{
    unlock();
    bool was_busy = busy;
    busy = true;
    munmap(shim.place, sizeof *shim.place);
    shim.place = NULL;
    shim.idle = NULL;
    td_shim_forget_sites();
    if (mine) /* what it remembers are numbers of the parent's sites */
        madvise(mine->cache, sizeof mine->cache, MADV_DONTNEED);
    if (mine)
        memset(mine->cache, 0, sizeof mine->cache);
    if (!take_place())
        atomic_store(&shim.state, OFF);
    busy = was_busy;
}

static bool attach(void)
{
    const char *path = getenv(TD_SHIM_VARIABLE);
    if (!path || strlen(path) >= sizeof shim.path)
        return false;
    strcpy(shim.path, path);
    shim.header = map_shared(TD_SHIM_HEADER, 0);
    if (!shim.header || shim.header->magic != TD_SHIM_MAGIC || !take_place())
        return false;
    if (pthread_key_create(&shim.key, retire) != 0)
        return false;
    return pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

/* True when events are wanted. */
static bool started(void)
{
    int state = atomic_load_explicit(&shim.state, memory_order_acquire);
    if (__builtin_expect(state == ON, 1))
        return true;
    if (state != UNTRIED || !environ)
        return false;
    if (!atomic_compare_exchange_strong(&shim.state, &state, STARTING))
        return false;
    bool attached = attach();
    atomic_store(&shim.state, attached ? ON : OFF);
    return attached;
}

/* A program that allocates nothing has a report too. */
__attribute__((constructor)) static void start_with_program(void)
{
    busy = true;
    (void)started();
    busy = false;
}

/* --- Events --------------------------------------------------------------------------------------------- */

static bool reader_lives(void)
{
    return kill(shim.header->reader, 0) == 0 || errno != ESRCH;
}

/* A call that no cancelled thread ends in: one that never finished its event would hold up all others. */
static void pause_a_little(void)
{
    struct timespec pause = {.tv_nsec = 50000};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* False when nobody will ever free the slot: the reader is gone, or has been stuck for half a minute. */
static bool wait_for(struct td_shim_event *slot, uint32_t turn)
{
    for (int tries = 0; atomic_load_explicit(&slot->turn, memory_order_acquire) != turn; tries++) {
        if (tries < SPINS)
            continue;
        if (tries == MOST_PAUSES || (tries % 1024 == 0 && !reader_lives())) {
            atomic_store(&shim.state, OFF);
            return false;
        }
        pause_a_little();
    }
    return true;
}

static void publish(uint64_t address, uint64_t bytes, uint32_t site)
{
    struct td_shim_place *p = shim.place;
    int64_t time_ns = now();
    uint64_t ticket = atomic_fetch_add_explicit(&p->head, 1, memory_order_acq_rel);
    struct td_shim_event *slot = &p->slots[ticket % TD_SHIM_SLOTS];
    uint32_t turn = (uint32_t)(ticket / TD_SHIM_SLOTS) * 2;
    if (!wait_for(slot, turn))
        return;
    slot->site = site;
    slot->address = address;
    slot->bytes = bytes;
    slot->time_ns = time_ns;
    atomic_store_explicit(&slot->turn, turn + 1, memory_order_release);
}

void td_shim_note(const void *address, uint64_t bytes, const void *frame)
{
    if (busy) {
        if (atomic_load(&shim.state) == ON && shim.place)
            atomic_fetch_add(&shim.place->dropped, 1);
        return;
    }
    int code = errno;
    busy = true;
    struct shim_thread *thread;
    if (started() && (thread = this_thread()))
        publish((uint64_t)(uintptr_t)address, bytes, bytes ? td_shim_site(shim.place, thread, frame) : 0);
    busy = false;
    errno = code;
}

/* A program that knows it is watched may name a moment:
 *     void tdbg_malloc_snapshot(const char *name) __attribute__((weak)); */
__attribute__((visibility("default"))) void tdbg_malloc_snapshot(const char *name);

void tdbg_malloc_snapshot(const char *name)
{
    if (busy || !name)
        return;
    busy = true;
    if (started()) {
        lock();
        uint32_t number = atomic_load(&shim.place->name_count);
        if (number < TD_SHIM_NAMES) {
            strncpy(shim.place->names[number], name, TD_SHIM_NAME - 1);
            atomic_store(&shim.place->name_count, number + 1);
        }
        unlock();
        if (number < TD_SHIM_NAMES)
            publish(0, (uint64_t)number + 1, 0);
    }
    busy = false;
}
