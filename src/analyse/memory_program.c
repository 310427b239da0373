/* memory_program.c: starts a program with libtdbg-malloc.so in front, and reads what it tells (see
 * shim/ring.h).
 *
 * The program keeps its input, output, descriptors and signals; two variables of its environment are all it
 * could notice. One loop empties the rings of all its processes in turn and looks whether they live. It ends
 * with the program itself: what that leaves running in the background is not waited for.
 *
 * A killed process tells nothing more, but what it had told is in the ring: only an event it was just
 * writing is missing, and skipped.
 */
#include "analyse/memory_story.h"
#include "analyse/memory_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 8192, MOST_STORIES = 32, LOOK_EVERY = 64, MOST_NAMED = 300 };

/* Smaller blocks come from the allocator's pools, wherever these are. */
#define LEAST_MAPPING (UINT64_C(128) << 10)
/* The heap that grows at the program break; mappings are far from it. */
#define WIDEST_HEAP (UINT64_C(1) << 40)
#define HEAP_GRANULE (UINT64_C(64) << 10)

struct process {
    struct td_shim_place *place; /* NULL: nobody there */
    struct td_memory *memory;
    uint64_t tail; /* the next ticket to read */
};

struct watch {
    int fd;
    struct td_shim_header *header;
    struct process processes[TD_SHIM_PLACES];
    struct td_memory_book *book;
    const struct td_memory_wish *wish;
    pid_t child;
    bool ended; /* the child; its status is in the book */
};

/* --- Shared memory -------------------------------------------------------------------------------------- */

static tdbg_status share(struct watch *w, struct tdbg_error *error)
{
    w->fd = memfd_create("tdbg-malloc", MFD_CLOEXEC);
    if (w->fd < 0)
        return td_fail_errno(error, "cannot make shared memory");
    if (ftruncate(w->fd, (off_t)TD_SHIM_OFFSET(TD_SHIM_PLACES)) != 0)
        return td_fail_errno(error, "cannot make shared memory");
    void *p = mmap(NULL, TD_SHIM_HEADER, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (p == MAP_FAILED)
        return td_fail_errno(error, "cannot map shared memory");
    w->header = p;
    w->header->magic = TD_SHIM_MAGIC;
    w->header->reader = (int32_t)getpid();
    return TDBG_OK;
}

static void unshare_all(struct watch *w)
{
    for (int i = 0; i < TD_SHIM_PLACES; i++) {
        td_memory_close(&w->processes[i].memory);
        if (w->processes[i].place)
            munmap(w->processes[i].place, sizeof *w->processes[i].place);
    }
    if (w->header)
        munmap(w->header, TD_SHIM_HEADER);
    if (w->fd >= 0)
        close(w->fd);
}

/* --- Starting ------------------------------------------------------------------------------------------- */

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* Our environment with the two variables in it; entries are borrowed but for the last two. */
static char **make_environment(const struct watch *w, const char *shim)
{
    size_t count = 0, n = 0;
    while (environ[count])
        count++;
    char **list = calloc(count + 3, sizeof *list);
    const char *others = getenv("LD_PRELOAD");
    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_variable(environ[i], "LD_PRELOAD") && !is_variable(environ[i], TD_SHIM_VARIABLE))
            list[n++] = environ[i];
    char *preload = NULL, *file = NULL;
    if (asprintf(&preload, "LD_PRELOAD=%s%s%s", shim, others && *others ? ":" : "", others ? others : "") < 0)
        preload = NULL;
    if (asprintf(&file, TD_SHIM_VARIABLE "=/proc/%d/fd/%d", (int)getpid(), w->fd) < 0)
        file = NULL;
    if (!preload || !file) {
        free(preload);
        free(file);
        free(list);
        return NULL;
    }
    list[n++] = preload;
    list[n] = file;
    return list;
}

static void free_environment(char **list)
{
    size_t count = 0;
    while (list[count])
        count++;
    free(list[count - 1]);
    free(list[count - 2]);
    free(list);
}

static tdbg_status start(struct watch *w, char *const *arguments, const char *shim, struct tdbg_error *error)
{
    char **variables = make_environment(w, shim);
    if (!variables)
        return td_fail_nomem(error);
    int code = posix_spawnp(&w->child, arguments[0], NULL, NULL, arguments, variables);
    free_environment(variables);
    if (code == 0)
        return TDBG_OK;
    errno = code;
    tdbg_status status = td_fail_errno(error, "cannot start");
    td_error_prefix(error, arguments[0]);
    return status;
}

/* --- Reading -------------------------------------------------------------------------------------------- */

static enum td_memory_pool pool_of(const struct td_shim_place *place, uint64_t address, uint64_t bytes)
{
    if (place->heap && address >= place->heap && address - place->heap < WIDEST_HEAP)
        return TD_POOL_HEAP;
    return bytes >= LEAST_MAPPING ? TD_POOL_MAPPING : TD_POOL_UNKNOWN;
}

