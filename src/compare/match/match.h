/* match.h: which tensor of A goes with which of B.
 *
 * A strategy looks at what is still unpaired and takes what it is sure of; `auto` is a chain of them, each
 * taking what the one before left. Every pair says who made it, and how sure it is.
 *
 *     stage     {layer}_{stage}; layer sets that differ by a constant offset are paired through it
 *     value     computed tensors as templates of names, all layers at once, by values, names and sizes
 *               (evidence.c). A pair that it makes says `exact` where the names are the same, `fuzzy` where
 *               they mean the same, `fused` where parts add up, else `value`. What it leaves alone is closed:
 *               no later strategy guesses again
 *     exact     the same name
 *     fuzzy     names of one tensor in the engines of name/families_table.c, else similar words above a
 *               threshold
 *     fused     q, k, v (or gate, up) on one side, one fused tensor on the other; experts one by one on one
 *               side, stacked on the other
 *     weights   stored tensors by values at a few positions, roles and modules (weights.c)
 *     shape     what is left: the only candidates of a shape, confirmed by their values
 *     regex     the user's rule with captures
 *     manual    pairs files; the user's program. Always first: what a person said counts
 *
 * A comma in a rule is part of the rule unless the name of a strategy follows. `auto` stands for
 * stage,weights,value,exact,fuzzy,fused,shape and may be part of a chain: "regex:FROM=>TO,auto".
 */
#ifndef TD_COMPARE_MATCH_MATCH_H
#define TD_COMPARE_MATCH_MATCH_H

#include "base/work.h"
#include "compare/name/item.h"

enum td_strategy {
    TD_MATCH_NONE, /* one-sided */
    TD_MATCH_STAGE,
    TD_MATCH_EXACT,
    TD_MATCH_FUZZY,
    TD_MATCH_FUSED,
    TD_MATCH_SHAPE,
    TD_MATCH_VALUE,
    TD_MATCH_REGEX,
    TD_MATCH_MANUAL,
    TD_MATCH_PROGRAM,
    TD_MATCH_SELF
};

const char *td_strategy_name(enum td_strategy strategy);

/* Part `index` of `of` of a fused tensor: q of qkv is 0 of 3. */
struct td_fusion {
    int index, of;
};

/* Tensors of one side that hold the same values: one tensor under several names. */
struct td_aliases {
    const struct td_item *const *items; /* all of them, the best name first; NULL: it has one name */
    size_t count;
};

struct td_match {
    const struct td_item *a, *b; /* one of them may be NULL */
    enum td_strategy strategy;
    struct td_fusion fused_a, fused_b;   /* of == 0: the whole tensor */
    double sure;                         /* 0 to 1: how likely the two belong together */
    const char *evidence;                /* what speaks for it, in words; NULL: the strategy says it all */
    const char *template_a, *template_b; /* the name with {L} for its layer; NULL where it has none */
    struct td_aliases aliases_a, aliases_b;
};

struct td_matches {
    struct td_arena arena;
    struct td_match *pairs; /* in the order of execution: layer, stage, then the order of the files */
    size_t count;
    int64_t layer_offset; /* B's layer = A's layer + offset */
};

/* A pair somebody said. */
struct td_name_pair {
    const char *a, *b;                 /* of items, or of their first shards */
    struct td_fusion fused_a, fused_b; /* of == 0: the whole tensor, which is in no other pair then */
    bool by_program;
};

/* What a user's own engine calls a stage: one line of a file of names. `pattern` is a name with {L} for the
 * layer and may hold '*'; `stage` is a name of the other side, likewise, or of a stage that tdbg knows. */
struct td_name_rule {
    const char *pattern, *stage;
};

struct td_match_options {
    const char *strategy; /* NULL or "auto"; a comma-separated chain: "stage,exact,regex:FROM=>TO". A
                             "program:" in it has been asked by the caller and is passed over */
    double threshold;     /* fuzzy similarity in (0, 1]; 0: the default */
    const struct td_name_pair *manual; /* first, always */
    size_t manual_count;
    const struct td_name_rule *names; /* of the user's own engines; they go before what tdbg knows itself */
    size_t name_count;
};

/* One entry of a chain: its name and, behind a colon, its argument. */
struct td_match_entry {
    const char *name, *argument; /* borrowed from the chain; argument NULL: none */
    size_t name_length, argument_length;
};

/* The entry at *chain, which moves on to the next; false at the end. */
bool td_match_chain_next(const char **chain, struct td_match_entry *out);

/* `work` without an arena; NULL: one thread, and nobody watches. */
TD_CHECK tdbg_status td_match_sides(struct td_matches *out, const struct td_side *a, const struct td_side *b,
                                    const struct td_match_options *options, const struct td_work *work,
                                    struct tdbg_error *error);
void td_matches_release(struct td_matches *matches);

#endif
