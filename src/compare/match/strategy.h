/* strategy.h: what a strategy works with: what is still unpaired, and a way to pair it.
 *
 * An item is in one pair, is another name of one that is (an alias), or is free. The strategy by evidence
 * also closes items: it looked at all their values and found nobody, so that those behind it pass them over.
 */
#ifndef TD_COMPARE_MATCH_STRATEGY_H
#define TD_COMPARE_MATCH_STRATEGY_H

#include "compare/name/families.h"
#include "compare/match/match.h"

enum td_which { TD_SIDE_A, TD_SIDE_B };

/* All experts of one layer that are stored one by one, as an item in so many parts (experts.c). */
struct td_expert_set {
    struct td_item *item;
    struct td_identity identity;
    size_t *members, count; /* indices of items */
};

/* Another name of something that is paired. */
struct td_alias {
    enum td_which which;
    size_t item, twin;
};

struct td_matching {
    const struct td_side *side[2];
    bool *paired[2];          /* one for each item */
    bool *closed[2];          /* likewise: all was looked at, and it has no partner */
    struct td_alias *aliases; /* of items that are paired under another name */
    size_t alias_count;
    struct td_identity *identity[2]; /* likewise */
    struct td_expert_set *sets[2];   /* set i has the index side->count + i among the items */
    size_t set_count[2];
    size_t common_folder[2]; /* length of the folders every name of the side begins with */
    struct td_match *pairs;  /* room for every item of both sides, and for what a person said */
    size_t count;
    int64_t layer_offset;
    double threshold;
    const struct td_match_options *options;
    struct td_work work;     /* without an arena */
    struct td_arena scratch; /* gone after the matching */
    struct td_arena *kept;   /* that of the result */
};

/* `argument` is what follows the colon of "regex:FROM=>TO", or NULL. */
typedef tdbg_status td_strategy_run(struct td_matching *m, const char *argument, struct tdbg_error *error);

td_strategy_run td_match_manual, td_match_by_evidence, td_match_by_stage, td_match_exact, td_match_fuzzy,
    td_match_by_weights, td_match_fused, td_match_by_shape, td_match_regex;

/* Finds the sets of experts of one side. */
TD_CHECK tdbg_status td_match_find_experts(struct td_matching *m, enum td_which which,
                                           struct tdbg_error *error);

/* The offset of the layers of two models whose names are of modules, where there is one. */
TD_CHECK tdbg_status td_match_find_offset(struct td_matching *m, struct tdbg_error *error);

/* Of an item or a set of experts. A set is free as long as all its experts are. */
const struct td_item *td_item_at(const struct td_matching *m, enum td_which which, size_t index);
bool td_is_free(const struct td_matching *m, enum td_which which, size_t index);

void td_pair(struct td_matching *m, size_t a, size_t b, enum td_strategy strategy);

/* The item is another name of `twin`, which is paired or is itself such a name. */
TD_CHECK tdbg_status td_pair_alias(struct td_matching *m, enum td_which which, size_t item, size_t twin,
                                   struct tdbg_error *error);

/* Both names have a layer, and not the same. */
bool td_layers_clash(const struct td_matching *m, size_t a, size_t b);

/* For sorting: less than 0, 0 or more. */
static inline int td_compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* An unpaired item under the name it is looked for by. */
struct td_keyed {
    const char *key;
    size_t index;
};

struct td_keys {
    struct td_keyed *list; /* by key, then by execution */
    size_t count;
};

/* `key` gives the name by which an item is looked for, in the arena or borrowed; NULL for no memory. */
typedef const char *td_key_of(struct td_matching *m, enum td_which which, size_t index);
TD_CHECK tdbg_status td_keys_init(struct td_keys *out, struct td_matching *m, enum td_which which,
                                  td_key_of *key, struct tdbg_error *error);

/* The first item with the key, and how many there are. */
size_t td_keys_find(const struct td_keys *keys, const char *key, size_t *first);

/* Length of the folders that every name of the side begins with. */
size_t td_common_folder(const struct td_side *side);

/* The name says where in the model it is and not what: layers.3, mlp, self_attn.0. */
bool td_names_container(const struct td_item *item);

/* The part of a name that tells tensors apart: the key within the file, else the file without folder and
 * extension. */
const char *td_bare_name(struct td_matching *m, enum td_which which, size_t index);

#endif
