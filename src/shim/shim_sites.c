/* shim_sites.c: which call stack an allocation comes from, at the price of a few loads.
 *
 * Frame pointers are rare in what distributions ship, and unwinding by tables costs microseconds. But a
 * program allocates from the same few stacks again and again. So a stack is unwound once, by the tables, and
 * it is remembered where on the stack each return address was found. When the same caller comes back with its
 * frame at the same place, it is enough to see that those words are still what they were: then it is the same
 * stack. Unlike a guess by caller and depth this cannot mix up two callers of a wrapper.
 */
#include "shim/shim.h"

#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

enum { TABLE = TD_SHIM_SITES * 2 };

/* Numbers of sites by hash; the sites themselves are in the shared memory. */
static struct {
    atomic_flag lock;
    uint32_t *table;
} sites = {.lock = ATOMIC_FLAG_INIT};

void td_shim_forget_sites(void)
{
    atomic_flag_clear(&sites.lock);
    if (sites.table)
        munmap(sites.table, TABLE * sizeof *sites.table);
    sites.table = NULL;
}

/* --- Unwinding ------------------------------------------------------------------------------------------ */

struct walk {
    struct td_shim_site *site;
    struct cached_stack *entry;
    uintptr_t top; /* everything below belongs to frames already seen */
    bool found;    /* the caller: frames below are our own */
};

/* The word below `end` that holds the return address: right there on x86-64, somewhere in the frame
 * elsewhere. */
static uint32_t offset_of(const struct walk *w, uintptr_t pc, uintptr_t end)
{
    for (uintptr_t at = end - sizeof at; at >= w->top && at < end; at -= sizeof at)
        if (*(const uintptr_t *)at == pc)
            return (uint32_t)(at - w->entry->frame);
    return 0;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument)
{
    struct walk *w = argument;
    uintptr_t pc = (uintptr_t)_Unwind_GetIP(context), end = (uintptr_t)_Unwind_GetCFA(context);
    if (!w->found && pc != w->entry->caller)
        return end > w->entry->frame + 4096 ? _URC_END_OF_STACK : _URC_NO_REASON;
    if (pc == 0)
        return _URC_END_OF_STACK;
    uint32_t i = w->site->depth;
    if (end < w->top || (w->found && end - w->entry->frame > UINT32_MAX))
        return _URC_END_OF_STACK;
    w->entry->offsets[i] = w->found ? offset_of(w, pc, end) : 0; /* the caller itself is part of the key */
    w->site->pc[i] = pc;
    w->site->depth++;
    w->top = end;
    w->found = true;
    return w->site->depth == TD_SHIM_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void set_hash(struct td_shim_site *site)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < site->depth; i++)
        hash = (hash ^ (uint32_t)(site->pc[i] ^ site->pc[i] >> 32)) * 16777619u;
    site->hash = hash;
}

static void unwind(struct cached_stack *entry, struct td_shim_site *site)
{
    struct walk w = {.site = site, .entry = entry, .top = entry->frame};
    *site = (struct td_shim_site){0};
    _Unwind_Backtrace(step, &w);
    if (site->depth == 0) { /* no tables: the caller is known all the same */
        site->pc[0] = entry->caller;
        site->depth = 1;
    }
    set_hash(site);
}

/* --- Modules -------------------------------------------------------------------------------------------- */

static bool in_module(const struct td_shim_place *place, uint64_t pc)
{
    uint32_t count = atomic_load(&place->module_count);
    for (uint32_t i = 0; i < count; i++)
        if (pc >= place->modules[i].start && pc < place->modules[i].end)
            return true;
    return false;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct td_shim_place *place = argument;
    uint32_t count = atomic_load(&place->module_count);
    uint64_t start = UINT64_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uint64_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        start = from < start ? from : start;
        end = from + info->dlpi_phdr[i].p_memsz > end ? from + info->dlpi_phdr[i].p_memsz : end;
    }
    if (end <= start || count == TD_SHIM_MODULES || in_module(place, start))
        return 0;
    struct td_shim_module *m = &place->modules[count];
    m->start = start;
    m->end = end;
    m->base = info->dlpi_addr;
    strncpy(m->path, info->dlpi_name && *info->dlpi_name ? info->dlpi_name : place->program,
            sizeof m->path - 1);
    atomic_store(&place->module_count, count + 1);
    return 0;
}

static void add_modules(struct td_shim_place *place, const struct td_shim_site *site)
{
    for (uint32_t i = 0; i < site->depth; i++) {
        if (in_module(place, site->pc[i]))
            continue;
        dl_iterate_phdr(add_module, place);
        return;
    }
}

/* --- The table ------------------------------------------------------------------------------------------ */

static bool same_site(const struct td_shim_site *a, const struct td_shim_site *b)
{
    return a->hash == b->hash && a->depth == b->depth && memcmp(a->pc, b->pc, a->depth * sizeof *a->pc) == 0;
}

static bool make_table(void)
{
    if (sites.table)
        return true;
    void *p = mmap(NULL, TABLE * sizeof *sites.table, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    sites.table = p;
    return true;
}

/* A program may have more stacks than there is room for (an interpreter that imports): when half is taken,
 * new ones are known by their innermost frames only, and at the very end by their caller. */
static void shorten(struct td_shim_site *site, uint32_t taken)
{
    uint32_t most = taken < TD_SHIM_SITES / 2 ? TD_SHIM_FRAMES : taken < TD_SHIM_SITES / 8 * 7 ? 4 : 1;
    if (site->depth <= most)
        return;
    site->depth = most;
    set_hash(site);
}

static uint32_t number_locked(struct td_shim_place *place, struct td_shim_site *site)
{
    if (!make_table())
        return 0;
    uint32_t count = atomic_load(&place->site_count);
    shorten(site, count);
    uint32_t i = site->hash % TABLE;
    while (sites.table[i] && !same_site(&place->sites[sites.table[i]], site))
        i = (i + 1) % TABLE;
    if (sites.table[i] || count == TD_SHIM_SITES)
        return sites.table[i];
    add_modules(place, site);
    place->sites[count] = *site;
    atomic_store(&place->site_count, count + 1);
    return sites.table[i] = count;
}

static uint32_t number_of(struct td_shim_place *place, struct td_shim_site *site)
{
    while (atomic_flag_test_and_set_explicit(&sites.lock, memory_order_acquire))
        sched_yield();
    uint32_t number = number_locked(place, site);
    atomic_flag_clear_explicit(&sites.lock, memory_order_release);
    return number;
}

/* --- The cache ------------------------------------------------------------------------------------------ */

static bool still_there(const struct td_shim_place *place, const struct cached_stack *entry)
{
    const struct td_shim_site *site = &place->sites[entry->site];
    for (uint32_t i = 1; i < site->depth; i++)
        if (entry->offsets[i] && *(const uintptr_t *)(entry->frame + entry->offsets[i]) != site->pc[i])
            return false;
    return true;
}

uint32_t td_shim_site(struct td_shim_place *place, struct shim_thread *thread, const void *frame)
{
    uintptr_t at = (uintptr_t)frame, caller = ((const uintptr_t *)frame)[1];
    uint64_t key = (uint64_t)(at ^ caller << 7) * UINT64_C(0x9E3779B97F4A7C15);
    struct cached_stack *entry = &thread->cache[key >> 52];
    if (entry->frame == at && entry->caller == caller && entry->site && still_there(place, entry))
        return entry->site;
    struct td_shim_site site;
    *entry = (struct cached_stack){.frame = at, .caller = caller};
    unwind(entry, &site);
    entry->site = number_of(place, &site);
    return entry->site;
}
