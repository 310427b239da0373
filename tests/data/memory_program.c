/* memory_program.c: what the tests of `tdbg memory` watch: programs that use memory in a known way.
 *
 *     memory_program reference SEED   random allocations of all kinds, counted here; prints the largest sum
 *     memory_program leak             loses a block every tenth turn, beside a cache and honest work
 *     memory_program fragment SIZE    frees every second block and wants another; all are gone at the end
 *     memory_program threads N        N threads, each with blocks of its own and some of its neighbour's
 *     memory_program fork             a child of its own that allocates much more
 *     memory_program exec PROGRAM     becomes another program
 *     memory_program million          10^6 allocations
 *     memory_program hold BYTES       allocates, says so, and waits
 *     memory_program snapshots        names three moments
 *     memory_program status N         ends with N
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void tdbg_malloc_snapshot(const char *name) __attribute__((weak));

#define NOINLINE __attribute__((noinline))

static NOINLINE void *wrapper(size_t size)
{
    void *p = malloc(size);
    if (!p)
        exit(99);
    memset(p, 1, size);
    return p;
}

/* --- reference ------------------------------------------------------------------------------------------ */

enum { BLOCKS = 3000, TURNS = 60000 };

static struct {
    void *p;
    size_t size;
} blocks[BLOCKS];

static size_t live, peak;

static void count(int i, void *p, size_t size)
{
    live = live - blocks[i].size + size;
    peak = live > peak ? live : peak;
    blocks[i].p = p;
    blocks[i].size = size;
}

static void renew(int i, size_t size)
{
    void *p = NULL;
    free(blocks[i].p);
    count(i, NULL, 0);
    switch (rand() % 6) {
    case 0:
        p = calloc(1, size);
        break;
    case 1:
        p = aligned_alloc(64, size = (size + 63) / 64 * 64);
        break;
    case 2:
        if (posix_memalign(&p, 256, size) != 0)
            exit(98);
        break;
    case 3:
        p = memalign(32, size);
        break;
    case 4:
        p = reallocarray(NULL, 1, size);
        break;
    default:
        p = malloc(size);
    }
    count(i, p, size);
}

static int reference(unsigned seed)
{
    srand(seed);
    for (int turn = 0; turn < TURNS; turn++) {
        int i = rand() % BLOCKS;
        size_t size = rand() % 50 ? 1 + (size_t)rand() % 4000 : 1 + (size_t)rand() % 400000;
        if (rand() % 4)
            renew(i, size);
        else
            count(i, realloc(blocks[i].p, size), size);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i].p);
    char text[64];
    int length = snprintf(text, sizeof text, "%zu\n", peak);
    return write(1, text, (size_t)length) == length ? 0 : 97;
}

/* --- leak ----------------------------------------------------------------------------------------------- */

static void *cache[50];

static NOINLINE void fill_cache(void)
{
    for (int i = 0; i < 50; i++)
        cache[i] = wrapper(20000);
}

static NOINLINE void *work(void)
{
    return wrapper(3000);
}

static NOINLINE void lose(void)
{
    void *volatile p = wrapper(700);
    (void)p;
}

static int leak(void)
{
    fill_cache();
    for (int i = 0; i < 10000; i++) {
        void *p = work();
        if (i % 10 == 0)
            lose();
        free(p);
    }
    return 0;
}

/* --- fragment ------------------------------------------------------------------------------------------- */

enum { PAIRS = 8000 };
static void *kept[PAIRS], *dropped[PAIRS];

static NOINLINE void *make_kept(size_t size)
{
    return wrapper(size);
}

static NOINLINE void *make_dropped(size_t size)
{
    return wrapper(size);
}

static int fragment(size_t size)
{
    for (int i = 0; i < PAIRS; i++) {
        kept[i] = make_kept(size);
        dropped[i] = make_dropped(size);
    }
    for (int i = 0; i < PAIRS; i++)
        free(dropped[i]);
    free(wrapper(size * 3)); /* fits in none of the holes */
    for (int i = 0; i < PAIRS; i++)
        free(kept[i]);
    return 0;
}

/* --- threads, processes --------------------------------------------------------------------------------- */

enum { EACH = 20000, SHARED = 256 };
static _Atomic(void *) shared[SHARED];

static void *thread(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    for (int i = 0; i < EACH; i++) {
        int place = rand_r(&seed) % SHARED;
        void *p = malloc(100 + (size_t)rand_r(&seed) % 1000);
        free(__atomic_exchange_n((void **)&shared[place], p, __ATOMIC_ACQ_REL)); /* often another thread's */
    }
    return NULL;
}

static int threads(int n)
{
    pthread_t ids[64];
    for (int i = 0; i < n; i++)
        pthread_create(&ids[i], NULL, thread, (void *)(size_t)(i + 1));
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < SHARED; i++)
        free(shared[i]);
    return 0;
}

static int forked(void)
{
    void *before = wrapper(100000);
    pid_t pid = fork();
    if (pid == 0) {
        free(before); /* its copy, not its parent's */
        void *p[20];
        for (int i = 0; i < 20; i++)
            p[i] = wrapper(50000);
        for (int i = 0; i < 20; i++)
            free(p[i]);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    void *after = wrapper(200000);
    free(before);
    free(after);
    return 0;
}

static int million(void)
{
    void *ring[64] = {0};
    for (int i = 0; i < 1000000; i++) {
        free(ring[i % 64]);
        ring[i % 64] = malloc(16 + (size_t)i % 500);
    }
    for (int i = 0; i < 64; i++)
        free(ring[i]);
    return 0;
}

static int hold(size_t bytes)
{
    void *p = wrapper(bytes);
    (void)!write(1, "holding\n", 8);
    for (;;)
        pause();
    free(p);
}

static int snapshots(void)
{
    if (!tdbg_malloc_snapshot)
        return 96;
    void *a = wrapper(1000);
    tdbg_malloc_snapshot("one");
    void *b = wrapper(50000);
    tdbg_malloc_snapshot("two");
    free(a);
    free(b);
    tdbg_malloc_snapshot("three");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(what, "reference") == 0)
        return reference((unsigned)number);
    if (strcmp(what, "leak") == 0)
        return leak();
    if (strcmp(what, "fragment") == 0)
        return fragment(number);
    if (strcmp(what, "threads") == 0)
        return threads((int)number);
    if (strcmp(what, "fork") == 0)
        return forked();
    if (strcmp(what, "exec") == 0)
        return execvp(argv[2], argv + 2);
    if (strcmp(what, "million") == 0)
        return million();
    if (strcmp(what, "hold") == 0)
        return hold(number);
    if (strcmp(what, "snapshots") == 0)
        return snapshots();
    return (int)number;
}
