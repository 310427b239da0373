/* machine.c: the stack, the memo and the loop of the pickle machine. See machine.h.
 *
 * What bounds it: each opcode takes at least one byte and makes at most one value, a list's array at most
 * doubles, a memo index may not exceed the bytes read so far (picklers number densely, from 0 or 1), and the
 * arena and the limits cap the rest. There is no recursion anywhere.
 */
#include "pickle/machine.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tdbg_status td_machine_fail(struct td_machine *m, tdbg_status code, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return td_fail_at(m->error, code, m->at, "pickle: %s", text);
}

tdbg_status td_machine_truncated(struct td_machine *m)
{
    return td_machine_fail(m, TDBG_CORRUPT, "ends in the middle of %s", m->opcode);
}

static tdbg_status list_reserve(struct td_machine *m, struct value_list *list, size_t count, const char *what)
{
    if (count <= list->capacity)
        return TDBG_OK;
    if (count > list->limit)
        return td_machine_fail(m, TDBG_LIMIT, "more than %zu values %s", list->limit, what);
    size_t capacity = list->capacity ? list->capacity : 64;
    while (capacity < count)
        capacity *= 2;
    struct td_pickle_value **values = reallocarray(list->values, capacity, sizeof(struct td_pickle_value *));
    if (!values)
        return td_fail_nomem(m->error);
    memset(values + list->capacity, 0, (capacity - list->capacity) * sizeof(struct td_pickle_value *));
    list->values = values;
    list->capacity = capacity;
    return TDBG_OK;
}

static tdbg_status list_append(struct td_machine *m, struct value_list *list, struct td_pickle_value *value,
                               const char *what)
{
    TD_TRY(list_reserve(m, list, list->count + 1, what));
    list->values[list->count++] = value;
    return TDBG_OK;
}

tdbg_status td_machine_push(struct td_machine *m, struct td_pickle_value *value)
{
    return list_append(m, &m->stack, value, "on the stack");
}

tdbg_status td_machine_top(struct td_machine *m, struct td_pickle_value **value)
{
    if (m->stack.count <= m->floor)
        return td_machine_fail(m, TDBG_CORRUPT, "%s finds too little on the stack", m->opcode);
    *value = m->stack.values[m->stack.count - 1];
    return TDBG_OK;
}

tdbg_status td_machine_pop(struct td_machine *m, struct td_pickle_value **value)
{
    TD_TRY(td_machine_top(m, value));
    m->stack.count--;
    return TDBG_OK;
}

tdbg_status td_machine_mark(struct td_machine *m)
{
    if (m->mark_count >= m->stack.limit)
        return td_machine_fail(m, TDBG_LIMIT, "more than %zu marks", m->stack.limit);
    if (m->mark_count == m->mark_capacity) {
        size_t capacity = m->mark_capacity ? m->mark_capacity * 2 : 64;
        size_t *marks = reallocarray(m->marks, capacity, sizeof *marks);
        if (!marks)
            return td_fail_nomem(m->error);
        m->marks = marks;
        m->mark_capacity = capacity;
    }
    m->floor = m->marks[m->mark_count++] = m->stack.count;
    return TDBG_OK;
}

tdbg_status td_machine_pop_mark(struct td_machine *m, struct td_pickle_value ***values, size_t *count)
{
    if (m->mark_count == 0)
        return td_machine_fail(m, TDBG_CORRUPT, "%s finds no mark on the stack", m->opcode);
    size_t mark = m->marks[--m->mark_count];
    m->floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;
    *values = mark ? m->stack.values + mark : m->stack.values; /* NULL while nothing was ever pushed */
    *count = m->stack.count - mark;
    m->stack.count = mark;
    return TDBG_OK;
}

static void *take_memory(struct td_machine *m, size_t count, size_t size)
{
    void *memory = td_arena_array(m->arena, count, size);
    if (!memory)
        (void)td_machine_fail(m, TDBG_LIMIT, "more values than %zu MiB hold", m->arena->limit >> 20);
    return memory;
}

char *td_machine_text(struct td_machine *m, size_t size)
{
    return take_memory(m, size, 1);
}

tdbg_status td_machine_new(struct td_machine *m, enum td_pickle_kind kind, struct td_pickle_value **out)
{
    struct td_pickle_value *value = td_machine_reuse(m);
    if (!value)
        value = take_memory(m, 1, sizeof *value);
    if (!value)
        return TDBG_LIMIT;
    value->kind = kind;
    *out = value;
    return TDBG_OK;
}

tdbg_status td_machine_push_new(struct td_machine *m, enum td_pickle_kind kind)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, kind, &value));
    return td_machine_push(m, value);
}

