/* scheme.h: one side as templates of names, each with its tensor in every layer.
 *
 *     model.layers.{L}.mlp.up_proj      layers 0 to 31
 *     lm_head                           one tensor
 *
 * A pair of templates is a pair in every layer, so what one layer tells holds for all. Values are looked at
 * in a few layers only.
 */
#ifndef TD_COMPARE_MATCH_SCHEME_H
#define TD_COMPARE_MATCH_SCHEME_H

#include "compare/match/print.h"
#include "compare/match/strategy.h"

#define TD_NO_SCHEME SIZE_MAX

/* The prints of one tensor, one for each reading. */
struct td_reading {
    int count;
    struct td_print prints[TD_PRINT_READINGS];
};

struct td_scheme {
    const char *name;    /* the template, as the items carry it */
    const size_t *items; /* indices of items of the side, by layer */
    size_t count;
    bool layered;
    const char *told;         /* what the user's names say that it is; NULL: nothing */
    bool unweighed;           /* too many of its width: names pair them */
    bool settled;             /* of its two meanings the first: nobody on the other side has the second */
    bool guessed;             /* the role is put together from words, and in no table */
    bool only_one;            /* of its role on its side */
    bool container;           /* the name says where, and not what: layers.3, mlp, self_attn.0 */
    enum td_role role, other; /* what it is to its layer; an input is what feeds its module */
    enum td_part_kind kind;
    enum td_stack stack;
    int64_t order;  /* of the first item, in the order of execution */
    size_t partner; /* on the other side; TD_NO_SCHEME: none yet */
    int64_t shift;  /* of the partner: what a layer puts out goes into the next */
    bool covered;   /* a template with the same values has the partner */
};

struct td_schemes {
    const struct td_side *side;
    struct td_scheme *list;
    size_t count;
    struct td_reading **readings; /* by item; NULL: not looked at */
    double unit;                  /* how coarse most values are: unit roundoff of their type or grid */
    struct td_tokens tokens;
    int64_t first_layered, last_layered; /* the least and largest order of templates that have layers */
};

/* What is free on both sides and was computed, with prints of a few layers. */
TD_CHECK tdbg_status td_schemes_init(struct td_schemes out[2], struct td_matching *m,
                                     struct tdbg_error *error);

/* The item of that layer (any where the scheme has no layers), or SIZE_MAX. */
size_t td_scheme_at(const struct td_schemes *s, const struct td_scheme *scheme, int64_t layer);

#endif
