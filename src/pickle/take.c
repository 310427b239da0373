/* take.c: values that a taker has taken out of a list, and their memory, used again.
 *
 * A pickle of a gigabyte may be a list of millions of small dicts. Whoever only wants to see each of them
 * once takes it, and then the memory of the dict's array and of its numbers serves the next one. Lists in it
 * stay, as the pickle may refer to them again; but those that hold the same values share one array.
 *
 * Whatever a pickle does, this is safe: only numbers become other values later, containers never do (an
 * object relies on its arguments being a tuple). What is free is NONE, so that nothing is freed twice. An
 * array belongs to one container; or it is shared, and then never freed, and growing copies it.
 */
#include "pickle/machine.h"

#include <string.h>

struct td_pickle_value *td_machine_reuse(struct td_machine *m)
{
    struct td_pickle_value *value = m->free_values;
    if (value) {
        m->free_values = value->id;
        *value = (struct td_pickle_value){0};
    }
    return value;
}

struct td_pickle_value **td_machine_reuse_array(struct td_machine *m, size_t room)
{
    if (room == 0 || room > TD_REUSED_ROOM || !m->free_arrays[room])
        return NULL;
    struct td_pickle_value **array = m->free_arrays[room];
    m->free_arrays[room] = (struct td_pickle_value **)(void *)array[0];
    return array;
}

static void release_array(struct td_machine *m, struct td_pickle_value **array, size_t room)
{
    if (room == 0 || room > TD_REUSED_ROOM)
        return;
    array[0] = (struct td_pickle_value *)(void *)m->free_arrays[room];
    m->free_arrays[room] = array;
}

static size_t hash(struct td_pickle_value *const *items, size_t count)
{
    uint64_t h = count;
    for (size_t i = 0; i < count; i++)
        h = (h ^ (uintptr_t)items[i] >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 40) % TD_SHARED_ARRAYS;
}

/* Makes the list share the array of an earlier one that holds the same values. */
static void share(struct td_machine *m, struct td_pickle_value *list)
{
    if (list->count == 0 || list->count > TD_REUSED_ROOM)
        return;
    struct td_shared_array *known = &m->shared[hash(list->items, list->count)];
    if (known->items == list->items)
        return;
    if (known->count == list->count &&
        memcmp(known->items, list->items, list->count * sizeof *list->items) == 0) {
        if (list->tight && !list->shared)
            release_array(m, list->items, list->count);
        list->items = known->items;
    } else {
        known->items = list->items;
        known->count = list->count;
    }
    list->tight = list->shared = 1;
}

static void release_dict(struct td_machine *m, struct td_pickle_value *dict)
{
    for (size_t i = 0; i < dict->count; i++) {
        struct td_pickle_value *value = dict->items[i];
        if (value->kind == TD_PICKLE_LIST)
            share(m, value);
        if (value->kind != TD_PICKLE_INT && value->kind != TD_PICKLE_FLOAT)
            continue;
        value->kind = TD_PICKLE_NONE;
        value->id = m->free_values;
        m->free_values = value;
    }
    if (dict->tight)
        release_array(m, dict->items, dict->count);
    dict->items = NULL;
    dict->count = 0;
    dict->tight = 0;
}

size_t td_machine_take(struct td_machine *m, const struct td_pickle_value *list,
                       struct td_pickle_value **values, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i]->kind == TD_PICKLE_DICT && m->taker->take(m->taker->context, list, values[i]))
            release_dict(m, values[i]);
        else
            values[kept++] = values[i];
    }
    return kept;
}