tdbg_status td_machine_push_integer(struct td_machine *m, enum td_pickle_kind kind, int64_t integer)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, kind, &value));
    value->integer = integer;
    return td_machine_push(m, value);
}

tdbg_status td_machine_push_text(struct td_machine *m, enum td_pickle_kind kind, const void *text,
                                 size_t size)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, kind, &value));
    value->text = text;
    value->count = size & TD_PICKLE_MAX_COUNT; /* size is that of something in memory: it fits */
    return td_machine_push(m, value);
}

/* An array of `count` values has room for this many: the node need not say. */
static size_t room_for(size_t count)
{
    size_t room = 2;
    while (room < count)
        room *= 2;
    return count ? room : 0;
}

tdbg_status td_machine_extend(struct td_machine *m, struct td_pickle_value *container,
                              struct td_pickle_value *const *values, size_t count)
{
    size_t old = container->count, total = old + count;
    if (count == 0)
        return TDBG_OK;
    if (total > (container->tight ? old : room_for(old))) {
        /* Most containers are filled at once: the first array is no larger than it must be. */
        size_t room = old ? room_for(total) : total;
        struct td_pickle_value **items = td_machine_reuse_array(m, room);
        if (!items)
            items = take_memory(m, room, sizeof(struct td_pickle_value *));
        if (!items)
            return TDBG_LIMIT;
        container->tight = old == 0;
        container->shared = 0;
        if (old)
            memcpy(items, container->items, old * sizeof(struct td_pickle_value *));
        container->items = items;
    }
    memcpy(container->items + old, values, count * sizeof(struct td_pickle_value *));
    container->count = total & TD_PICKLE_MAX_COUNT;
    return TDBG_OK;
}

tdbg_status td_machine_push_items(struct td_machine *m, enum td_pickle_kind kind,
                                  struct td_pickle_value *const *values, size_t count)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, kind, &value));
    TD_TRY(td_machine_extend(m, value, values, count));
    return td_machine_push(m, value);
}

tdbg_status td_machine_push_object(struct td_machine *m, struct td_pickle_value *callable,
                                   struct td_pickle_value *args, struct td_pickle_value *kwargs)
{
    if (args->kind != TD_PICKLE_TUPLE)
        return td_machine_fail(m, TDBG_CORRUPT, "%s with a %s where arguments belong", m->opcode,
                               td_pickle_kind_name(args->kind));
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, TD_PICKLE_OBJECT, &value));
    struct td_pickle_object *object = take_memory(m, 1, sizeof *object);
    if (!object)
        return TDBG_LIMIT;
    object->callable = callable;
    object->args = args;
    object->kwargs = kwargs;
    object->appended.kind = TD_PICKLE_LIST;
    object->set.kind = TD_PICKLE_DICT;
    value->object = object;
    return td_machine_push(m, value);
}

tdbg_status td_machine_push_global(struct td_machine *m, const char *module, size_t module_size,
                                   const char *name, size_t name_size)
{
    if (!td_machine_text_valid(module, module_size) || !td_machine_text_valid(name, name_size))
        return td_machine_fail(m, TDBG_CORRUPT, "%s of a name that is not UTF-8", m->opcode);
    size_t size = module_size + 1 + name_size;
    char *text = td_machine_text(m, size);
    if (!text)
        return TDBG_LIMIT;
    if (module_size)
        memcpy(text, module, module_size);
    text[module_size] = '.';
    if (name_size)
        memcpy(text + module_size + 1, name, name_size);
    return td_machine_push_text(m, TD_PICKLE_GLOBAL, text, size);
}

tdbg_status td_machine_push_persid(struct td_machine *m, struct td_pickle_value *id)
{
    struct td_pickle_value *value;
    TD_TRY(td_machine_new(m, TD_PICKLE_PERSID, &value));
    value->id = id;
    TD_TRY(list_append(m, &m->persids, value, "kept outside the pickle"));
    return td_machine_push(m, value);
}

tdbg_status td_machine_line(struct td_machine *m, const char **text, size_t *size)
{
    const char *start = (const char *)m->in.data + m->in.at;
    const char *end = memchr(start, '\n', td_cursor_left(&m->in));
    if (!end)
        return td_machine_truncated(m);
    *text = start;
    *size = (size_t)(end - start);
    m->in.at += *size + 1;
    return TDBG_OK;
}

