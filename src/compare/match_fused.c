/* match_fused.c: q, k, v on one side and one tensor of all three on the other; gate and up likewise.
 *
 * The fused tensor is in as many pairs as it has parts; which part each is, is said in the pair. Where the
 * part lies within it (side by side, or head by head) the values tell later.
 */
#include "compare/match_strategy.h"

#include <stdlib.h>

enum { MAX_PARTS = 3 };

/* What parts and their whole have in common; `layer` in A's numbers. */
struct owner {
    int64_t layer, expert;
    int traits;
    enum td_role role;
    size_t index;
};

struct owners {
    struct owner *list;
    size_t count;
};

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_modules(const struct owner *a, const struct owner *b)
{
    int order = compare_numbers(a->layer, b->layer);
    if (order == 0)
        order = compare_numbers(a->expert, b->expert);
    return order ? order : compare_numbers(a->traits, b->traits);
}

static int compare_owners(const void *x, const void *y)
{
    const struct owner *a = x, *b = y;
    int order = compare_modules(a, b);
    if (order == 0)
        order = compare_numbers(a->role, b->role);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static tdbg_status owners_init(struct owners *out, struct td_matching *m, enum td_which which,
                               struct tdbg_error *error)
{
    const struct td_side *side = m->side[which];
    *out = (struct owners){.list = td_arena_array(&m->scratch, side->count + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < side->count; i++) {
        const struct td_identity *id = &m->identity[which][i];
        if (m->paired[which][i] || id->role == TD_ROLE_NONE)
            continue;
        int64_t layer = side->items[i].layer;
        if (layer >= 0 && which == TD_SIDE_B)
            layer -= m->layer_offset;
        int traits = (int)id->stack * 16 + (int)id->kind * 4 + id->gradient * 2 + id->cross;
        out->list[out->count++] = (struct owner){layer, id->expert, traits, id->role, i};
    }
    qsort(out->list, out->count, sizeof *out->list, compare_owners);
    return TDBG_OK;
}

/* The only item of that role in the module of `like`. */
static bool find_only(const struct owners *owners, const struct owner *like, enum td_role role, size_t *out)
{
    struct owner wanted = *like;
    wanted.role = role;
    wanted.index = 0;
    size_t low = 0, high = owners->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_owners(&owners->list[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct owner *found = owners->list + low, *next = found + 1;
    const struct owner *end = owners->list + owners->count;
    if (found >= end || compare_modules(found, &wanted) != 0 || found->role != role)
        return false;
    if (next < end && compare_modules(next, &wanted) == 0 && next->role == role)
        return false;
    *out = found->index;
    return true;
}

/* Pairs the fused tensors of side `whole` with their parts on the other. */
static void pair_parts(struct td_matching *m, enum td_which whole, const struct owners *fused,
                       const struct owners *parts)
{
    for (size_t i = 0; i < fused->count; i++) {
        enum td_role roles[MAX_PARTS];
        size_t part[MAX_PARTS], index = fused->list[i].index, only;
        int of = td_role_parts(fused->list[i].role, roles), found = 0;
        if (of == 0 || m->paired[whole][index] ||
            !find_only(fused, &fused->list[i], fused->list[i].role, &only))
            continue;
        while (found < of && find_only(parts, &fused->list[i], roles[found], &part[found]) &&
               !m->paired[!whole][part[found]])
            found++;
        for (int p = 0; found == of && p < of; p++) {
            bool in_a = whole == TD_SIDE_A;
            td_pair(m, in_a ? index : part[p], in_a ? part[p] : index, TD_MATCH_FUSED);
            struct td_match *match = &m->pairs[m->count - 1];
            *(in_a ? &match->fused_a : &match->fused_b) = (struct td_fusion){p, of};
        }
    }
}

tdbg_status td_match_fused(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct owners a, b;
    TD_TRY(owners_init(&a, m, TD_SIDE_A, error));
    TD_TRY(owners_init(&b, m, TD_SIDE_B, error));
    pair_parts(m, TD_SIDE_A, &a, &b);
    pair_parts(m, TD_SIDE_B, &b, &a);
    return TDBG_OK;
}
