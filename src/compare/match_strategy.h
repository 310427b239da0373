/* match_strategy.h: what a strategy works with: what is still unpaired, and a way to pair it. */
#ifndef TD_COMPARE_MATCH_STRATEGY_H
#define TD_COMPARE_MATCH_STRATEGY_H

#include "compare/families.h"
#include "compare/match.h"

enum td_which { TD_SIDE_A, TD_SIDE_B };

struct td_matching {
    const struct td_side *side[2];
    bool *paired[2];                 /* one for each item */
    struct td_identity *identity[2]; /* likewise */
    size_t common_folder[2];         /* length of the folders every name of the side begins with */
    struct td_match *pairs;          /* room for every item of both sides, and for what a person said */
    size_t count;
    int64_t layer_offset;
    double threshold;
    const struct td_match_options *options;
    struct td_arena scratch; /* gone after the matching */
};

/* `argument` is what follows the colon of "regex:FROM=>TO", or NULL. */
typedef tdbg_status td_strategy_run(struct td_matching *m, const char *argument, struct tdbg_error *error);

td_strategy_run td_match_manual, td_match_by_stage, td_match_exact, td_match_fuzzy, td_match_fused,
    td_match_by_shape, td_match_regex;

void td_pair(struct td_matching *m, size_t a, size_t b, enum td_strategy strategy);

/* Both names have a layer, and not the same. */
bool td_layers_clash(const struct td_matching *m, size_t a, size_t b);

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

/* The part of a name that tells tensors apart: the key within the file, else the file without folder and
 * extension. */
const char *td_bare_name(struct td_matching *m, enum td_which which, size_t index);

#endif