tdbg_status td_machine_remember(struct td_machine *m, uint64_t index)
{
    struct td_pickle_value *value = NULL;
    TD_TRY(td_machine_top(m, &value));
    if (index > m->in.at)
        return td_machine_fail(m, TDBG_LIMIT, "memo entry %llu after only %zu bytes",
                               (unsigned long long)index, m->in.at);
    TD_TRY(list_reserve(m, &m->memo, (size_t)index + 1, "in the memo"));
    m->memo.values[index] = value;
    if (index >= m->memo.count)
        m->memo.count = (size_t)index + 1;
    return TDBG_OK;
}

tdbg_status td_machine_memoize(struct td_machine *m)
{
    return td_machine_remember(m, m->memo.count);
}

tdbg_status td_machine_recall(struct td_machine *m, uint64_t index)
{
    if (index >= m->memo.count || !m->memo.values[index])
        return td_machine_fail(m, TDBG_CORRUPT, "memo entry %llu was never stored",
                               (unsigned long long)index);
    return td_machine_push(m, m->memo.values[index]);
}

static bool is_surrogate(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    return size >= 3 && p[0] == 0xed && p[1] >= 0xa0 && p[1] <= 0xbf && (p[2] & 0xc0) == 0x80;
}

bool td_machine_text_valid(const char *text, size_t size)
{
    uint32_t code;
    for (size_t at = 0; at < size;) {
        if ((unsigned char)text[at] < 0x80) {
            at++;
            continue;
        }
        int step = td_utf8_decode(text + at, size - at, &code);
        if (step == 0 && is_surrogate(text + at, size - at))
            step = 3;
        if (step == 0)
            return false;
        at += (size_t)step;
    }
    return true;
}

static tdbg_status run(struct td_machine *m)
{
    while (!m->stopped) {
        m->at = m->in.at;
        if (td_cursor_left(&m->in) == 0)
            return td_machine_fail(m, TDBG_CORRUPT, "ends without a STOP");
        uint8_t code = td_cursor_u8(&m->in);
        const struct opcode *opcode = &td_pickle_opcodes[code];
        if (!opcode->run)
            return td_machine_fail(m, TDBG_CORRUPT, "unknown opcode 0x%02x", code);
        m->opcode = opcode->name;
        TD_TRY(opcode->run(m));
        if (m->in.bad)
            return td_machine_truncated(m);
    }
    return TDBG_OK;
}

static tdbg_status finish(struct td_machine *m, struct td_pickle *out)
{
    struct td_pickle pickle = {.consumed = m->in.at, .persid_count = m->persids.count};
    TD_TRY(td_machine_pop(m, &pickle.root));
    pickle.persids = take_memory(m, pickle.persid_count, sizeof(struct td_pickle_value *));
    if (!pickle.persids)
        return TDBG_LIMIT;
    if (pickle.persid_count)
        memcpy(pickle.persids, m->persids.values, pickle.persid_count * sizeof(struct td_pickle_value *));
    *out = pickle;
    return TDBG_OK;
}

static tdbg_status make_singletons(struct td_machine *m)
{
    TD_TRY(td_machine_new(m, TD_PICKLE_NONE, &m->none));
    TD_TRY(td_machine_new(m, TD_PICKLE_BOOL, &m->no));
    TD_TRY(td_machine_new(m, TD_PICKLE_BOOL, &m->yes));
    TD_TRY(td_machine_new(m, TD_PICKLE_TUPLE, &m->empty_tuple));
    m->yes->integer = 1;
    return TDBG_OK;
}

tdbg_status td_pickle_parse(const void *data, size_t size, const struct td_pickle_limits *limits,
                            struct td_arena *arena, struct td_pickle *out, struct tdbg_error *error)
{
    size_t stack = limits && limits->stack ? limits->stack : TD_MAX_PICKLE_STACK;
    size_t memo = limits && limits->memo ? limits->memo : TD_MAX_PICKLE_MEMO;
    struct td_machine m = {
        .in = td_cursor_init(data, size),
        .opcode = "STOP",
        .arena = arena,
        .error = error,
        .stack.limit = stack,
        .memo.limit = memo,
        .persids.limit = memo,
        .taker = limits ? limits->taker : NULL,
    };
    tdbg_status status = make_singletons(&m);
    if (status == TDBG_OK && m.taker && !(m.shared = calloc(TD_SHARED_ARRAYS, sizeof *m.shared)))
        status = td_fail_nomem(error);
    if (status == TDBG_OK)
        status = run(&m);
    if (status == TDBG_OK)
        status = finish(&m, out);
    free(m.stack.values);
    free(m.memo.values);
    free(m.persids.values);
    free(m.marks);
    free(m.shared);
    if (m.c_locale)
        freelocale(m.c_locale);
    return status;
}
