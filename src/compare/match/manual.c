/* manual.c: pairs a person said: a pairs file, the user's program.
 *
 * A name nobody has is a mistake to report: passing over it would compare less than was asked for. A sharded
 * tensor may be called by its own name or by its first shard's, which is what a listing of the files shows;
 * the experts of a layer, all in one, by the name with a '*' that --save-pairs writes.
 */
#include "compare/match/strategy.h"

#include <string.h>

struct names {
    struct td_keys items, first_parts;
};

static const char *item_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].name;
}

static const char *first_part_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].parts[0]->name;
}

/* A whole tensor is in one pair, a fused one in one for each of its parts. */
static tdbg_status find(const struct td_matching *m, const struct names *names, enum td_which which,
                        const struct td_name_pair *pair, size_t *out, struct tdbg_error *error)
{
    static const char *const letters[] = {"A", "B"};
    const char *name = which == TD_SIDE_A ? pair->a : pair->b;
    bool part = (which == TD_SIDE_A ? pair->fused_a : pair->fused_b).of > 0;
    const char *who = pair->by_program ? "the matching program" : "the list of pairs";
    const struct td_keys *keys = &names->items;
    size_t first, n = td_keys_find(keys, name, &first);
    if (n == 0) {
        keys = &names->first_parts;
        n = td_keys_find(keys, name, &first);
    }
    for (size_t i = 0; n == 0 && i < m->set_count[which]; i++) {
        *out = m->side[which]->count + i;
        if (strcmp(m->sets[which][i].item->name, name) == 0 && (part || td_is_free(m, which, *out)))
            return TDBG_OK;
    }
    if (n == 0)
        return td_fail(error, TDBG_NOTFOUND, "%s names '%s', which is not in %s", who, name, letters[which]);
    for (size_t i = first; i < first + n; i++) {
        if (m->paired[which][keys->list[i].index] && !part)
            continue;
        *out = keys->list[i].index;
        return TDBG_OK;
    }
    return td_fail(error, TDBG_MISUSE, "%s has '%s' of %s in more than one pair", who, name, letters[which]);
}

tdbg_status td_match_manual(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    struct names names[2];
    if (m->options->manual_count == 0)
        return TDBG_OK;
    for (enum td_which which = TD_SIDE_A; which <= TD_SIDE_B; which++) {
        TD_TRY(td_keys_init(&names[which].items, m, which, item_name, error));
        TD_TRY(td_keys_init(&names[which].first_parts, m, which, first_part_name, error));
    }
    for (size_t i = 0; i < m->options->manual_count; i++) {
        const struct td_name_pair *pair = &m->options->manual[i];
        size_t a = 0, b = 0;
        TD_TRY(find(m, &names[TD_SIDE_A], TD_SIDE_A, pair, &a, error));
        TD_TRY(find(m, &names[TD_SIDE_B], TD_SIDE_B, pair, &b, error));
        td_pair(m, a, b, pair->by_program ? TD_MATCH_PROGRAM : TD_MATCH_MANUAL);
        m->pairs[m->count - 1].fused_a = pair->fused_a;
        m->pairs[m->count - 1].fused_b = pair->fused_b;
    }
    return TDBG_OK;
}