static tdbg_status take(struct process *p, const struct td_shim_event *slot, struct tdbg_error *error)
{
    const struct td_shim_place *place = p->place;
    int64_t time_ns = slot->time_ns - place->start_ns;
    if (slot->address == 0) {
        char name[TD_SHIM_NAME];
        memcpy(name, place->names[(slot->bytes - 1) % TD_SHIM_NAMES], sizeof name);
        name[sizeof name - 1] = 0;
        return td_memory_snapshot(p->memory, name, time_ns, error);
    }
    struct td_memory_event event = {.time_ns = time_ns,
                                    .address = slot->address,
                                    .bytes = slot->bytes,
                                    .owner = slot->site % TD_SHIM_SITES,
                                    .pool = pool_of(place, slot->address, slot->bytes)};
    return td_memory_add(p->memory, &event, error);
}

/* Up to a batch of events; *count says how many there were. A dead writer's unfinished events are skipped. */
static tdbg_status drain(struct process *p, bool dead, size_t *count, struct tdbg_error *error)
{
    uint64_t head = atomic_load_explicit(&p->place->head, memory_order_acquire);
    size_t n = 0;
    while (p->tail < head && n < BATCH) {
        struct td_shim_event *slot = &p->place->slots[p->tail % TD_SHIM_SLOTS];
        uint32_t turn = (uint32_t)(p->tail / TD_SHIM_SLOTS) * 2;
        bool filled = atomic_load_explicit(&slot->turn, memory_order_acquire) == turn + 1;
        if (!filled && !dead)
            break;
        if (filled)
            TD_TRY(take(p, slot, error));
        atomic_store_explicit(&slot->turn, turn + 2, memory_order_release);
        p->tail++;
        n++;
    }
    *count += n;
    return TDBG_OK;
}

static tdbg_status meet(struct watch *w, int i, struct tdbg_error *error)
{
    struct process *p = &w->processes[i];
    void *place =
        mmap(NULL, sizeof *p->place, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, (off_t)TD_SHIM_OFFSET(i));
    if (place == MAP_FAILED)
        return td_fail_errno(error, "cannot map shared memory");
    *p = (struct process){.place = place};
    TD_TRY(td_memory_open(&p->memory, HEAP_GRANULE, error));
    if (w->wish->from)
        td_memory_want(p->memory, w->wish->from, w->wish->to);
    return TDBG_OK;
}

/* --- The end of a process ------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* Owners that weigh less are not worth a look into the symbols: large libraries have half a million of them.
 */
static uint64_t least_weight(const struct td_memory *memory, uint64_t *weights, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weights[i] = td_memory_weight(memory, i);
    qsort(weights, count, sizeof *weights, descending);
    return count > MOST_NAMED && weights[MOST_NAMED - 1] ? weights[MOST_NAMED - 1] : 1;
}

static bool put_labels(const struct process *p, struct td_symbols *symbols, uint64_t least,
                       struct td_arena *arena, struct td_memory_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        labels[i].name = "many small ones";
        if (td_memory_weight(p->memory, i) >= least &&
            !td_symbols_label(symbols, &p->place->sites[i], arena, &labels[i]))
            return false;
    }
    return true;
}

/* Names of the call stacks that hold or held most. */
static struct td_memory_label *make_labels(const struct process *p, struct td_arena *arena,
                                           struct tdbg_error *error)
{
    size_t count = td_memory_owners(p->memory);
    uint32_t modules = atomic_load(&p->place->module_count);
    struct td_memory_label *labels = calloc(count + 1, sizeof *labels);
    uint64_t *weights = calloc(count + 1, sizeof *weights);
    struct td_symbols *symbols = NULL;
    bool good = labels && weights &&
                td_symbols_open(&symbols, p->place->modules,
                                modules < TD_SHIM_MODULES ? modules : TD_SHIM_MODULES, error) == TDBG_OK &&
                put_labels(p, symbols, least_weight(p->memory, weights, count), arena, labels, count);
    td_symbols_close(&symbols);
    free(weights);
    if (good)
        return labels;
    (void)td_fail_nomem(error);
    free(labels);
    return NULL;
}

static const char *title_of(const struct td_shim_place *place, struct td_arena *arena)
{
    const char *slash = strrchr(place->program, '/');
    return td_arena_printf(arena, "%.200s (pid %d)", slash ? slash + 1 : place->program, (int)place->pid);
}

static const char *note_of(const struct watch *w, const struct td_shim_place *place, struct td_arena *arena)
{
    if (place->pid == w->child && w->ended && WIFSIGNALED(w->book->status))
        return td_arena_printf(arena, "killed by signal %d (%s): what it held then is no leak",
                               WTERMSIG(w->book->status), strsignal(WTERMSIG(w->book->status)));
    return NULL;
}

