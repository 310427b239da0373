/* fused.c: q, k, v on one side and one tensor of all three on the other; gate and up likewise. And
 * experts one by one on one side, stacked on the other.
 *
 * The fused tensor is in as many pairs as it has parts; which part each is, is said in the pair. Where the
 * part lies within it (side by side, or head by head) the values tell later. All experts of a layer are one
 * pair, or one part of one where gate and up are fused besides.
 */
#include "compare/match/strategy.h"

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

static int compare_modules(const struct owner *a, const struct owner *b)
{
    int order = td_compare_numbers(a->layer, b->layer);
    if (order == 0)
        order = td_compare_numbers(a->expert, b->expert);
    return order ? order : td_compare_numbers(a->traits, b->traits);
}

static int compare_owners(const void *x, const void *y)
{
    const struct owner *a = x, *b = y;
    int order = compare_modules(a, b);
    if (order == 0)
        order = td_compare_numbers(a->role, b->role);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static tdbg_status owners_init(struct owners *out, struct td_matching *m, enum td_which which,
                               struct tdbg_error *error)
{
    size_t items = m->side[which]->count, all = items + m->set_count[which];
    *out = (struct owners){.list = td_arena_array(&m->scratch, all + 1, sizeof *out->list)};
    if (!out->list)
        return td_fail_nomem(error);
    for (size_t i = 0; i < all; i++) {
        const struct td_identity *id =
            i < items ? &m->identity[which][i] : &m->sets[which][i - items].identity;
        if (!td_is_free(m, which, i) || id->role == TD_ROLE_NONE)
            continue;
        int64_t layer = td_item_at(m, which, i)->layer;
        if (layer >= 0 && which == TD_SIDE_B)
            layer -= m->layer_offset;
        out->list[out->count++] = (struct owner){layer, id->expert, td_identity_traits(id), id->role, i};
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
        if (of == 0 || !td_is_free(m, whole, index) ||
            !find_only(fused, &fused->list[i], fused->list[i].role, &only))
            continue;
        while (found < of && find_only(parts, &fused->list[i], roles[found], &part[found]) &&
               td_is_free(m, !whole, part[found]))
            found++;
        for (int p = 0; found == of && p < of; p++) {
            bool in_a = whole == TD_SIDE_A;
            td_pair(m, in_a ? index : part[p], in_a ? part[p] : index, TD_MATCH_FUSED);
            struct td_match *match = &m->pairs[m->count - 1];
            *(in_a ? &match->fused_a : &match->fused_b) = (struct td_fusion){p, of};
        }
    }
}

/* Pairs experts one by one on either side with all of them on the other. Two sets that are left are experts
 * that differ in number or shape, and stay apart. */
static void pair_experts(struct td_matching *m, const struct owners *a, const struct owners *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct owner *mine = &a->list[i];
        size_t other, only;
        if (mine->expert != TD_ALL_EXPERTS || !find_only(a, mine, mine->role, &only) ||
            !find_only(b, mine, mine->role, &other))
            continue;
        bool sets[] = {mine->index >= m->side[TD_SIDE_A]->count, other >= m->side[TD_SIDE_B]->count};
        if (sets[0] != sets[1] && td_is_free(m, TD_SIDE_A, mine->index) && td_is_free(m, TD_SIDE_B, other))
            td_pair(m, mine->index, other, TD_MATCH_FUSED);
    }
}

tdbg_status td_match_fused(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct owners a, b;
    TD_TRY(owners_init(&a, m, TD_SIDE_A, error));
    TD_TRY(owners_init(&b, m, TD_SIDE_B, error));
    pair_experts(m, &a, &b);
    pair_parts(m, TD_SIDE_A, &a, &b);
    pair_parts(m, TD_SIDE_B, &b, &a);
    return TDBG_OK;
}
