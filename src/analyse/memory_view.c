/* memory_view.c: the address space at one moment: how much free memory lies between live blocks.
 *
 *     |AAAA|....hole....|BB|.|CCCC|........hole........|D|          (.: an allocator's own overhead)
 *     '---------------------- span ----------------------'
 *
 * A hole can serve another allocation, but cannot be given back to the system while its neighbours live; and
 * it serves only what fits. Half of each hole is laid at the door of either neighbour: with every second
 * block freed, the site that kept the others comes out on top.
 *
 * Fragmented is what wastes much: at least a MiB, 40 % of the span, in many holes of which none is most of
 * it. (One large hole is room for the next large block: no harm.)
 */
#include "analyse/memory_core.h"

#include <stdlib.h>

enum {
    OVERHEAD = 32, /* header and rounding of the usual allocators */
    PAGE = 4096,
    LEAST_HOLES = 16,
};

#define LEAST_WASTE (UINT64_C(1) << 20)
#define WASTED_SHARE 0.4

/* Beyond this two blocks of unknown memory are strangers: allocators take 64 MiB at a time or less. */
#define WIDEST_HOLE (UINT64_C(32) << 20)

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct td_block *)a)->address, y = ((const struct td_block *)b)->address;
    return x < y ? -1 : x > y;
}

/* The blocks of a moment, in the order of addresses; to be freed. TD_MOMENT_END: those live now. */
static tdbg_status blocks_of(const struct td_memory *m, enum td_memory_moment moment, struct td_block **out,
                             size_t *count, struct tdbg_error *error)
{
    const struct td_moment_state *then = moment == TD_MOMENT_END ? NULL : &m->moments[moment];
    struct td_block *blocks = malloc((m->blocks.count + (then ? then->ghost_count : 0) + 1) * sizeof *blocks);
    size_t n = 0;
    if (!blocks)
        return td_fail_nomem(error);
    for (size_t i = 0; i < m->blocks.capacity; i++)
        if (m->blocks.slots[i].bytes && (!then || m->blocks.slots[i].number <= then->number))
            blocks[n++] = m->blocks.slots[i];
    for (size_t i = 0; then && i < then->ghost_count; i++)
        blocks[n++] = then->ghosts[i];
    qsort(blocks, n, sizeof *blocks, by_address);
    *out = blocks;
    *count = n;
    return TDBG_OK;
}

struct sweep {
    struct td_memory_view *view;
    uint64_t *pins;
    const struct td_block *last; /* of this stretch; NULL before the first */
    uint64_t start, end;         /* the stretch so far */
    uint64_t pages_end;          /* pages below are counted */
};

static void end_stretch(struct sweep *s)
{
    if (s->last)
        s->view->span += s->end - s->start;
    s->last = NULL;
}

static bool same_stretch(const struct sweep *s, const struct td_block *b)
{
    if (!s->last || s->last->pool != b->pool)
        return false;
    return b->pool == TD_POOL_HEAP || b->address <= s->end || b->address - s->end <= WIDEST_HOLE;
}

static void count_hole(struct sweep *s, const struct td_block *b)
{
    uint64_t hole = b->address > s->end ? b->address - s->end : 0;
    if (hole <= OVERHEAD)
        return;
    s->view->holes++;
    s->view->free += hole;
    if (hole > s->view->largest)
        s->view->largest = hole;
    s->pins[s->last->owner] += hole / 2;
    s->pins[b->owner] += hole - hole / 2;
}

static void count_pages(struct sweep *s, const struct td_block *b)
{
    uint64_t first = b->address / PAGE, end = (b->address + b->bytes - 1) / PAGE + 1;
    if (first < s->pages_end)
        first = s->pages_end;
    if (end > first) {
        s->view->pinned += (end - first) * PAGE;
        s->pages_end = end;
    }
}

tdbg_status td_memory_view_make(const struct td_memory *m, enum td_memory_moment moment,
                                struct td_memory_view *view, uint64_t *pins, struct tdbg_error *error)
{
    struct td_block *blocks = NULL;
    size_t count = 0;
    TD_TRY(blocks_of(m, moment, &blocks, &count, error));
    struct sweep s = {.view = view, .pins = pins};
    for (size_t i = 0; i < count; i++) {
        const struct td_block *b = &blocks[i];
        count_pages(&s, b);
        if (b->pool == TD_POOL_MAPPING)
            continue;
        if (same_stretch(&s, b)) {
            count_hole(&s, b);
        } else {
            end_stretch(&s);
            s.start = s.end = b->address;
        }
        s.last = b;
        if (b->address + b->bytes > s.end)
            s.end = b->address + b->bytes;
    }
    end_stretch(&s);
    free(blocks);
    view->fragmented = view->free >= LEAST_WASTE && view->holes >= LEAST_HOLES &&
                       (double)view->free >= WASTED_SHARE * (double)view->span &&
                       view->largest < view->free / 2;
    return TDBG_OK;
}