static tdbg_status tell(struct watch *w, struct process *p, struct tdbg_error *error)
{
    struct td_memory_story story;
    td_memory_story_init(&story);
    p->place->program[sizeof p->place->program - 1] = 0;
    story.title = title_of(p->place, &story.arena);
    story.note = note_of(w, p->place, &story.arena);
    story.judged = !story.note;
    struct td_memory_label *labels = make_labels(p, &story.arena, error);
    tdbg_status status = labels && story.title ? TDBG_OK : TDBG_NOMEM;
    if (status == TDBG_OK)
        status = td_memory_story_finish(&story, p->memory, labels, 0, error);
    if (status == TDBG_OK)
        status = td_memory_book_add(w->book, &story, MOST_STORIES, error);
    free(labels);
    td_memory_story_release(&story);
    return status;
}

/* The rest of what a dead process told; then its place is free, and its memory too. */
static tdbg_status bury(struct watch *w, int i, struct tdbg_error *error)
{
    struct process *p = &w->processes[i];
    size_t count;
    do {
        count = 0;
        TD_TRY(drain(p, true, &count, error));
    } while (count);
    TD_TRY(tell(w, p, error));
    td_memory_close(&p->memory);
    munmap(p->place, sizeof *p->place);
    p->place = NULL;
    (void)fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)TD_SHIM_OFFSET(i),
                    (off_t)TD_SHIM_PLACE_SIZE);
    atomic_store(&w->header->states[i], TD_SHIM_FREE);
    return TDBG_OK;
}

/* A zombie is dead too: nobody may ever wait for it. */
static bool lives(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *after = strrchr(text, ')');
    return after && after[1] && after[2] != 'Z' && after[2] != 'X';
}

/* It became another program by exec, which has a place of its own. */
static bool was_replaced(const struct watch *w, const struct process *p)
{
    for (int i = 0; i < TD_SHIM_PLACES; i++) {
        const struct process *other = &w->processes[i];
        if (other->place && other != p && other->place->pid == p->place->pid &&
            other->place->start_ns > p->place->start_ns)
            return true;
    }
    return false;
}

static bool is_over(const struct watch *w, const struct process *p)
{
    bool alive = p->place->pid == w->child ? !w->ended : lives(p->place->pid);
    return !alive || was_replaced(w, p);
}

static tdbg_status look_around(struct watch *w, struct tdbg_error *error)
{
    for (int i = 0; i < TD_SHIM_PLACES; i++)
        if (!w->processes[i].place && atomic_load(&w->header->states[i]) == TD_SHIM_LIVE)
            TD_TRY(meet(w, i, error));
    if (!w->ended && waitpid(w->child, &w->book->status, WNOHANG) == w->child)
        w->ended = true;
    for (int i = 0; i < TD_SHIM_PLACES; i++)
        if (w->processes[i].place && is_over(w, &w->processes[i]))
            TD_TRY(bury(w, i, error));
    return TDBG_OK;
}

static tdbg_status follow(struct watch *w, struct tdbg_error *error)
{
    for (unsigned turn = 0; !w->ended; turn++) {
        size_t count = 0;
        for (int i = 0; i < TD_SHIM_PLACES; i++)
            if (w->processes[i].place)
                TD_TRY(drain(&w->processes[i], false, &count, error));
        if (count == 0 || turn % LOOK_EVERY == 0)
            TD_TRY(look_around(w, error));
        if (count == 0 && !w->ended) {
            struct timespec pause = {.tv_nsec = 500000};
            nanosleep(&pause, NULL);
        }
    }
    TD_TRY(look_around(w, error)); /* places taken since */
    for (int i = 0; i < TD_SHIM_PLACES; i++)
        if (w->processes[i].place)
            TD_TRY(bury(w, i, error));
    w->book->others += atomic_load(&w->header->unseen);
    td_memory_book_sort(w->book);
    return TDBG_OK;
}

tdbg_status td_memory_watch(struct td_memory_book *book, char *const *arguments, const char *shim,
                            const struct td_memory_wish *wish, struct tdbg_error *error)
{
    struct watch *w = calloc(1, sizeof *w);
    if (!w)
        return td_fail_nomem(error);
    w->fd = -1;
    w->book = book;
    w->wish = wish;
    tdbg_status status = share(w, error);
    if (status == TDBG_OK)
        status = start(w, arguments, shim, error);
    if (status == TDBG_OK)
        status = follow(w, error);
    if (w->child && !w->ended) /* trouble of ours is no trouble of the program's */
        (void)waitpid(w->child, &book->status, 0);
    unshare_all(w);
    free(w);
    return status;
}
