/* pairs_layers.c: see pairs_layers.h. Matches are sorted by their templates; each run of one pair of
 * templates is a group, and then held against all other matches. */
#include "session/pairs_layers.h"

#include "compare/match/manual_layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Each is held against every match. A model has a few hundred. */
enum { MOST_GROUPS = 1024 };

struct entry {
    const struct td_match *match;
    size_t index;
    struct td_layer_template a, b;
    int64_t layer, offset; /* of A's name; B's less A's */
};

static int compare_parts(struct td_fusion x, struct td_fusion y)
{
    return x.of != y.of ? x.of - y.of : x.index - y.index;
}

static int compare_templates(const struct td_match *x, const struct td_match *y)
{
    int by = strcmp(x->template_a, y->template_a);
    if (by == 0)
        by = strcmp(x->template_b, y->template_b);
    if (by == 0)
        by = compare_parts(x->fused_a, y->fused_a);
    return by ? by : compare_parts(x->fused_b, y->fused_b);
}

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int by = compare_templates(a->match, b->match);
    if (by == 0)
        by = (a->layer > b->layer) - (a->layer < b->layer);
    return by ? by : (a->index > b->index) - (a->index < b->index);
}

static bool make_entry(struct entry *out, const struct td_match *m, size_t index)
{
    int64_t layer_b;
    *out = (struct entry){.match = m, .index = index};
    if (!m->a || !m->b || !m->template_a || !m->template_b ||
        !td_layer_template_parse(m->template_a, &out->a) ||
        !td_layer_template_parse(m->template_b, &out->b) || out->a.offset || out->b.offset ||
        !td_layer_template_fits(&out->a, m->a->name, &out->layer) ||
        !td_layer_template_fits(&out->b, m->b->name, &layer_b))
        return false;
    out->offset = layer_b - out->layer;
    return true;
}

/* The match is none of the group, yet its names would fit: the template would say what is not so. `alone`
 * notes sides that have such a tensor without a partner. */
static bool contradicts(const struct entry *first, const struct td_match *m, bool alone[2])
{
    int64_t layer;
    bool fits_a = m->a && td_layer_template_fits(&first->a, m->a->name, &layer);
    bool fits_b = m->b && td_layer_template_fits(&first->b, m->b->name, &layer);
    bool paired = m->a && m->b;
    alone[0] = alone[0] || (fits_a && !paired);
    alone[1] = alone[1] || (fits_b && !paired);
    bool whole_a = first->match->fused_a.of == 0, whole_b = first->match->fused_b.of == 0;
    return paired && ((fits_a && whole_a) || (fits_b && whole_b));
}

/* Entries [0, count) have the same templates. */
static bool is_group(const struct entry *list, size_t count, const struct td_matches *matches,
                     const bool *member)
{
    bool alone[2] = {false, false};
    for (size_t i = 1; i < count; i++)
        if (list[i].offset != list[0].offset || list[i].layer == list[i - 1].layer)
            return false;
    for (size_t i = 0; i < matches->count; i++)
        if (!member[i] && contradicts(&list[0], &matches->pairs[i], alone))
            return false;
    bool parts = list[0].match->fused_a.of || list[0].match->fused_b.of;
    return count > 1 && !(alone[0] && alone[1]) && !(parts && (alone[0] || alone[1]));
}

static struct td_layer_group *make_group(struct td_arena *arena, const struct entry *first)
{
    struct td_layer_group *group = td_arena_alloc(arena, sizeof *group);
    if (!group)
        return NULL;
    group->first = first->index;
    group->a = first->match->template_a;
    group->b = first->match->template_b;
    if (first->offset)
        group->b = td_arena_printf(arena, "%.*s{L%+" PRId64 "}%s", (int)first->b.head_length, first->b.head,
                                   first->offset, first->b.tail);
    return group->b ? group : NULL;
}

static tdbg_status group_all(struct td_layer_groups *out, const struct td_matches *matches,
                             const struct entry *list, size_t count, bool *member, struct tdbg_error *error)
{
    size_t tried = 0, next;
    for (size_t i = 0; i < count && tried < MOST_GROUPS; i = next) {
        for (next = i; next < count && compare_templates(list[next].match, list[i].match) == 0; next++)
            member[list[next].index] = true;
        struct td_layer_group *group = NULL;
        if (next - i > 1 && ++tried && is_group(&list[i], next - i, matches, member) &&
            !(group = make_group(&out->arena, &list[i])))
            return td_fail_nomem(error);
        for (size_t k = i; k < next; k++) {
            member[list[k].index] = false;
            if (group && list[k].index < group->first)
                group->first = list[k].index;
            out->of[list[k].index] = group;
        }
    }
    return TDBG_OK;
}

tdbg_status td_layer_groups_find(struct td_layer_groups *out, const struct td_matches *matches,
                                 struct tdbg_error *error)
{
    struct td_layer_groups groups = {0};
    size_t count = 0;
    td_arena_init(&groups.arena, TD_MAX_METADATA);
    groups.of = td_arena_array(&groups.arena, matches->count + 1, sizeof(*groups.of));
    struct entry *list = calloc(matches->count + 1, sizeof *list);
    bool *member = calloc(matches->count + 1, sizeof *member);
    tdbg_status status = groups.of && list && member ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < matches->count; i++)
        count += make_entry(&list[count], &matches->pairs[i], i);
    if (status == TDBG_OK && count)
        qsort(list, count, sizeof *list, compare_entries);
    if (status == TDBG_OK)
        status = group_all(&groups, matches, list, count, member, error);
    free(member);
    free(list);
    if (status == TDBG_OK)
        *out = groups;
    else
        td_layer_groups_release(&groups);
    return status;
}

void td_layer_groups_release(struct td_layer_groups *groups)
{
    td_arena_release(&groups->arena);
    *groups = (struct td_layer_groups){0};
}
