/* exact.c: the same name.
 *
 * The same, that is, to whoever wrote it: where the dump was put and in which format is not part of the name.
 * Looked for in three forms, the strictest first:
 *
 *     run1/model.pth:layers.0.w   as it is
 *     model:layers.0.w            without the folders all of a side has in common, and without the extension
 *     layers.0.w                  the key, or the file without folder and extension
 *
 * The last two count only where they name one tensor on each side.
 */
#include "compare/match/strategy.h"

#include "compare/name/name.h"

#include <string.h>

static const char *full_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].name;
}

size_t td_common_folder(const struct td_side *side)
{
    if (side->count == 0)
        return 0;
    const char *first = side->items[0].name;
    size_t common = td_name_split(first).folder;
    for (size_t i = 1; i < side->count && common > 0; i++) {
        struct td_name name = td_name_split(side->items[i].name);
        size_t n = 0;
        while (n < common && n < name.folder && name.file[n] == first[n])
            n++;
        while (n > 0 && first[n - 1] != '/')
            n--;
        common = n;
    }
    return common;
}

static const char *relative_name(struct td_matching *m, enum td_which which, size_t index)
{
    struct td_name name = td_name_split(m->side[which]->items[index].name);
    size_t skip = m->common_folder[which];
    return td_arena_printf(&m->scratch, "%.*s%s%s", (int)(name.stem - skip), name.file + skip,
                           name.key ? ":" : "", name.key ? name.key : "");
}

static size_t run_length(const struct td_keys *keys, size_t from)
{
    size_t n = 1;
    while (from + n < keys->count && strcmp(keys->list[from].key, keys->list[from + n].key) == 0)
        n++;
    return n;
}

static tdbg_status pair_equal(struct td_matching *m, td_key_of *key, bool unique, struct tdbg_error *error)
{
    struct td_keys a, b;
    TD_TRY(td_keys_init(&a, m, TD_SIDE_A, key, error));
    TD_TRY(td_keys_init(&b, m, TD_SIDE_B, key, error));
    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        int order = strcmp(a.list[i].key, b.list[j].key);
        size_t na = order <= 0 ? run_length(&a, i) : 0, nb = order >= 0 ? run_length(&b, j) : 0;
        bool sure = order == 0 && (!unique || (na == 1 && nb == 1));
        for (size_t k = 0; sure && k < na && k < nb; k++)
            if (!td_layers_clash(m, a.list[i + k].index, b.list[j + k].index))
                td_pair(m, a.list[i + k].index, b.list[j + k].index, TD_MATCH_EXACT);
        i += na;
        j += nb;
    }
    return TDBG_OK;
}

tdbg_status td_match_exact(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++)
        m->common_folder[which] = td_common_folder(m->side[which]);
    TD_TRY(pair_equal(m, full_name, false, error));
    TD_TRY(pair_equal(m, relative_name, true, error));
    return pair_equal(m, td_bare_name, true, error);
}
