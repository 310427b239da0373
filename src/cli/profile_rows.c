/* profile_rows.c: see profile_rows.h. */
#include "cli/profile_rows.h"

#include "base/limits.h"
#include "report/profile_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
    const struct td_profile *p;
    enum profile_sort sort;
};

static int by_number(int64_t a, int64_t b)
{
    return (a < b) - (a > b); /* the larger first */
}

static int64_t key_of(const struct td_profile_node *n, enum profile_sort sort)
{
    if (sort == SORT_SELF)
        return n->self_ns;
    return sort == SORT_CALLS ? (int64_t)n->calls : n->total_ns;
}

static int compare_nodes(const void *left, const void *right, void *context)
{
    const struct order *o = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = 0;
    if (o->sort == SORT_NAME)
        order = strcmp(td_profile_name_of(o->p, a), td_profile_name_of(o->p, b));
    else if (o->sort != SORT_ORDER)
        order = by_number(key_of(&o->p->nodes[a], o->sort), key_of(&o->p->nodes[b], o->sort));
    return order ? order : (a > b) - (a < b);
}

/* Marks the heaviest nodes within the depth, and all above them. */
static bool choose(const struct td_profile *p, const struct profile_view *view, bool *chosen, size_t *count)
{
    uint32_t *nodes = malloc(p->node_count * sizeof *nodes);
    struct order order = {p, view->sort == SORT_SELF || view->sort == SORT_CALLS ? view->sort : SORT_TOTAL};
    size_t found = 0;
    if (!nodes)
        return false;
    for (uint32_t i = 1; i < p->node_count; i++)
        if (view->depth < 0 || p->nodes[i].depth < view->depth)
            nodes[found++] = i;
    qsort_r(nodes, found, sizeof *nodes, compare_nodes, &order);
    size_t most = view->top && (size_t)view->top < found ? (size_t)view->top : found;
    *count = 0;
    for (size_t i = 0; i < found && *count < most; i++)
        for (uint32_t node = nodes[i]; node != TD_PROFILE_ROOT && !chosen[node];
             node = p->nodes[node].parent) {
            chosen[node] = true;
            (*count)++;
        }
    free(nodes);
    return true;
}

/* The chosen children of `parent`, in the order wanted, put at the end of `stack` in reverse. */
static size_t push_children(const struct order *order, const bool *chosen, uint32_t parent, uint32_t *stack)
{
    size_t count = 0;
    for (uint32_t i = order->p->nodes[parent].first; i; i = order->p->nodes[i].next)
        if (chosen[i])
            stack[count++] = i;
    qsort_r(stack, count, sizeof *stack, compare_nodes, (void *)order);
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t moved = stack[i];
        stack[i] = stack[count - 1 - i];
        stack[count - 1 - i] = moved;
    }
    return count;
}

bool profile_rows_init(struct profile_rows *out, const struct td_profile *p, const struct profile_view *view)
{
    struct order order = {p, view->sort};
    bool *chosen = calloc(p->node_count, sizeof *chosen);
    uint32_t *stack = malloc(p->node_count * sizeof *stack);
    *out = (struct profile_rows){.nodes = malloc(p->node_count * sizeof *out->nodes)};
    size_t count = 0, height = 0;
    bool good = chosen && stack && out->nodes && choose(p, view, chosen, &count);
    if (good)
        height = push_children(&order, chosen, TD_PROFILE_ROOT, stack);
    while (good && height > 0) {
        uint32_t node = stack[--height];
        out->nodes[out->count++] = node;
        height += push_children(&order, chosen, node, stack + height);
    }
    out->left_out = p->node_count - 1 - out->count;
    free(chosen);
    free(stack);
    if (!good)
        profile_rows_release(out);
    return good;
}

void profile_rows_release(struct profile_rows *rows)
{
    free(rows->nodes);
    *rows = (struct profile_rows){0};
}

void profile_name_cell(struct table *table, const char *name, uint32_t depth)
{
    char text[TD_MAX_NAME];
    snprintf(text, sizeof text, "%*s%s", (int)(depth < 64 ? depth : 64) * 2, "", name);
    table_cell(table, text);
}

static int compare_names(const void *left, const void *right, void *context)
{
    const struct order *o = context;
    const struct profile_name *a = left, *b = right;
    int order = 0;
    if (o->sort == SORT_NAME)
        order = strcmp(o->p->names[a->name], o->p->names[b->name]);
    else if (o->sort == SORT_CALLS)
        order = by_number((int64_t)a->calls, (int64_t)b->calls);
    else if (o->sort != SORT_ORDER)
        order = by_number(a->self_ns, b->self_ns);
    return order ? order : (a->name > b->name) - (a->name < b->name);
}

bool profile_names(const struct td_profile *p, enum profile_sort sort, struct profile_name **out,
                   size_t *count)
{
    struct profile_name *names = calloc(p->name_count, sizeof *names);
    if (!names)
        return false;
    for (uint32_t i = 1; i < p->node_count; i++) {
        const struct td_profile_node *n = &p->nodes[i];
        struct profile_name *name = &names[n->name];
        name->name = n->name;
        name->device = n->device;
        name->calls += n->calls;
        name->self_ns += n->self_ns;
        name->places++;
    }
    size_t used = 0;
    for (size_t i = 0; i < p->name_count; i++)
        if (names[i].calls)
            names[used++] = names[i];
    struct order order = {p, sort};
    qsort_r(names, used, sizeof *names, compare_names, &order);
    *out = names;
    *count = used;
    return true;
}

static bool write_names(struct td_json *j, const struct td_profile *p, enum profile_sort sort)
{
    struct profile_name *names;
    size_t count;
    if (!profile_names(p, sort, &names, &count))
        return false;
    td_json_key(j, "names");
    td_json_begin_array(j);
    for (size_t i = 0; i < count; i++) {
        double whole = (double)(names[i].device ? p->device_ns : p->host_ns);
        td_json_begin_object(j);
        td_json_field_string(j, "name", p->names[names[i].name]);
        td_json_field_bool(j, "device", names[i].device);
        td_json_field_uint(j, "calls", names[i].calls);
        td_json_field_int(j, "self_ns", names[i].self_ns);
        td_json_field_number(j, "share", whole > 0 ? (double)names[i].self_ns / whole : 0);
        td_json_field_uint(j, "places", names[i].places);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    free(names);
    return true;
}

bool profile_write(struct td_json *j, const struct td_profile_source *source,
                   const struct td_findings *findings, const struct profile_view *view)
{
    if (view->flat)
        return write_names(j, &source->profile, view->sort) &&
               td_profile_json(j, source, findings, TD_PROFILE_NO_SCOPES);
    return td_profile_json(j, source, findings, view->series ? TD_PROFILE_SERIES : TD_PROFILE_TREE);
}
