/* value.c: small questions about values, for those who read the graph. See pickle.h. */
#include "pickle/pickle.h"

#include <string.h>

bool td_pickle_is(const struct td_pickle_value *value, enum td_pickle_kind kind, const char *text)
{
    size_t size = strlen(text);
    return value && value->kind == kind && value->count == size && memcmp(value->text, text, size) == 0;
}

struct td_pickle_value *td_pickle_get(const struct td_pickle_value *dict, const char *key)
{
    if (!dict || dict->kind != TD_PICKLE_DICT)
        return NULL;
    for (size_t i = dict->count; i >= 2; i -= 2)
        if (td_pickle_is(dict->items[i - 2], TD_PICKLE_STR, key))
            return dict->items[i - 1];
    return NULL;
}

const char *td_pickle_kind_name(enum td_pickle_kind kind)
{
    static const char *const names[] = {
        [TD_PICKLE_NONE] = "None",
        [TD_PICKLE_BOOL] = "bool",
        [TD_PICKLE_INT] = "int",
        [TD_PICKLE_BIGINT] = "int",
        [TD_PICKLE_FLOAT] = "float",
        [TD_PICKLE_STR] = "str",
        [TD_PICKLE_BYTES] = "bytes",
        [TD_PICKLE_LIST] = "list",
        [TD_PICKLE_TUPLE] = "tuple",
        [TD_PICKLE_SET] = "set",
        [TD_PICKLE_DICT] = "dict",
        [TD_PICKLE_GLOBAL] = "class or function",
        [TD_PICKLE_EXT] = "extension",
        [TD_PICKLE_OBJECT] = "object",
        [TD_PICKLE_PERSID] = "persistent id",
        [TD_PICKLE_BUFFER] = "buffer",
    };
    return names[kind];
}
